"""The promise of the vector env: to the last bit what `SyncVectorEnv` of the single env gives."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from contract import same
from gymnasium.error import Error, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_custom.drivers import row_streams
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv

MODES = list(AutoresetMode)
CARTPOLE, GRIDWORLD, MYENV = (f"gym_custom.{name}:make_world" for name in ("cartpole", "gridworld", "my_env"))
BALLOON, SWARM = "worlds:make_balloon", "worlds:make_swarm"

cartpole_arguments = st.fixed_dictionaries(
    {},
    optional={
        "gravity": st.sampled_from([0.0, 1.6, 25.0]),
        "length": st.sampled_from([0.1, 2.0]),
        "masspole": st.sampled_from([0.01, 1.0]),
        "tau": st.sampled_from([0.005, 0.1]),
        "integrator": st.sampled_from(["euler", "semi-implicit"]),
        "cart_friction": st.sampled_from([0.0, 0.4, 5.0]),
        "x_threshold": st.sampled_from([0.1, 3.0]),
        "theta_threshold": st.sampled_from([0.05, 1.0]),
        "sutton_barto_reward": st.booleans(),
        "precision": st.sampled_from(["float64", "float32"]),
    },
)
gridworld_arguments = st.one_of(
    st.fixed_dictionaries(
        {"size": st.sampled_from([2, 5, [3, 7]])},
        optional={
            "slip": st.sampled_from([0.0, 0.3, 1.0]),
            "random_start": st.booleans(),
            "random_goal": st.booleans(),
            "observation": st.sampled_from(["position", "index", "goal"]),
        },
    ),
    st.fixed_dictionaries(
        {"layout": st.sampled_from(["small", "cliff", "four_rooms", ["S.G", ".#.", "GO."]])},
        optional={"slip": st.sampled_from([0.0, 0.2]), "step_reward": st.just(-0.5), "random_start": st.just(True)},
    ),
)
myenv_arguments = st.fixed_dictionaries(
    {"n_pedestrians": st.integers(0, 9), "n_obstacles": st.integers(0, 5)},
    optional={
        "notice_prob": st.sampled_from([0.0, 1.0]),
        "observation": st.sampled_from(["lidar", "lidar_stack", "state", "camera", "dict", "partial"]),
        "continuous": st.booleans(),
    },
)
balloon_arguments = st.fixed_dictionaries({"precision": st.sampled_from(["float64", "float32"])})
worlds = st.one_of(
    st.tuples(st.just(CARTPOLE), cartpole_arguments),
    st.tuples(st.just(GRIDWORLD), gridworld_arguments),
    st.tuples(st.just(BALLOON), balloon_arguments),
    st.tuples(
        st.just(SWARM), st.fixed_dictionaries({"bees": st.sampled_from([1, 7, 8, 17]), "counted": st.booleans()})
    ),
)
OPTIONS: dict[str, list[Any]] = {
    CARTPOLE: [{"low": -0.2, "high": 0.3}, {"low": 0.01}, {}],
    BALLOON: [{"place": 0.25}, {}],
}


def both(world: str, num_envs: int, mode: AutoresetMode, limit: int | None, **kwargs: Any):
    """The native vector env and Gymnasium's of single ones."""

    def one() -> gym.Env:
        env = SingleEnv(world, **kwargs)
        return env if limit is None else TimeLimit(env, limit)

    native = BatchEnv(num_envs, world, max_episode_steps=limit, autoreset_mode=mode, **kwargs)
    return native, SyncVectorEnv([one] * num_envs, autoreset_mode=mode)


def random_actions(env: BatchEnv, rng: np.random.Generator, bias: float) -> np.ndarray:
    """Uniform actions, or with probability ``bias`` all rows' favourite."""
    space = env.single_action_space
    if isinstance(space, gym.spaces.Box):
        return rng.uniform(space.low, space.high, (env.num_envs, *space.shape)).astype(space.dtype)
    favourite = np.arange(env.num_envs) % space.n
    return np.where(rng.random(env.num_envs) < bias, favourite, rng.integers(space.n, size=env.num_envs))


def compare(native: BatchEnv, sync: SyncVectorEnv, seed: Any, steps: int, rng: np.random.Generator, **more: Any):
    """Plays both and compares every result; rows are reset by mask, some with a seed: in DISABLED mode the finished
    ones, and in any mode now and then whichever."""
    options = more.get("options")
    assert same(native.reset(seed=seed, options=copy.copy(options)), sync.reset(seed=seed, options=copy.copy(options)))
    for _ in range(steps):
        actions = random_actions(native, rng, more.get("bias", 0.0))
        one, other = native.step(actions.copy()), sync.step(actions)
        assert same(one, other)
        begin_anew = other[2] | other[3]
        if native.autoreset_mode is not AutoresetMode.DISABLED:
            begin_anew = rng.random(native.num_envs) < 0.3 * (rng.random() < 0.05)
        elif rng.random() < 0.05:
            begin_anew = begin_anew | (rng.random(native.num_envs) < 0.3)
        if begin_anew.any():
            new = [int(rng.integers(2**40)) if rng.random() < 0.3 else None for _ in begin_anew]
            again = [{"reset_mask": begin_anew.copy(), **(options or {})} for _ in range(2)]
            assert same(native.reset(seed=new, options=again[0]), sync.reset(seed=new, options=again[1]))
            assert "reset_mask" in again[0]  # the caller's dict stays as it was
    for one, other in zip(native.np_random, sync.np_random, strict=True):
        assert one.bit_generator.state["state"] == other.bit_generator.state["state"]


seeds = st.one_of(st.integers(0, 2**140), st.lists(st.integers(0, 2**70), min_size=40, max_size=40))


@settings(max_examples=60, deadline=None)
@given(
    chosen=worlds,
    num_envs=st.integers(1, 40),
    mode=st.sampled_from(MODES),
    seed=seeds,
    limit=st.sampled_from([None, 1, 2, 9, 50]),
    stream=st.integers(0, 2**32),
    bias=st.sampled_from([0.0, 0.7, 0.95]),
    data=st.data(),
)
def test_it_equals_sync_for_any_world_rows_mode_seed_and_actions(
    chosen, num_envs, mode, seed, limit, stream, bias, data
):
    world, kwargs = chosen
    options = data.draw(st.sampled_from([None, *OPTIONS.get(world, [])]))
    native, sync = both(world, num_envs, mode, limit, **kwargs)
    seed = seed[:num_envs] if isinstance(seed, list) else seed
    compare(native, sync, seed, 60, np.random.default_rng(stream), bias=bias, options=options)


@settings(max_examples=8, deadline=None)
@given(kwargs=myenv_arguments, num_envs=st.integers(1, 10), mode=st.sampled_from(MODES), seed=st.integers(0, 2**32))
def test_the_robot_among_pedestrians_equals_sync(kwargs, num_envs, mode, seed):
    native, sync = both(MYENV, num_envs, mode, 30, **kwargs)
    compare(native, sync, seed, 40, np.random.default_rng(seed))


at_length = {
    "num_envs": st.integers(1, 70),
    "mode": st.sampled_from(MODES),
    "seed": st.integers(0, 2**140),
    "limit": st.sampled_from([None, 3, 50]),
    "bias": st.sampled_from([0.0, 0.7, 0.95]),
}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@settings(max_examples=600, deadline=None)
@given(chosen=worlds, **at_length)
def test_it_equals_sync_for_long(chosen, num_envs, mode, seed, limit, bias):
    world, kwargs = chosen
    native, sync = both(world, num_envs, mode, limit, **kwargs)
    compare(native, sync, seed, 300, np.random.default_rng(seed % 2**63), bias=bias)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@settings(max_examples=60, deadline=None)
@given(kwargs=myenv_arguments, **(at_length | {"num_envs": st.integers(1, 20)}))
def test_the_robot_among_pedestrians_equals_sync_for_long(kwargs, num_envs, mode, seed, limit, bias):
    native, sync = both(MYENV, num_envs, mode, limit, **kwargs)
    compare(native, sync, seed, 200, np.random.default_rng(seed % 2**63), bias=bias)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_it_equals_sync_over_thousands_of_steps(mode):
    native, sync = both(CARTPOLE, 5, mode, 30)
    compare(native, sync, [3, 1, 4, 1, 5], 3_000, np.random.default_rng(0))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize(
    ("world", "kwargs", "options"),
    [
        (CARTPOLE, {}, {"low": -0.2}),
        (GRIDWORLD, {"slip": 0.3, "random_start": True}, None),
        (BALLOON, {}, {"place": 0.25}),
        (SWARM, {"bees": 8}, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_equals_sync_where_rows_draw_when_they_need_it(world, kwargs, options, mode, monkeypatch):
    monkeypatch.setattr(row_streams, "_MANY_ROWS", 1)  # as if these few were many
    native, sync = both(world, 6, mode, 12, **kwargs)
    compare(native, sync, 2**70, 150, np.random.default_rng(3), bias=0.7, options=options)
    assert pickle.loads(pickle.dumps(native)).np_random[5].random() == sync.envs[5].np_random.random()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_tiles_and_their_ends_equal_single_envs(precision):
    """4,096 float64 rows are a tile: rows beyond it, and in the short last one, must be the single env's too."""
    rows = [0, 4_095, 4_096, 8_191, 8_192, 9_000]
    native = BatchEnv(9_001, CARTPOLE, precision=precision)
    observations, _ = native.reset(seed=7)
    singles = [SingleEnv(CARTPOLE, precision=precision) for _ in rows]
    for row, single in zip(rows, singles, strict=True):
        assert np.array_equal(observations[row], single.reset(seed=7 + row)[0])
    rng, over = np.random.default_rng(0), dict.fromkeys(rows, False)
    for _ in range(80):
        actions = rng.integers(2, size=9_001)
        observations, rewards, terminations, *_ = native.step(actions)
        for row, single in zip(rows, singles, strict=True):
            expected = (single.reset()[0], 0.0, False) if over[row] else single.step(actions[row])[:3]
            over[row] = expected[2]
            assert same((observations[row], float(rewards[row]), bool(terminations[row])), expected)


def test_seeds_in_a_list_may_be_none_and_those_rows_go_on():
    native, sync = both(CARTPOLE, 3, AutoresetMode.NEXT_STEP, 20)
    native.reset(seed=5), sync.reset(seed=5)
    assert same(native.reset(seed=[1, None, 2**80]), sync.reset(seed=[1, None, 2**80]))
    assert native.np_random_seed == (1, 6, 2**80)
    assert same(native.reset(), sync.reset())


def test_rows_without_a_seed_differ():
    first, second = (BatchEnv(4, CARTPOLE).reset()[0] for _ in range(2))
    assert len({row.tobytes() for row in np.concatenate([first, second])}) == 8


@pytest.mark.parametrize(
    ("seed", "error", "words"),
    [
        (-1, Error, "at least 0"),
        ([1, -2], Error, "at least 0"),
        ([1], ValueError, "one a row, 2, not 1"),
        (1.5, Error, "integer"),
        ("12", Error, "integer"),
        ({1, 2}, Error, "integer"),
        ({0: 1, 1: 2}, Error, "integer"),
        (np.array(3.0), Error, "integer"),
        ([1, 2.0], Error, "integer"),
    ],
)
def test_senseless_seeds_are_refused(seed, error, words):
    env = BatchEnv(2, CARTPOLE)
    with pytest.raises(error, match=words):
        env.reset(seed=seed)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        ([True, False], TypeError, "array of booleans"),
        (np.array([1, 0]), TypeError, "array of booleans"),
        (np.array([True]), ValueError, r"shape \(2,\)"),
        (np.array([False, False]), ValueError, "at least one"),
    ],
)
def test_senseless_masks_are_refused(mask, error, words):
    env = BatchEnv(2, CARTPOLE)
    env.reset(seed=0)
    with pytest.raises(error, match=words):
        env.reset(options={"reset_mask": mask})


def test_a_first_reset_needs_all_rows_and_a_step_needs_a_reset():
    env = BatchEnv(2, CARTPOLE)
    with pytest.raises(ResetNeeded, match="before step"):
        env.step(np.array([0, 1]))
    with pytest.raises(ResetNeeded, match="all rows"):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="np_random"):
        env.np_random  # noqa: B018


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"num_envs": 0}, ValueError, "num_envs must be at least 1, not 0"),
        ({"num_envs": 2.0}, TypeError, "num_envs must be an integer"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps must be at least 1"),
        ({"max_episode_steps": True}, TypeError, "max_episode_steps must be an integer"),
        ({"num_envs": 10**30}, ValueError, "num_envs must be at most 16,777,216, not 1000"),
        ({"autoreset_mode": "Sometimes"}, ValueError, "one of 'NextStep', 'SameStep', 'Disabled', not 'Sometimes'"),
        ({"autoreset_mode": None}, ValueError, "'Disabled', not None"),
        ({"render_mode": "human"}, ValueError, "None, 'rgb_array'"),
        ({"world": None}, TypeError, "needs a world"),
        ({"world": "worlds"}, ValueError, "module:function"),
        ({"world": "worlds:nothing"}, ValueError, "has no 'nothing'"),
        ({"gravity_": 3}, TypeError, "no argument 'gravity_'"),
    ],
)
def test_senseless_arguments_are_refused(kwargs, error, words):
    with pytest.raises(error, match=words):
        BatchEnv(**{"num_envs": 2, "world": CARTPOLE, **kwargs})


def test_minus_one_means_no_limit():
    env = BatchEnv(2, GRIDWORLD, max_episode_steps=-1)
    env.reset(seed=0)
    assert not any(env.step(np.array([0, 0]))[3].any() for _ in range(300))


@pytest.mark.parametrize("world", [CARTPOLE, BALLOON, SWARM])
def test_rows_draw_the_same_whatever_their_neighbours_do(world):
    rng = np.random.default_rng(1)
    few, many = BatchEnv(3, world), BatchEnv(300, world)
    few.reset(seed=[11, 5, 99]), many.reset(seed=[11, 5, 99, *range(297)])
    for _ in range(200):
        actions = random_actions(many, rng, bias=0.5)
        one, other = few.step(actions[:3]), many.step(actions)
        assert same(one[1], other[1][:3])
        assert same(one[4].get("is_success"), other[4]["is_success"][:3] if "is_success" in other[4] else None)


@pytest.mark.parametrize("world", [CARTPOLE, BALLOON, SWARM])
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_alike_and_by_itself(world, clone):
    env, rng = BatchEnv(30, world, max_episode_steps=12), np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(50):
        env.step(random_actions(env, rng, 0.5))
    twin = clone(env)
    for _ in range(100):
        actions = random_actions(env, rng, 0.5)
        assert same(env.step(actions), twin.step(actions))


def test_looking_at_the_generators_moves_nothing():
    env, twin = BatchEnv(3, BALLOON), BatchEnv(3, BALLOON)
    env.reset(seed=0), twin.reset(seed=0)
    for generator in env.np_random:
        generator.random(100)
    assert same(env.step([0, 1, 2]), twin.step([0, 1, 2]))


def test_memory_stays_below_a_kibibyte_a_row_and_does_not_grow():
    rows, actions = 16_384, np.random.default_rng(0).integers(2, size=(4, 16_384))
    tracemalloc.start()
    try:
        env = BatchEnv(rows, CARTPOLE, max_episode_steps=500)
        env.reset(seed=0)
        for t in range(20):
            env.step(actions[t % 4])
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        assert before / rows < 1_024
        for t in range(200):
            env.step(actions[t % 4])
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()
