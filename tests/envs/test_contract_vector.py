"""What the vector env of every id keeps: ends of episodes, resets, time limits, infos, wrappers."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from contract import IDS, actions, make, make_vec, play_rows, same
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, NormalizeReward, RecordEpisodeStatistics

every_id = pytest.mark.parametrize("env_id", IDS)


def row(observation, index: int):
    """One row of a batch of observations."""
    return (
        {key: value[index] for key, value in observation.items()}
        if isinstance(observation, dict)
        else observation[index]
    )


def agree(one, other) -> bool:
    """Equal observations, whether a Discrete one comes as a scalar or as an entry of an array."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


@every_id
def test_next_step_mode_shows_the_last_state_and_then_a_start_without_reward(env_id):
    rows, single = make_vec(env_id, num_envs=1), make(env_id)
    rows.reset(seed=7), single.reset(seed=7)
    ended = False
    while not ended:
        batch, (obs, reward, te, tr, _) = rows.step([1]), single.step(1)
        assert agree(row(batch[0], 0), obs)
        assert (batch[1][0], batch[2][0], batch[3][0]) == (reward, te, tr)
        ended = te or tr
    obs, reward, te, tr, _ = rows.step([0])
    assert agree(row(obs, 0), single.reset()[0])
    assert (reward[0], te[0], tr[0]) == (0.0, False, False)


@every_id
def test_same_step_mode_hands_the_last_state_over(env_id):
    rows, single = make_vec(env_id, num_envs=1, autoreset_mode=AutoresetMode.SAME_STEP), make(env_id)
    rows.reset(seed=7), single.reset(seed=7)
    ended = False
    while not ended:
        (obs, *_, info), (last, _, te, tr, last_info) = rows.step([1]), single.step(1)
        ended = te or tr
        assert ("final_obs" in info) is ended
    assert agree(info["final_obs"][0], last)
    assert {key: info["final_info"][key][0] for key in last_info} == last_info
    assert agree(row(obs, 0), single.reset()[0])


@every_id
def test_disabled_mode_refuses_to_step_a_finished_row_before_anything_moves(env_id):
    rows, twin = (
        make_vec(env_id, num_envs=2, max_episode_steps=3, autoreset_mode=AutoresetMode.DISABLED) for _ in "ab"
    )
    for env in (rows, twin):
        env.reset(seed=0)
        finished = np.zeros(2, bool)
        while not finished.any():
            _, _, te, tr, _ = env.step([0, 0])
            finished = te | tr
    with pytest.raises((ValueError, AssertionError, gym.error.ResetNeeded)):
        rows.step([0, 0])
    results = [env.reset(options={"reset_mask": finished.copy()}) for env in (rows, twin)]
    assert same(*results)
    if not finished.all():
        assert same(rows.step([0, 0]), twin.step([0, 0]))


@every_id
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("steps", [1, 6, 10, 11])
def test_reset_makes_a_fresh_start_whatever_went_before(env_id, mode, steps):
    used, fresh = (make_vec(env_id, num_envs=2, max_episode_steps=10, autoreset_mode=mode) for _ in "ab")
    choices = actions(used, 25, seed=5)
    used.reset(seed=1)
    for action in choices[:steps]:
        _, _, te, tr, _ = used.step(action)
        if mode is AutoresetMode.DISABLED and (te | tr).any():
            break
    horizon = choices if mode is not AutoresetMode.DISABLED else choices[:1]
    assert same(play_rows(used, horizon), play_rows(fresh, horizon))


@every_id
def test_the_time_limit_counts_each_row_by_itself(env_id):
    rows = make_vec(env_id, num_envs=3, max_episode_steps=5)
    rows.reset(seed=0)
    counts = np.zeros(3, int)
    restarting = np.zeros(3, bool)
    for action in actions(rows, 60):
        _, _, te, tr, _ = rows.step(action)
        assert tr.shape == te.shape == (3,)
        assert tr.dtype == te.dtype == bool
        counts = np.where(restarting, 0, counts + 1)
        assert (tr == (counts == 5)).all()
        restarting = te | tr


@every_id
def test_the_limit_comes_from_the_spec_or_the_caller(env_id):
    assert make_vec(env_id, num_envs=1).unwrapped.max_episode_steps == gym.spec(env_id).max_episode_steps
    assert make_vec(env_id, num_envs=1, max_episode_steps=7).unwrapped.max_episode_steps == 7
    endless = make_vec(env_id, num_envs=2, max_episode_steps=-1)
    assert not any(result[3].any() for result in play_rows(endless, actions(endless, 520))[1:])


@every_id
def test_the_autoreset_mode_is_told_by_the_instance_alone(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="(?s).*is out of date")
        first = gym.make_vec(env_id, num_envs=3)
    second = make_vec(env_id, num_envs=3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert first.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert second.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert "autoreset_mode" not in make(env_id).metadata
    make_vec(env_id, num_envs=1, vectorization_mode="sync")
    assert "autoreset_mode" not in make(env_id).metadata


@every_id
def test_infos_are_arrays_with_masks_and_the_keys_of_the_single_env(env_id):
    rows, single = make_vec(env_id, num_envs=3), make(env_id)
    keys = set(single.reset(seed=0)[1])
    for result in play_rows(rows, actions(rows, 30)):
        info = result[-1]
        assert {key for key in info if not key.startswith("_")} == keys
        assert all(len(info[key]) == 3 and info["_" + key].shape == (3,) for key in keys)


@every_id
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_gymnasiums_vector_wrappers_run_on_it(env_id, mode):
    rows = make_vec(env_id, num_envs=3, autoreset_mode=mode, max_episode_steps=20)
    rows = DictInfoToList(NormalizeReward(RecordEpisodeStatistics(rows)))
    rows.reset(seed=0)
    lengths = []
    for action in actions(rows.unwrapped, 300):
        infos = rows.step(action)[-1]
        lengths += [int(info["episode"]["l"]) for info in infos if "episode" in info]
    assert lengths
    assert all(1 <= length <= 20 for length in lengths)


@every_id
def test_rows_do_not_depend_on_their_neighbours(env_id):
    many, few = make_vec(env_id, num_envs=3), make_vec(env_id, num_envs=1)
    choices = actions(many, 150)
    alone = play_rows(few, [action[1:2] for action in choices], seed=[12])
    for batch, one in zip(play_rows(many, choices, seed=[5, 12, 7]), alone, strict=True):
        assert agree(row(batch[0], 1), row(one[0], 0))
        assert all(np.array_equal(x[1:2], y) for x, y in zip(batch[1:-1], one[1:-1], strict=True))


@every_id
def test_a_list_of_seeds_needs_one_a_row(env_id):
    with pytest.raises((ValueError, AssertionError), match="3"):
        make_vec(env_id, num_envs=3).reset(seed=[1, 2])


@every_id
def test_options_hold_for_one_reset_and_stay_as_they_were(env_id):
    kwargs = {"random_start": True} if env_id.startswith("GridWorld") else {}
    rows = make_vec(env_id, num_envs=4, **kwargs)
    rows.reset(seed=0)
    options = {"reset_mask": np.array([False, True, False, True])}
    before, kept = rows.step([0] * 4)[0], dict(options)
    after, _ = rows.reset(options=options)
    assert options.keys() == kept.keys()
    assert agree(row(after, 0), row(before, 0))
    assert agree(row(after, 2), row(before, 2))


@every_id
def test_without_a_seed_rows_and_envs_differ(env_id):
    kwargs = {"layout": "maze", "random_start": True} if env_id.startswith("GridWorld") else {}
    one, other = (make_vec(env_id, num_envs=4, **kwargs).reset()[0] for _ in "ab")
    assert not agree(one, other)
    assert not all(agree(row(one, 0), row(one, i)) for i in (1, 2, 3))
