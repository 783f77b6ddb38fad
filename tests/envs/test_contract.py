"""What every registered environment keeps, single and vector; a new id is tested without a line here."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import random
import subprocess
import sys
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from contract import IDS, actions, arguments, make, make_vec, play, play_rows, same, writable
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import gym_custom

every_id = pytest.mark.parametrize("env_id", IDS)
every_mode = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


def run(code: str, *flags: str, **environment: str) -> None:
    """Runs code in a fresh process where any warning is an error, away from this folder."""
    command = [sys.executable, *flags, "-W", "error", "-W", "ignore:::gymnasium.envs.registration", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment or None)
    assert result.returncode == 0, result.stderr


def test_the_ids_and_their_specs():
    limits = {i: (gym.spec(i).max_episode_steps, gym.spec(i).reward_threshold) for i in IDS}
    assert limits == {
        "NumpyCartPole-v0": (200, 195.0),
        "NumpyCartPole-v1": (500, 475.0),
        "GridWorld-v0": (100, 1.0),
        "MyEnv-v0": (200, 100.0),
        "MyEnvStatic-v0": (200, None),
        "MyEnvDense-v0": (200, None),
        "MyEnvHard-v0": (200, None),
        "MyEnvPartial-v0": (200, None),
    }


# --- checkers of others


@every_id
def test_gymnasium_check_env_warns_of_nothing_but_infinite_cart_pole_bounds(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(make(env_id).unwrapped)
    messages = [str(w.message) for w in caught]
    unexpected = [
        m
        for m in messages
        if "CartPole" not in env_id or ("value is -infinity" not in m and "value is infinity" not in m)
    ]
    assert not unexpected


@every_id
def test_sb3_check_env_warns_of_nothing(env_id):
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    sb3_check_env(make(env_id).unwrapped, warn=True)


@every_id
def test_gym_make_passes_the_passive_checker_for_300_steps(env_id):
    env = make(env_id)
    play(env, actions(env, 300))


# --- values and types


def walks(env: gym.Env, steps: int) -> list[list]:
    """Action streams that lead into different corners: random, each action alone, and each with a little noise."""
    rng = np.random.default_rng(1)
    constant = [[a] * steps for a in range(env.action_space.n)]
    noisy = [[a if rng.random() < 0.9 else int(rng.integers(env.action_space.n)) for a in line] for line in constant]
    return [actions(env, steps), *constant, *noisy]


@every_id
def test_observations_stay_in_the_space_to_the_last_step(env_id):
    env = make(env_id).unwrapped
    for walk in walks(env, 100):
        for result in play(env, walk, seed=len(walk)):
            assert env.observation_space.contains(result[0]), result[0]
            assert not isinstance(result[0], np.ndarray) or np.isfinite(result[0]).all()


@every_id
def test_rewards_and_flags_are_plain_python(env_id):
    env = make(env_id).unwrapped
    for result in play(env, actions(env, 300)):
        info = result[-1]
        assert all(type(value) in (float, bool, int, str) for value in info.values()), info
        if len(result) == 5:
            assert [type(value) for value in result[1:4]] == [float, bool, bool]


@every_id
def test_info_has_the_same_keys_and_types_at_reset_and_at_every_step(env_id):
    env = make(env_id).unwrapped
    shapes = {tuple((key, type(value)) for key, value in r[-1].items()) for r in play(env, actions(env, 300))}
    assert len(shapes) == 1


# --- actions


@every_id
def test_every_kind_of_integer_is_the_same_action(env_id):
    env = make(env_id).unwrapped
    outcomes = []
    for action in (1, np.int64(1), np.int32(1), np.uint8(1), np.array(1), np.array([1]), np.array([[1]], np.int16)):
        env.reset(seed=0)
        outcomes.append(env.step(action))
    assert all(same(outcomes[0], outcome) for outcome in outcomes)


BAD_ACTIONS = [
    -1,
    10_000,
    1.5,
    1.0,
    np.float64(1.0),
    np.nan,
    np.array([1, 0]),
    np.array([]),
    np.array(1.0),
    None,
    "1",
    [[0], [0, 1]],
]


@every_id
@pytest.mark.parametrize("action", BAD_ACTIONS, ids=repr)
def test_a_senseless_action_is_refused_with_the_legal_range(env_id, action):
    env = make(env_id).unwrapped
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises((ValueError, TypeError)) as error:
        env.step(action)
    assert str(env.action_space.n - 1) in str(error.value) or f"Discrete({env.action_space.n})" in str(error.value)
    assert same(before, env.get_state())


@every_id
@pytest.mark.parametrize("bad", [-1, 10_000, 1.5, np.nan, None], ids=repr)
def test_one_senseless_action_stops_the_whole_vector_step(env_id, bad):
    env, twin = make_vec(env_id, num_envs=3), make_vec(env_id, num_envs=3)
    env.reset(seed=0), twin.reset(seed=0)
    for senseless in ([0, bad, 0], [[0], [0, bad], 0]):
        with pytest.raises((ValueError, TypeError), match=r"actions? .*must be an integer from 0 to|actions must be"):
            env.step(senseless)
    assert same(env.step(np.zeros(3, np.int64)), twin.step(np.zeros(3, np.int64)))


@every_id
def test_the_vector_env_takes_integers_of_any_width_and_lists(env_id):
    outcomes = []
    for action in (
        [1, 0, 1],
        np.array([1, 0, 1]),
        np.array([1, 0, 1], np.int32),
        np.array([1, 0, 1], np.uint8),
        (1, 0, 1),
    ):
        env = make_vec(env_id, num_envs=3)
        env.reset(seed=0)
        outcomes.append(env.step(action))
    assert all(same(outcomes[0], outcome) for outcome in outcomes)


@pytest.mark.serial
def test_actions_are_checked_under_python_optimised_too():
    run(
        f"""
import gymnasium as gym, gym_custom, numpy as np
for i in {IDS}:
    for bad in (-1, 10_000, 1.5, np.nan, None, np.array([1, 0])):
        env = gym.make(i).unwrapped
        env.reset(seed=0)
        try:
            env.step(bad)
        except (ValueError, TypeError):
            continue
        raise SystemExit(f"{{i}} took {{bad!r}}")
    rows = gym.make_vec(i, num_envs=2)
    rows.reset(seed=0)
    try:
        rows.step(np.array([0, -1]))
    except (ValueError, TypeError):
        continue
    raise SystemExit(f"{{i}} took -1 in a batch")
""",
        "-O",
    )


# --- seeds


@every_id
def test_same_seed_same_results_whatever_the_global_generators_do(env_id):
    env = make(env_id)
    choices = actions(env, 200)
    first = play(env, choices, seed=3)
    np.random.seed(99)
    random.seed(99)
    assert same(first, play(make(env_id), choices, seed=3))
    assert same(first, play(env, choices, seed=3))


@every_id
def test_global_generators_stay_untouched(env_id):
    numpy_before, python_before = np.random.get_state()[1].copy(), random.getstate()
    env, rows = make(env_id, render_mode="rgb_array"), make_vec(env_id, num_envs=3)
    play(env, actions(env, 50), seed=3)
    env.render()
    play_rows(rows, actions(rows, 50), seed=3)
    assert np.array_equal(numpy_before, np.random.get_state()[1])
    assert python_before == random.getstate()


@every_id
def test_a_reset_without_seed_goes_on_and_does_not_repeat(env_id):
    kwargs = {"random_start": True} if env_id.startswith("GridWorld") else {}  # its default start is fixed
    env = make(env_id, **kwargs)
    env.reset(seed=3)
    starts = [env.reset()[0] for _ in range(6)]
    assert any(not same(starts[0], start) for start in starts[1:])
    env.reset(seed=3)
    assert same(starts, [env.reset()[0] for _ in range(6)])


@every_id
def test_the_action_space_seed_changes_no_dynamics(env_id):
    one, two = make(env_id), make(env_id)
    choices = actions(one, 100)
    one.action_space.seed(1)
    two.action_space.seed(2)
    assert same(play(one, choices, seed=5), play(two, choices, seed=5))


@every_id
def test_two_envs_in_turn_equal_two_one_after_the_other(env_id):
    one, two = make(env_id).unwrapped, make(env_id).unwrapped
    choices = actions(one, 60)
    alone = [play(make(env_id).unwrapped, choices, seed) for seed in (1, 2)]
    streams = [[env.reset(seed=seed)] for env, seed in ((one, 1), (two, 2))]
    for action in choices:
        for env, stream in ((one, streams[0]), (two, streams[1])):
            stream.append(env.step(action))
            if stream[-1][2] or stream[-1][3]:
                stream.append(env.reset())
    assert same(alone, streams)


# --- the order of calls


@every_id
def test_a_step_before_reset_says_so(env_id):
    with pytest.raises(gym.error.ResetNeeded):
        make(env_id).unwrapped.step(0)
    with pytest.raises(gym.error.ResetNeeded):
        make_vec(env_id, num_envs=2).step(np.zeros(2, np.int64))


def terminated(env_id: str) -> gym.Env:
    """An env that stands right behind a termination."""
    env = make(env_id).unwrapped
    for walk in walks(env, 200):
        for seed in range(20):
            env.reset(seed=seed)
            for action in walk:
                if env.step(action)[2]:
                    return env
    raise AssertionError(f"no walk ends an episode of {env_id}")


@every_id
def test_after_termination_the_state_is_frozen_and_pays_nothing(env_id):
    env = terminated(env_id)
    before = env.get_state()
    with pytest.warns(UserWarning, match="reset") as caught:
        results = [env.step(action % env.action_space.n) for action in range(8)]
    assert len([w for w in caught if "reset" in str(w.message)]) == 1
    assert all(r[1] == 0.0 and r[2] is True and same(r[0], results[0][0]) for r in results)
    assert same(env.get_state()[0], before[0])
    env.reset(seed=0)
    assert same(env.step(0), play(make(env_id).unwrapped, [0], seed=0)[1])


@every_id
def test_after_a_mere_truncation_the_world_goes_on(env_id):
    env, free = make(env_id, max_episode_steps=2), make(env_id).unwrapped
    env.reset(seed=1), free.reset(seed=1)
    choices = [0, 0, 1, 0]
    limited, unlimited = [env.step(a) for a in choices], [free.step(a) for a in choices]
    if not any(r[2] for r in unlimited):
        assert [r[3] for r in limited] == [False, True, True, True]
    assert all(same((x[0], x[1], x[2]), (y[0], y[1], y[2])) for x, y in zip(limited, unlimited, strict=True))


# --- ownership: what was handed out is the caller's


@every_id
def test_writing_into_results_changes_no_env(env_id):
    env, twin = make(env_id).unwrapped, make(env_id).unwrapped
    choices = actions(env, 40)
    expected = play(twin, choices)
    result, at = env.reset(seed=0), 0
    for action in [*choices, None]:
        assert same(result, expected[at])
        for array in writable(result):
            array[...] = 0
        result[-1]["left behind"] = 1
        at += 1
        if len(result) == 5 and (result[2] or result[3]):
            result = env.reset()
            assert same(result, expected[at])
            at += 1
        if action is not None:
            result = env.step(action)


@every_id
@every_mode
def test_vector_results_stay_what_they_were(env_id, mode):
    env = make_vec(env_id, num_envs=3, autoreset_mode=mode, max_episode_steps=4)
    kept = [env.reset(seed=0)]
    copies = [copy.deepcopy(kept[0])]
    for action in actions(env, 12):
        if mode is AutoresetMode.DISABLED and len(kept[-1]) == 5 and (kept[-1][2] | kept[-1][3]).any():
            kept.append(env.reset(options={"reset_mask": kept[-1][2] | kept[-1][3]}))
        else:
            kept.append(env.step(action))
        copies.append(copy.deepcopy(kept[-1]))
    assert same(kept, copies)


@every_id
def test_writing_into_vector_results_changes_no_row(env_id):
    env, twin = make_vec(env_id, num_envs=3), make_vec(env_id, num_envs=3)
    choices = actions(env, 60)
    expected = play_rows(twin, choices)
    for at, action in enumerate([None, *choices]):
        result = env.reset(seed=0) if action is None else env.step(action)
        assert same(result, expected[at])
        for array in writable(result):
            array[...] = np.zeros((), array.dtype)
        result[-1]["left behind"] = 1


@every_id
def test_read_only_inputs_suffice(env_id):
    env, rows = make(env_id).unwrapped, make_vec(env_id, num_envs=3)
    env.reset(seed=0), rows.reset(seed=0)
    single, batch = np.array(1), np.array([1, 0, 1])
    single.flags.writeable = batch.flags.writeable = False
    env.step(single), rows.step(batch)
    options = {"reset_mask": np.array([True, False, True])}
    options["reset_mask"].flags.writeable = False
    kept = dict(options)
    disabled = make_vec(env_id, num_envs=3, autoreset_mode=AutoresetMode.DISABLED)
    disabled.reset(seed=0)
    disabled.reset(options=options)
    assert options == kept


@every_id
def test_sb3_dummy_vec_env_sees_the_terminal_observation(env_id):
    from stable_baselines3.common.vec_env import DummyVecEnv

    kwargs = {"random_start": True} if env_id.startswith("GridWorld") else {}
    env = DummyVecEnv([lambda: make(env_id, max_episode_steps=5, **kwargs)])
    env.seed(0)
    env.reset()
    twin = make(env_id, max_episode_steps=5, **kwargs)
    twin.reset(seed=0)
    done = [False]
    while not done[0]:
        _, _, done, infos = env.step([0])
        last = twin.step(0)
    assert same(infos[0]["terminal_observation"], last[0])


# --- copies


@every_id
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_goes_on_bit_equal(env_id, clone):
    env = make(env_id)
    choices = actions(env, 120)
    env.reset(seed=4)
    done = False
    for action in choices[:10]:
        if done:
            env.reset()
        *_, te, tr, _ = env.step(action)
        done = te or tr
    twin = clone(env)
    if done:
        assert same(env.reset(), twin.reset())
    assert same(play(env, choices, seed=None), play(twin, choices, seed=None))


@every_id
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copied_vector_env_goes_on_bit_equal(env_id, clone):
    env = make_vec(env_id, num_envs=3)
    choices = actions(env, 150)
    play_rows(env, choices[:50], seed=4)
    twin = clone(env)
    assert same([env.step(a) for a in choices], [twin.step(a) for a in choices])


@every_id
def test_a_state_can_be_taken_and_given_back(env_id):
    env = make(env_id).unwrapped
    choices = actions(env, 8)
    env.reset(seed=2)
    state = env.get_state()
    after = [env.step(a) for a in choices[:1]]
    env.set_state(state)
    other = make(env_id).unwrapped
    other.reset(seed=77)
    other.set_state(state)
    if not env.unwrapped.spec.id.startswith("MyEnvPartial"):  # its steps draw noise, and the generator is no state
        assert same(after, [env.step(a) for a in choices[:1]])
        assert same(after, [other.step(a) for a in choices[:1]])


@every_id
def test_what_is_no_state_and_no_options_is_refused_in_a_sentence(env_id):
    env = make(env_id).unwrapped
    env.reset(seed=0)
    with pytest.raises(TypeError, match="set_state takes what get_state gave, not 3"):
        env.set_state(3)
    before = env.get_state()
    with pytest.raises(TypeError, match="a state of the same world, not None"):
        env.set_state(before._replace(state=None, steps=7))
    other = make("GridWorld-v0" if "Grid" not in env_id else "MyEnv-v0").unwrapped
    other.reset(seed=0)
    with pytest.raises(TypeError, match="a state of the same world"):
        env.set_state(other.get_state())
    rows = make_vec(env_id, num_envs=3).unwrapped
    rows.reset(seed=0)
    with pytest.raises(ValueError, match="set_state wants the leaf"):  # all rows are no state of one
        env.set_state(rows.get_state())
    assert same(before, env.get_state())
    for maker in (make, partial(make_vec, num_envs=2)):
        with pytest.raises(TypeError, match="options must be a dict or None, not 3"):
            maker(env_id).unwrapped.reset(options=3)


@every_id
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_state_of_foreign_leaves_is_refused_and_changes_nothing(env_id, data):
    """Each leaf in turn gets another shape or dtype, or what no observation of the space comes from."""
    env, twin = (make(env_id).unwrapped for _ in range(2))
    for one in (env, twin):
        one.reset(seed=3)
        one.step(one.action_space.sample() * 0)
    kept = env.get_state()
    name = data.draw(st.sampled_from(kept.state._fields))
    leaf = np.asarray(getattr(kept.state, name))
    foreign = [np.stack([leaf, leaf]), leaf[..., None], leaf.astype(complex), leaf.astype(str), None]
    foreign += [leaf + 0.5] if leaf.dtype.kind in "iu" else []
    state = kept.state._replace(**{name: data.draw(st.sampled_from(foreign))})
    with pytest.raises(ValueError, match=f"set_state wants the leaf '{name}' as"):
        env.set_state(kept._replace(state=state))
    assert same(env.get_state()[:4], kept[:4])
    assert same(env.step(0 * env.action_space.sample()), twin.step(0 * twin.action_space.sample()))


@pytest.mark.parametrize(
    ("env_id", "leaves"),
    [
        ("GridWorld-v0", {"cell": 25}),
        ("GridWorld-v0", {"cell": -1}),
        ("NumpyCartPole-v1", {"theta": float("nan")}),
        ("NumpyCartPole-v1", {"x": 5.0}),
    ],
)
def test_a_state_that_is_seen_outside_the_space_is_refused(env_id, leaves):
    env = make(env_id).unwrapped
    env.reset(seed=0)
    kept = env.get_state()
    with pytest.raises(ValueError, match=r"set_state takes legal states; State.* would be observed as"):
        env.set_state(kept._replace(state=kept.state._replace(**leaves)))
    assert same(env.get_state()[:4], kept[:4])


def test_a_state_of_a_larger_map_is_refused_also_where_its_number_exists_here():
    small, large = make("GridWorld-v0", size=3).unwrapped, make("GridWorld-v0", size=5, start=[0, 4]).unwrapped
    small.reset(seed=0), large.reset(seed=0)
    with pytest.raises(ValueError, match=r"observed in MultiDiscrete.*5 5.*, not in MultiDiscrete.*3 3"):
        small.set_state(large.get_state())


# --- specs


@every_id
@pytest.mark.parametrize("chosen", [False, True], ids=["default", "arguments"])
def test_a_spec_survives_json(env_id, chosen):
    kwargs = arguments(env_id) if chosen else {}
    kept = copy.deepcopy(kwargs)
    env = make(env_id, **kwargs)
    assert json.loads(env.spec.to_json())["kwargs"].items() >= kwargs.items()
    again = make(EnvSpec.from_json(env.spec.to_json()))
    assert again.spec.kwargs == env.spec.kwargs
    assert same(play(env, actions(env, 50)), play(again, actions(env, 50)))
    assert kwargs == kept


@every_id
@every_mode
def test_a_vector_spec_survives_json(env_id, mode):
    env = make_vec(env_id, num_envs=2, autoreset_mode=mode.value, **arguments(env_id))
    again = (
        gym.make_vec(EnvSpec.from_json(env.spec.to_json()))
        if "v0" not in env_id
        else make_vec(EnvSpec.from_json(env.spec.to_json()))
    )
    assert again.num_envs == 2
    assert again.metadata["autoreset_mode"] is mode
    assert same(play_rows(env, actions(env, 1)), play_rows(again, actions(env, 1)))


@every_id
def test_an_unknown_argument_is_refused_by_name(env_id):
    for maker in (make, partial(make_vec, num_envs=2)):
        with pytest.raises(TypeError, match="no_such_argument"):
            maker(env_id, no_such_argument=1)


def test_importing_again_warns_of_nothing():
    importlib.reload(gym_custom)


# --- workers


WORKERS = """
from functools import partial
import gymnasium as gym

if __name__ == "__main__":  # the workers import this file, but none of the below
    from gymnasium.vector import AsyncVectorEnv
    from stable_baselines3.common.vec_env import SubprocVecEnv

    for name in ("GridWorld-v0", "NumpyCartPole-v1"):
        workers = AsyncVectorEnv([partial(gym.make, "gym_custom:" + name)], context="spawn")
        workers.reset(seed=0)
        workers.step(workers.action_space.sample())
        workers.close()
    workers = SubprocVecEnv([partial(gym.make, "gym_custom:MyEnv-v0")], start_method="spawn")
    workers.reset()
    workers.step([0])
    workers.close()
"""


@pytest.mark.serial
def test_spawned_workers_know_the_ids(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.serial
def test_without_pygame_everything_but_pictures_works():
    run(
        f"""
import sys
sys.modules["pygame"] = None
import gymnasium as gym, gym_custom
for i in {IDS}:
    env = gym.make(i)
    env.reset(seed=0)
    env.step(0)
    gym.make_vec(i, num_envs=2).reset(seed=0)
    try:
        env = gym.make(i, render_mode="rgb_array")
        env.reset(seed=0)
        env.render()
    except gym.error.DependencyNotInstalled as error:
        assert "pip install" in str(error) and "pygame-ce" in str(error), error
    else:
        raise SystemExit("a picture without pygame?")
"""
    )
