"""Windows against sums written out by hand and against a plain loop over long random streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.nstep import NStepAccumulator
from agents.trees import tree_map, tree_take


def push(windows, time, reward, terminated=False, truncated=False, valid=True):
    """One step of a single row whose observation is the time."""
    return windows.push(
        np.array([time]), np.array([time]), [reward], [terminated], [truncated], np.array([time + 1]), [valid]
    )


def rows(transition):
    return [tuple(float(column[row]) for column in transition) for row in range(len(transition.reward))]


def test_nothing_of_one_episode_enters_the_next():
    windows = NStepAccumulator(3, 0.9)
    assert rows(push(windows, 0, 1)) == []
    assert rows(push(windows, 1, 2, terminated=True)) == [(0, 0, pytest.approx(2.8), 0, 2), (1, 1, 2, 0, 2)]
    assert rows(push(windows, 10, 10)) == rows(push(windows, 11, 10)) == []
    assert rows(push(windows, 12, 10)) == [(10, 10, pytest.approx(27.1), pytest.approx(0.729), 13)]


def test_three_rewards_count_once_each():
    windows = NStepAccumulator(3, 0.9)
    push(windows, 0, 1), push(windows, 1, 2)
    assert rows(push(windows, 2, 4)) == [(0, 0, pytest.approx(6.04), pytest.approx(0.729), 3)]
    assert rows(push(NStepAccumulator(1, 0.9), 0, 1)) == [(0, 0, 1, pytest.approx(0.9), 1)]


def test_truncation_bootstraps_with_the_discount_of_the_short_window():
    windows = NStepAccumulator(5, 0.5)
    push(windows, 0, 1)
    assert rows(push(windows, 1, 1, truncated=True)) == [(0, 0, 1.5, 0.25, 2), (1, 1, 1, 0.5, 2)]


def test_termination_wins_where_both_flags_are_true():
    assert rows(push(NStepAccumulator(1, 0.9), 0, 1, terminated=True, truncated=True))[0][3] == 0


def test_one_step_episode_gives_one_row_and_flush_the_rest():
    windows = NStepAccumulator(5, 0.5)
    assert len(rows(push(windows, 0, 1, terminated=True))) == 1
    push(windows, 5, 1), push(windows, 6, 1)
    assert rows(windows.flush()) == [(5, 5, 1.5, 0.25, 7), (6, 6, 1, 0.5, 7)]
    assert rows(windows.flush()) == []


def test_the_row_of_a_next_step_autoreset_is_no_step():
    windows = NStepAccumulator(2, 0.9)
    push(windows, 0, 1, terminated=True)
    assert rows(push(windows, 99, 50, valid=False)) == []
    push(windows, 1, 2)
    assert rows(push(windows, 2, 3)) == [(1, 1, pytest.approx(4.7), pytest.approx(0.81), 3)]


def test_an_invalid_row_neither_ends_nor_feeds_an_open_window():
    windows = NStepAccumulator(3, 0.5)
    push(windows, 0, 1)
    assert rows(push(windows, 7, np.nan, terminated=True, valid=False)) == []
    push(windows, 1, 1)
    assert rows(push(windows, 2, 1)) == [(0, 0, 1.75, 0.125, 3)]


def test_rows_of_different_environments_never_mix():
    windows = NStepAccumulator(2, 0.9, num_envs=2)
    flags = np.zeros(2, bool)
    for time in range(50):
        out = windows.push(np.arange(2), np.arange(2), [1, 100], flags, flags, np.arange(2))
        if time:
            np.testing.assert_allclose(out.reward, [1.9, 190])
            np.testing.assert_array_equal(out.obs, [0, 1])


def test_trees_travel_and_nothing_is_kept_by_reference():
    windows = NStepAccumulator(2, 1.0)
    obs = {"img": np.full((1, 2, 2), 3, np.uint8), "rest": (np.ones((1, 1)),)}
    windows.push(obs, np.zeros(1, int), [1], [False], [False], obs)
    obs["img"][:] = 0
    out = windows.push(obs, np.zeros(1, int), [1], [False], [False], obs)
    np.testing.assert_array_equal(out.obs["img"], np.full((1, 2, 2), 3))
    assert out.obs["img"].dtype == np.uint8
    obs["rest"][0][:] = 7
    np.testing.assert_array_equal(out.next_obs["rest"][0], [[1]])


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0}, {"n": 1.5}, {"n": "a"}, {"n": None}, {"n": np.nan}, {"n": [1, 2]}, {"discount": 1.1},
        {"discount": np.nan}, {"discount": "a"}, {"discount": None}, {"num_envs": 0}, {"num_envs": np.inf},
    ],
)  # fmt: skip
def test_senseless_arguments_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        NStepAccumulator(**{"n": 1, "discount": 0.9} | bad)


def test_a_wrong_number_of_rows_is_refused_and_nothing_is_taken():
    windows = NStepAccumulator(1, 0.9, num_envs=2)
    with pytest.raises(ValueError, match="2 rows"):
        windows.push(np.zeros(3), np.zeros(2), [0, 0], [False] * 2, [False] * 2, np.zeros(2))
    with pytest.raises(ValueError, match="flush"):
        windows.flush()
    with pytest.raises(ValueError, match=r"2 rows \(num_envs\) on axis 1, got shape \(2, 3\)"):
        windows.push_steps(*(np.zeros((2, 3)) for _ in range(7)))


def test_junk_is_refused_by_name_and_nothing_is_taken():
    windows, good = NStepAccumulator(2, 0.5, num_envs=2), (np.zeros((2, 1)), np.zeros(2), np.ones(2))
    no = np.zeros(2, bool)
    windows.push(*good, no, no, good[0])
    for reward in (["a", "b"], [1j, 1j], [None, None], np.ones((2, 1))):
        with pytest.raises(ValueError, match="reward must"):
            windows.push(*good[:2], reward, no, no, good[0])
    for place, name in enumerate(("terminated", "truncated", "valid")):
        for bad in ([0.0, np.nan], ["a", "b"], np.zeros((2, 1), bool)):
            flags = [no, no, ~no]
            flags[place] = bad
            with pytest.raises(ValueError, match=f"{name} must"):
                windows.push(*good, *flags[:2], good[0], flags[2])
    np.testing.assert_array_equal(windows.push(*good, no, no, good[0]).reward, [1.5, 1.5])


def by_loop(n, discount, steps):
    """All windows of one row's stream by a loop over its steps: (time, action, reward, discount, next time)."""
    out, episode = [], []
    for step in steps:
        episode.append(step)
        if step["terminated"] or step["truncated"]:
            out += windows_of(n, discount, episode)
            episode = []
    return out + windows_of(n, discount, episode)


def windows_of(n, discount, episode):
    out = []
    for start in range(len(episode)):
        used = episode[start : start + n]
        reward = sum(discount**k * step["reward"] for k, step in enumerate(used))
        carried = 0.0 if used[-1]["terminated"] else discount ** len(used)
        out.append((used[0]["time"], used[0]["time"], reward, carried, used[-1]["time"] + 1))
    return out


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 6), num_envs=st.integers(1, 4), seed=st.integers(0, 10**6), ends=st.sampled_from([0.02, 0.3]))
def test_any_stream_equals_the_loop(n, num_envs, seed, ends):
    rng = np.random.default_rng(seed)
    windows, got, steps = (
        NStepAccumulator(n, 0.9, num_envs),
        [[] for _ in range(num_envs)],
        [[] for _ in range(num_envs)],
    )
    for time in range(40):
        reward, valid = rng.normal(size=num_envs), rng.random(num_envs) < 0.9
        terminated, truncated = rng.random(num_envs) < ends, rng.random(num_envs) < ends
        who = np.arange(num_envs)
        out = windows.push(
            (who, np.full(num_envs, time)), np.full(num_envs, time), reward, terminated, truncated,
            np.array([(steps[e][-1]["time"] if steps[e] and not valid[e] else time) + 1 for e in who]), valid,
        )  # fmt: skip
        collect(out, got)
        for env in np.flatnonzero(valid):
            steps[env].append(
                {"time": time, "reward": reward[env], "terminated": terminated[env], "truncated": truncated[env]}
            )
        assert (np.diff(out.obs[0]) >= 0).all()  # by row
    collect(windows.flush(), got)
    for env in range(num_envs):
        np.testing.assert_allclose(
            np.reshape(got[env], (-1, 5)), np.reshape(by_loop(n, 0.9, steps[env]), (-1, 5)), rtol=1e-12
        )


def collect(out, got):
    for row, env in enumerate(out.obs[0]):
        got[env].append((out.obs[1][row], out.action[row], out.reward[row], out.discount[row], out.next_obs[row]))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 5), num_envs=st.integers(1, 4), seed=st.integers(0, 10**6), sizes=st.lists(st.integers(0, 7)))
def test_steps_taken_at_once_give_the_windows_of_one_after_the_other(n, num_envs, seed, sizes):
    rng = np.random.default_rng(seed)
    at_once, singly = NStepAccumulator(n, 0.9, num_envs), NStepAccumulator(n, 0.9, num_envs)
    for size in sizes:
        shape = (size, num_envs)
        who = np.broadcast_to(np.arange(num_envs), shape)
        ends = rng.random((2, *shape)) < 0.2
        steps = ({"who": who, "x": rng.random((*shape, 2))}, rng.integers(3, size=shape), rng.normal(size=shape), *ends)
        steps = (*steps, rng.random(shape), rng.random(shape) < 0.8)
        many = at_once.push_steps(*steps)
        few = [singly.push(*tree_map(lambda leaf, t=t: leaf[t], steps)) for t in range(size)]
        if few:
            few = tree_map(lambda *leaves: np.concatenate(leaves), *map(tuple, few))
            order = few[0]["who"].argsort(kind="stable")
            tree_map(np.testing.assert_array_equal, tuple(many), tree_take(few, order))
    if any(sizes):
        tree_map(np.testing.assert_array_equal, tuple(at_once.flush()), tuple(singly.flush()))
