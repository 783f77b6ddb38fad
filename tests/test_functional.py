"""Every world in JAX: equal to NumPy, pure, repeatable; the rollout, the vector env and the FuncEnv made of it."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import warnings
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded, UnregisteredEnv
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics

import gym_custom
from gym_custom import World

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
import jax.numpy as jnp  # noqa: E402

from gym_custom import functional  # noqa: E402
from gym_custom.functional import rollouts  # noqa: E402

assert gym_custom.World  # importing registers the ids
IDS = sorted(i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom"))
SETTINGS = [(env_id, {}) for env_id in IDS] + [
    ("NumpyCartPole-v1", {"gravity": 1.6, "length": 1.0, "integrator": "semi-implicit", "cart_friction": 0.4}),
    ("NumpyCartPole-v1", {"sutton_barto_reward": True}),
    ("GridWorld-v0", {"layout": ["S..#", ".O..", "#..G"], "slip": 0.3, "random_start": True, "step_reward": -0.1}),
    ("GridWorld-v0", {"observation": "goal", "random_goal": True, "random_start": True}),
    ("GridWorld-v0", {"observation": "index", "layout": "four_rooms"}),
    ("MyEnv-v0", {"observation": "state", "n_pedestrians": 2, "n_obstacles": 1}),
    ("MyEnv-v0", {"continuous": True, "observation": "dict"}),
]


SELDOM = ("MyEnv", "NumpyCartPole-v0")
"""MyEnv for its compilation, the shorter cart-pole because it differs from v1 by its limit alone."""


def sparing(value):
    """Of what compiles long only the plain id is always tested, the rest with the long runs."""
    env_id, kwargs = value if isinstance(value, tuple) else (value, {})
    slow = env_id.startswith(SELDOM) and (env_id, kwargs) != ("MyEnv-v0", {})
    name = env_id + "".join(f",{key}={str(setting)[:12]}" for key, setting in kwargs.items())
    arguments = value if isinstance(value, tuple) else (value,)
    return pytest.param(*arguments, marks=[pytest.mark.slow] if slow else [], id=name)


every_setting = pytest.mark.parametrize(("env_id", "kwargs"), [sparing(setting) for setting in SETTINGS])
every_id = pytest.mark.parametrize(
    "env_id", [pytest.param(i, marks=[pytest.mark.slow] if i.startswith(SELDOM) else []) for i in IDS]
)
FEW = pytest.mark.parametrize(
    "env_id", ["NumpyCartPole-v1", "GridWorld-v0", pytest.param("MyEnv-v0", marks=pytest.mark.slow)]
)


def x64(on: bool = True):
    return (jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64)(on)


def numpy_env(env_id: str, **kwargs) -> gym.Env:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*is out of date", category=DeprecationWarning)
        return gym.make(env_id, **kwargs)


def state_of(env: gym.Env):
    return env.unwrapped.get_state().state


def step_numbers(env: gym.Env, count: int) -> np.ndarray:
    """What the env will draw next, without drawing it."""
    return copy.deepcopy(env.unwrapped.np_random).random(count)


def good_action(env: gym.Env, obs, rng):
    """Random, but for the cart-pole one that keeps it up, so that episodes are long."""
    if env.spec.id.startswith("NumpyCartPole"):
        return int(obs[2] + 0.5 * obs[3] > 0)
    if isinstance(env.action_space, gym.spaces.Discrete):
        return int(rng.integers(env.action_space.n))
    return rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)


def close(ours, theirs, tolerance: float) -> bool:
    return all(
        np.allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=0, atol=tolerance)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    )


def labelled(world, info: dict) -> dict:
    return {key: world.labels[key].index(value) if key in world.labels else value for key, value in info.items()}


def padded(env, u: np.ndarray) -> np.ndarray:
    """The numbers of a step, and any for what JAX draws beyond them."""
    return np.concatenate([u, np.full(env.num_draws - len(u), 0.5)])


@every_setting
def test_float64_follows_numpy_for_many_steps(env_id, kwargs):
    steps = 100 if env_id.startswith("MyEnv") else 200
    with x64():
        theirs, rng = numpy_env(env_id, **kwargs), np.random.default_rng(1)
        ours = functional.make(env_id, dtype=jnp.float64, autoreset=False, **kwargs)
        step, world = jax.jit(ours.step_from), ours.world
        obs, _ = theirs.reset(seed=3)
        state = ours.from_state(state_of(theirs))
        for _ in range(steps):
            action, u = good_action(theirs, obs, rng), step_numbers(theirs, world.step_draws)
            obs, reward, terminated, truncated, info = theirs.step(action)
            state, seen, *ends, told = step(padded(ours, u), state, action)
            assert close(state.world, state_of(theirs), 1e-9)
            assert abs(float(ends[0]) - reward) <= 1e-9
            assert (bool(ends[1]), bool(ends[2])) == (terminated, truncated)
            assert close(seen, obs, 1e-6)  # observations are float32
            assert close({k: told[k] for k in info}, labelled(world, info), 1e-9)
            if terminated or truncated:
                obs, _ = theirs.reset()
                state = ours.from_state(state_of(theirs))


@every_setting
def test_float32_agrees_with_numpy_step_by_step(env_id, kwargs):
    theirs, rng = numpy_env(env_id, **kwargs), np.random.default_rng(2)
    ours = functional.make(env_id, **kwargs)
    step = jax.jit(ours.step_from)
    obs, _ = theirs.reset(seed=5)
    for _ in range(60):
        before = ours.from_state(state_of(theirs))
        action, u = good_action(theirs, obs, rng), step_numbers(theirs, ours.world.step_draws)
        obs, reward, terminated, truncated, _ = theirs.step(action)
        after, _, ours_reward, ours_terminated, _, info = step(padded(ours, u), before, action)
        assert bool(ours_terminated) == terminated
        assert np.isclose(float(ours_reward), reward, rtol=1e-5, atol=1e-5 if env_id[:2] != "My" else 1e-4)
        assert jax.tree.all(jax.tree.map(lambda x: x.dtype in (np.float32, np.int32, bool), after))
        assert close(info["final_observation"], obs, 1e-5)
        if not terminated:
            assert close(after.world, state_of(theirs), 1e-5)
        if terminated or truncated:
            obs, _ = theirs.reset()


@FEW
def test_both_flags_where_the_end_falls_on_the_last_allowed_step(env_id):
    kwargs = {"n_obstacles": 0, "n_pedestrians": 0} if env_id == "MyEnv-v0" else {}
    action = {"NumpyCartPole-v1": 1, "GridWorld-v0": 2, "MyEnv-v0": 7}[env_id]

    def ends(limit):
        numpy, ours = (
            numpy_env(env_id, max_episode_steps=limit, **kwargs),
            functional.make(env_id, max_episode_steps=limit, **kwargs),
        )
        start = {"start": (0, 2)} if env_id == "GridWorld-v0" else {}
        numpy.reset(seed=0, options=start)
        state, step, n = ours.from_state(state_of(numpy)), jax.jit(ours.step_from), 0
        while True:
            n += 1
            theirs = numpy.step(action)[2:4]
            state, _, _, *flags, _ = step(np.full(ours.num_draws, 0.5), state, action)
            assert tuple(map(bool, flags)) == theirs
            if any(theirs):
                return n, theirs

    n, flags = ends(150)
    assert flags == (True, False)
    assert ends(n) == (n, (True, True))
    assert ends(n - 1) == (n - 1, (False, True))


@every_id
def test_reset_draws_the_numpy_distribution_from_the_same_numbers(env_id):
    with x64():
        ours = functional.make(env_id, dtype=jnp.float64)
        u = np.random.default_rng(0).random(ours.num_reset_draws)
        state, obs = jax.jit(ours.reset_from)(u)
        theirs = numpy_env(env_id)
        theirs.unwrapped._np_random = FixedNumbers(u)
        seen, _ = theirs.unwrapped.reset()
        assert close(state.world, state_of(theirs), 1e-12)
        assert close(obs, seen, 1e-6)


class FixedNumbers(np.random.Generator):
    """A generator that gives these numbers."""

    def __init__(self, u):
        super().__init__(np.random.PCG64(0))
        self._u = u

    def random(self, size=None, dtype=np.float64, out=None):
        return self._u


@every_id
def test_observations_are_members_of_the_space_and_info_keeps_its_structure(env_id):
    env = functional.make(env_id)
    step, key = jax.jit(env.step), jax.random.key(0)
    state, obs = jax.jit(env.reset)(key)
    structures = set()
    for i in range(60):
        action = i * 7 % int(env.action_space.n)
        state, obs, reward, terminated, truncated, info = step(jax.random.fold_in(key, i), state, action)
        structures.add(jax.tree.structure(info))
        for seen in (obs, info["final_observation"]):
            assert member(env.observation_space, seen)
        assert reward.dtype == np.float32
        assert terminated.dtype == truncated.dtype == bool
        assert reward.shape == terminated.shape == truncated.shape == ()
    assert len(structures) == 1


def member(space, obs) -> bool:
    if isinstance(space, gym.spaces.Dict):
        return all(member(leaf, obs[name]) for name, leaf in space.items())
    return np.array(obs, space.dtype) in space and np.asarray(obs).dtype == jax.dtypes.canonicalize_dtype(space.dtype)


@FEW
def test_jit_vmap_and_scan_agree_with_plain_calls(env_id):
    env, keys = functional.make(env_id), jax.random.split(jax.random.key(4), 3)
    states, _ = jax.jit(jax.vmap(env.reset))(keys)
    actions = jnp.array([0, 1, 1])

    def body(states, key):
        states, obs, reward, *_ = jax.vmap(env.step)(jax.random.split(key, 3), states, actions)
        return states, (obs, reward)

    step = jax.jit(env.step)
    final, (obs, rewards) = jax.jit(lambda s: jax.lax.scan(body, s, jax.random.split(jax.random.key(5), 20)))(states)
    for row in range(3):
        state, total = jax.tree.map(itemgetter(row), states), 0.0
        for t, key in enumerate(jax.random.split(jax.random.key(5), 20)):
            state, seen, reward, *_ = step(jax.random.split(key, 3)[row], state, actions[row])
            assert np.allclose(reward, rewards[t, row], atol=1e-5)
            assert np.allclose(seen, obs[t, row], atol=1e-3 if env_id[:2] == "My" else 1e-5)
            total += float(reward)
        assert np.isclose(total, float(rewards[:, row].sum()), atol=1e-4)
    assert jax.tree.structure(final) == jax.tree.structure(states)


def test_gravity_may_be_batched_and_costs_one_compilation():
    env = functional.make("NumpyCartPole-v1", autoreset=False)
    traces = []

    @jax.jit
    def step(key, state, action, params):
        traces.append(1)
        return env.step(key, state, action, params)

    key, (state, _) = jax.random.key(0), jax.jit(env.reset)(jax.random.key(1))
    state = state._replace(world=state.world._replace(theta=jnp.float32(0.1)))
    ends = [step(key, state, 1, env.params._replace(gravity=g))[0].world.theta_dot for g in (1.0, 9.8, 20.0)]
    assert len(traces) == 1
    assert ends[0] < ends[1] < ends[2]
    axes = (None, None, None, type(env.params)(*[0 if name == "gravity" else None for name in env.params._fields]))
    batch = jax.jit(jax.vmap(env.step, axes))(key, state, 1, env.params._replace(gravity=jnp.array([1.0, 9.8, 20.0])))
    assert np.allclose(batch[0].world.theta_dot, ends, rtol=1e-6)


def test_goal_and_slip_may_be_traced():
    env = functional.make("GridWorld-v0", autoreset=False)
    step = jax.jit(env.step)
    state = jax.jit(env.reset)(jax.random.key(0))[0]
    state = state._replace(world=state.world._replace(cell=jnp.int32(12)))
    for goal in (11, 13, 7):
        state = state._replace(world=state.world._replace(goal=jnp.int32(goal)))
        assert bool(step(jax.random.key(0), state, 2, env.params)[3]) == (goal == 11)
    starts = jax.jit(jax.vmap(lambda goal: env.reset(jax.random.key(0), env.params._replace(goal=goal))[0].world.goal))
    assert starts(jnp.array([3, 4])).tolist() == [3, 4]
    keys = jax.random.split(jax.random.key(1), 2000)
    state = state._replace(world=state.world._replace(goal=jnp.int32(0)))
    slippery = lambda key, slip: env.step(key, state, 2, env.params._replace(slip=slip))[0].world.cell  # noqa: E731
    cells = jax.jit(jax.vmap(slippery, (0, None)))(keys, 0.4)
    counts = {cell: int((cells == cell).sum()) for cell in (11, 7, 17)}  # ahead, and to both sides of it
    assert sum(counts.values()) == 2000
    assert abs(counts[11] - 1200) < 5 * np.sqrt(2000 * 0.6 * 0.4)
    assert abs(counts[7] - 400) < 5 * np.sqrt(2000 * 0.2 * 0.8)


def test_notice_probability_may_be_traced():
    env = functional.make("MyEnv-v0")
    reset = jax.jit(jax.vmap(lambda p: env.reset(jax.random.key(7), env.params._replace(notice_prob=p))[0].world))
    worlds = reset(jnp.array([0.0, 1.0]))
    assert not worlds.notices[0].any()
    assert worlds.notices[1].all()


@FEW
def test_float32_stays_float32_under_x64(env_id):
    def play(env):
        policy = lambda obs, u: (u * 2).astype(jnp.int32)  # noqa: E731
        return (
            jax.jit(lambda first, second: env.step(second, env.reset(first)[0], 1)),
            jax.jit(lambda key: functional.rollout(env, policy, key, 2, 10)),
        )

    first = play(functional.make(env_id))[0](jax.random.key(0), jax.random.key(1))
    with x64():
        step, roll = play(functional.make(env_id))
        second, sums = step(jax.random.key(0), jax.random.key(1)), roll(jax.random.key(0))
        assert {x.dtype for x in jax.tree.leaves(sums)} <= {np.dtype(np.float32), np.dtype(np.int32), np.dtype(bool)}
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert x.dtype == y.dtype or (x.dtype, y.dtype) == (np.int32, np.int64)  # integer observations follow x64
        assert np.allclose(x, y, atol=1e-5)


def test_float64_needs_x64_from_beginning_to_end():
    sentence = "float64 needs jax_enable_x64"
    with pytest.raises(ValueError, match=sentence):
        functional.make("GridWorld-v0", dtype=jnp.float64)
    with x64():
        env = functional.make("GridWorld-v0", dtype=jnp.float64)
        state, _ = jax.jit(env.reset)(jax.random.key(0))
    for call in (
        lambda: env.reset(jax.random.key(0)),
        lambda: env.step(jax.random.key(0), state, 1),
        lambda: env.step_from(np.zeros(1), state, 1),
        lambda: env.uniforms(jax.random.key(0), (2,)),
        lambda: functional.rollout(env, random_actions(env), jax.random.key(0), 2, 5),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()


@FEW
def test_old_and_new_keys_give_the_same(env_id):
    env = functional.make(env_id)
    play = jax.jit(lambda first, second: env.step(second, env.reset(first)[0], 1))
    new = play(jax.random.key(2), jax.random.key(3))
    old = play(jax.random.PRNGKey(2), jax.random.PRNGKey(3))
    assert jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), new, old))
    policy = lambda obs, u: (u * 2).astype(jnp.int32)  # noqa: E731
    roll = jax.jit(lambda key: functional.rollout(env, policy, key, 2, 9)[:4])
    assert roll(jax.random.key(1)) == roll(jax.random.PRNGKey(1))
    jax.jit(env.reset)(jax.random.key(0, impl="rbg"))


@FEW
def test_no_key_is_used_twice(env_id):
    env = functional.make(env_id)
    policy = lambda obs, u: (u * 2).astype(jnp.int32)  # noqa: E731
    with jax.debug_key_reuse(True):
        state, _ = jax.jit(env.reset)(jax.random.key(0))
        jax.jit(env.step)(jax.random.key(1), state, 1)
        jax.jit(lambda key: functional.rollout(env, policy, key, 2, 30))(jax.random.key(2))


def test_seeds_differ_and_repeat():
    env = functional.make("NumpyCartPole-v1")
    reset = jax.jit(env.reset)
    starts = [np.asarray(reset(jax.random.key(seed))[1]) for seed in (0, 1, 0)]
    assert (starts[0] == starts[2]).all()
    assert (starts[0] != starts[1]).all()


def test_autoreset_shows_the_last_observation_and_starts_anew():
    env, alone = (functional.make("NumpyCartPole-v1", autoreset=on) for on in (True, False))
    state, _ = env.reset(jax.random.key(0))
    other, starts, rng = state, [], np.random.default_rng(0)
    step, step_alone = jax.jit(env.step_from), jax.jit(alone.step_from)
    for _ in range(60):
        u = rng.random(env.num_draws)
        state, obs, reward, terminated, _, info = step(u, state, 1)
        other, seen, *_ = step_alone(u[: alone.num_draws], other, 1)
        assert (info["final_observation"] == seen).all()
        assert (obs == seen).all() != bool(terminated)
        if terminated:
            assert reward == 1
            assert int(state.steps) == 0
            assert np.abs(obs).max() <= 0.05
            starts.append(np.asarray(obs))
            other = state
    assert len(starts) > 2
    assert not np.array_equal(starts[0], starts[1])


def test_without_autoreset_a_terminated_state_absorbs_and_a_truncated_one_goes_on():
    env = functional.make("NumpyCartPole-v1", autoreset=False)
    state, _ = env.reset(jax.random.key(0))
    step = jax.jit(env.step)
    for i in range(30):
        state, _, reward, terminated, *_ = step(jax.random.key(i), state, 1)
        if terminated:
            break
    assert reward == 1
    after, _, reward, terminated, truncated, _ = step(jax.random.key(9), state, 0)
    assert (float(reward), bool(terminated), bool(truncated)) == (0.0, True, False)
    assert jax.tree.all(jax.tree.map(lambda x, y: bool(x == y), after, state))
    env = functional.make("GridWorld-v0", autoreset=False, max_episode_steps=2)
    state, _ = env.reset(jax.random.key(0))
    for truncated in (False, True, True):
        before = state.world.cell
        state, _, _, terminated, cut, _ = env.step(jax.random.key(1), state, 3)
        assert (bool(terminated), bool(cut)) == (False, truncated)
        assert state.world.cell == before - 5


def test_a_bad_action_counts_as_action_0():
    env = functional.make("GridWorld-v0")
    step, state = jax.jit(env.step), jax.jit(env.reset)(jax.random.key(0))[0]
    state = state._replace(world=state.world._replace(cell=jnp.int32(12)))
    ends = {action: step(jax.random.key(0), state, action)[1].tolist() for action in (0, -1, 4, 5, 2**31 - 1)}
    ends["byte"] = step(jax.random.key(0), state, np.uint8(255))[1].tolist()
    assert set(map(tuple, ends.values())) == {(2, 3)}


class Place(NamedTuple):
    """A point in the plane."""

    at: Any  # (2, ...)


def plane() -> World:
    """An own world with continuous actions and a step that draws: the action is added, and a little noise."""
    return World(
        params=Place(0.01),
        initial_state=lambda xp, params, u: Place(u * 0.0),
        transition=lambda xp, params, state, action, u: Place(state.at + action + params.at * u),
        outcome=lambda xp, params, state, action, after: (after.at[0], after.at[1] > 3),
        observe=lambda xp, params, state: (state.at,),
        action_space=gym.spaces.Box(-1, 1, (2,), np.float32),
        observation_space=gym.spaces.Box(-9, 9, (2,), np.float32),
        reset_draws=2,
        step_draws=2,
    )


def test_an_own_world_with_continuous_actions_and_bad_ones_among_them():
    env = functional.JaxEnv(plane(), max_episode_steps=5)
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    step = jax.jit(env.step_from)
    moved, *_ = step(np.array([0.5, 1.0, 0, 0]), state, np.array([0.25, -1.0]))
    assert np.allclose(moved.world.at, [0.255, -0.99])
    zero = step(np.zeros(4), state, jnp.zeros(2))
    for bad in ([np.nan, 0.5], [1.5, 0.0], [0.3, -np.inf]):
        treated = step(np.zeros(4), state, jnp.array(bad))
        assert jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), treated, zero))
    forward = lambda obs, u: jnp.stack([jnp.zeros_like(u), jnp.ones_like(u)], -1)  # noqa: E731
    stats = jax.jit(lambda key: functional.rollout(env, forward, key, 3, 20))(jax.random.key(1))
    assert int(stats.num_episodes) == 18
    assert int(stats.length_sum) == 18 * 3  # a little beyond 1, 2, 3


@pytest.mark.parametrize("shape", [[1, 2], [5, 8], [300, 2]])
def test_grid_edges_hold_in_every_direction(shape):
    env = functional.make("GridWorld-v0", size=shape, goal=[0, 0], start=[shape[0] - 1, shape[1] - 1], autoreset=False)
    step = jax.jit(env.step_from)
    for action in range(4):
        state, _ = env.reset(jax.random.key(0))
        for _ in range(max(shape) + 5):
            state, obs, *_ = step(np.zeros(env.num_draws), state, action)
            assert (np.asarray(obs) >= 0).all()
            assert (np.asarray(obs) < shape).all()


def random_actions(env):
    return lambda obs, u: jnp.floor(u * env.action_space.n).astype(jnp.int32)


@FEW
def test_rollout_is_a_loop_over_step_from(env_id, monkeypatch):
    env, (rows, steps) = functional.make(env_id, max_episode_steps=12), (3, 50)
    monkeypatch.setattr(rollouts, "BLOCK_NUMBERS", 7 * rollouts._draws_ahead(env) * rows)  # blocks of 6, and a rest
    policy, key = random_actions(env), jax.random.key(11)
    stats = jax.jit(lambda key: functional.rollout(env, policy, key, rows, steps))(key)
    first, u = jax.jit(lambda key: functional.rollout_uniforms(env, key, rows, steps))(key)
    assert u.shape == (steps, 1 + env.num_draws, rows)
    assert (u[1:] != u[:-1]).all()
    step, reset = jax.jit(jax.vmap(env.step_from, (-1, 0, 0))), jax.jit(jax.vmap(env.reset_from, -1))
    state, obs = reset(first)
    running, length = np.zeros(rows), np.zeros(rows, int)
    sums = np.zeros(4)
    for t in range(steps):
        state, obs, reward, terminated, truncated, _ = step(u[t, 1:], state, policy(obs, u[t, 0]))
        done, running, length = np.asarray(terminated | truncated), running + np.asarray(reward), length + 1
        sums += float(reward.sum()), done.sum(), running[done].sum(), length[done].sum()
        running[done], length[done] = 0, 0
    assert np.allclose([float(x) for x in stats[:4]], sums, atol=1e-3)
    assert int(stats.num_episodes) == sums[1] > 0
    assert close(stats.state, state, 1e-3)


def test_rollout_sees_observations():
    env = functional.make("NumpyCartPole-v1")

    def act(obs, u, careful):
        return jnp.where(careful, obs[:, 2] + obs[:, 3] > 0, u < 0.5).astype(int)

    play = jax.jit(lambda careful: functional.rollout(env, partial(act, careful=careful), jax.random.key(0), 8, 400))
    upright, random = play(True), play(False)
    assert float(upright.return_sum) >= 0
    assert int(upright.num_episodes) < int(random.num_episodes) / 5
    assert 18 < float(random.return_sum / random.num_episodes) < 28  # about 22 under random play


def test_rollout_memory_does_not_grow_with_the_steps():
    env = functional.make("NumpyCartPole-v1")

    def peak(steps):
        run = jax.jit(lambda key: functional.rollout(env, random_actions(env), key, 64, steps)[:4])
        return run.lower(jax.random.key(0)).compile().memory_analysis().temp_size_in_bytes

    assert peak(100_000) < 1.1 * peak(10_000)


def test_rollout_refuses_senseless_arguments():
    env = functional.make("GridWorld-v0")
    frozen, key, act = functional.make("GridWorld-v0", autoreset=False), jax.random.key(0), random_actions(env)
    for arguments, error, match in [
        ((env, act, key, 0, 5), ValueError, "num_envs must be at least 1, not 0"),
        ((env, act, key, 2, -5), ValueError, "num_steps must be at least 1, not -5"),
        ((env, act, key, 2.5, 5), TypeError, "num_envs must be an integer, not 2.5"),
        ((env, act, 0, 2, 5), TypeError, "key must be one of JAX's keys.*not 0"),
        ((env, lambda obs, u: 0, key, 2, 5), ValueError, r"actions of shape \(2,\), not \(\)"),
        ((frozen, act, key, 2, 5), ValueError, "autoreset"),
        ((gym.make("GridWorld-v0"), act, key, 2, 5), TypeError, "functional.make, not <TimeLimit"),
    ]:
        with pytest.raises(error, match=match):
            functional.rollout(*arguments)


@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 5, 1), (0, 4)])
def test_uniforms_are_jax_numbers(shape):
    key = jax.random.key(12)
    inner = jax.random.wrap_key_data(jax.random.bits(key, (2,)), impl="threefry2x32")
    ours = jax.jit(functional.uniforms, static_argnums=1)(key, shape)
    assert ours.shape == shape
    assert (ours == jax.random.uniform(inner, shape)).all()


def test_stages_change_no_result_and_hide_from_xla_what_several_places_read():
    from gym_custom.functional.stages import in_stages

    def rule(x, settings):
        order = jnp.argsort(x, axis=0)
        for _ in range(3):  # each element of a sum is read at two places of the next
            x = jnp.where(x[::-1] > settings["low"], x[::-1] * 0.5, x % 3) + jnp.concatenate([x[1:], x[:1]])
        return {"sum": x, "sorted": jnp.take_along_axis(x, order, 0), "least": x.min(0), "same": settings["low"]}

    x, settings = jnp.asarray(np.random.default_rng(0).normal(size=(5, 40)), jnp.float32), {"low": jnp.float32(0.1)}
    staged = in_stages(rule)
    assert close(staged(x, settings), rule(x, settings), 1e-6)
    assert close(jax.vmap(staged, (1, None))(x, settings)["sum"].T, rule(x, settings)["sum"], 1e-6)
    both = [jax.jit(f).lower(x, settings).compile().as_text() for f in (staged, rule)]
    assert both[0].count(" call(") > 6 > both[1].count(" call(")


def test_calls_outside_of_jit_compile_the_rules_of_many_objects_but_once():
    world, traces = plane(), []

    def counted(*args):
        traces.append(1)
        return world.transition(*args)

    assert not world.scalar
    env = functional.JaxEnv(dataclasses.replace(world, transition=counted))
    state = env.from_state(Place(np.zeros(2)))
    for _ in range(3):
        state, *_ = env.advance(jnp.zeros(2), state, jnp.ones(2))
    assert len(traces) == 1


def test_making_many_envs_leaks_nothing():
    def once():
        env = functional.make("GridWorld-v0")
        play = jax.jit(lambda first, second: env.step(second, env.reset(first)[0], 1))
        jax.block_until_ready(play(jax.random.key(0), jax.random.key(1)))

    counts = []
    for _ in range(3):
        once()
        gc.collect()
        counts.append((len(jax.live_arrays()), sum(type(x) is functional.JaxEnv for x in gc.get_objects())))
    assert counts[1] == counts[2]


def test_unknown_ids_and_foreign_worlds_are_refused():
    with pytest.raises(UnregisteredEnv):
        functional.make("NoSuchWorld-v0")
    with pytest.raises(ValueError, match="CartPole-v1"):
        functional.make("CartPole-v1")
    assert functional.make("GridWorld-v0", max_episode_steps=-1).max_episode_steps is None


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps must be at least 1, not 0"),
        ({"max_episode_steps": 1.5}, TypeError, "max_episode_steps must be an integer, not 1.5"),
        ({"dtype": np.float16}, ValueError, "float32 or float64, not float16"),
        ({"dtype": "real"}, TypeError, "float32 or float64, not 'real'"),
        ({"autoreset": "no"}, TypeError, "autoreset must be True or False, not 'no'"),
        ({"name": None}, TypeError, "not None"),
        ({"gravity": 9.8}, TypeError, "no argument 'gravity'"),
        ({"slip": 2}, ValueError, "slip .* not 2"),
    ],
)
def test_senseless_arguments_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        functional.make(**{"name": "GridWorld-v0"} | arguments)


def test_senseless_keys_numbers_actions_and_params_get_one_sentence():
    env, other = functional.make("NumpyCartPole-v1"), functional.make("GridWorld-v0")
    key, state = jax.random.key(0), jax.jit(env.reset)(jax.random.key(0))[0]
    heavy = env.params._replace
    for call, error, match in [
        (lambda: env.reset(0), TypeError, r"jax.random.key\(0\), not 0"),
        (lambda: env.reset(np.random.default_rng(0)), TypeError, "not Generator"),
        (lambda: env.reset(jnp.zeros(2)), TypeError, "not Array"),
        (lambda: env.reset(jax.random.split(key, 3)), ValueError, r"not of shape \(3,\)"),
        (lambda: env.reset(jax.random.split(jax.random.PRNGKey(0), 3)), ValueError, r"not of shape \(3, 2\)"),
        (lambda: env.uniforms(3, (2,)), TypeError, "not 3"),
        (lambda: env.reset_from(np.zeros(3)), ValueError, r"4 uniforms.*not \(3,\)"),
        (lambda: env.step_from(np.zeros(5), state, 0), ValueError, r"4 uniforms.*not \(5,\)"),
        (lambda: env.step(state, key, 0), TypeError, "key must be .* not EnvState"),
        (lambda: env.step(key, state.world, 0), TypeError, "state must come from .* not State"),
        (lambda: env.step(key, state, 1.0), TypeError, "integers, got float32"),
        (lambda: env.step(key, state, None), TypeError, "the action must be .* not None"),
        (lambda: env.step(key, state, "left"), TypeError, "the action must be .* not 'left'"),
        (lambda: env.step(key, state, jnp.zeros(3, int)), ValueError, r"of shape \(\), not \(3,\)"),
        (lambda: env.reset(key, other.params), TypeError, r"env.params.* not Params\(next_cell"),
        (lambda: env.reset(key, {"gravity": 1.6}), TypeError, "env.params.* not {'gravity': 1.6}"),
        (lambda: env.step(key, state, 0, heavy(masscart=jnp.ones(3))), ValueError, r"params.masscart .* not \(3,\)"),
        (lambda: env.step(key, state, 0, heavy(masscart=None)), TypeError, "params.masscart .* not None"),
        (lambda: functional.as_func_env("GridWorld-v0", autoreset=True), TypeError, "a FuncEnv has no autoreset"),
    ]:
        with pytest.raises(error, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)


# --- JaxVectorEnv


def play(env, steps, seed=0):
    env.action_space.seed(1)
    return [env.reset(seed=seed)] + [env.step(env.action_space.sample()) for _ in range(steps)]


def same(x, y) -> bool:
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(same(x[k], y[k]) for k in x)
    if isinstance(x, tuple | list):
        return len(x) == len(y) and all(map(same, x, y))
    if x is None or y is None or x.dtype == object:
        return x is y or (x is not None and y is not None and all(map(same, x.ravel(), y.ravel())))
    return x.dtype == y.dtype and np.array_equal(x, y)


@every_id
def test_vector_env_has_the_form_of_the_numpy_one(env_id):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*is out of date", category=DeprecationWarning)
        theirs = gym.make_vec(env_id, num_envs=3, autoreset_mode=AutoresetMode.SAME_STEP, max_episode_steps=6)
    ours = functional.JaxVectorEnv(env_id, 3, max_episode_steps=6)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    counts = np.zeros(3, int)
    for one, other in zip(play(ours, 25), play(theirs, 25), strict=True):
        assert one[0] in ours.observation_space
        shapes = lambda info: {k: (v.dtype, v.shape) for k, v in info.items() if "final" not in k}  # noqa: E731
        assert shapes(one[-1]) == shapes(other[-1])
        if len(one) == 2:
            continue
        assert [(x.dtype, x.shape) for x in one[1:4]] == [(x.dtype, x.shape) for x in other[1:4]]
        counts += 1
        ended = one[2] | one[3]
        assert (one[3] == (counts == 6)).all()
        counts[ended] = 0
        assert ("final_obs" in one[4]) == ended.any()
        if ended.any():
            assert (one[4]["_final_obs"] == ended).all()
            assert one[4]["final_info"].keys() == {k for k in one[4] if "final" not in k}
            for row in np.flatnonzero(ended):
                assert one[4]["final_obs"][row] in ours.single_observation_space


def test_vector_env_repeats_its_seeds_and_keeps_rows_apart():
    env = functional.JaxVectorEnv("NumpyCartPole-v1", 3)
    assert same(play(env, 40, seed=4), play(env, 40, seed=4))
    assert not same(play(env, 1, seed=4), play(env, 1, seed=5))
    told = []
    for seeds, others in (([5, 2**70, 7], (0, 1)), ([2**70, 8, 9], (1, 0))):
        env.reset(seed=seeds)
        row = seeds.index(2**70)
        steps = (env.step(np.insert([o ^ (i % 2) for o in others], row, 1)) for i in range(80))
        told.append([(obs[row].tolist(), reward[row]) for obs, reward, *_ in steps])
    assert told[0] == told[1]


def test_vector_env_returns_its_own_memory_and_survives_pickling():
    env = functional.JaxVectorEnv("NumpyCartPole-v1", 2)
    obs, _ = env.reset(seed=0)
    kept = obs.copy()
    env.step([0, 1])
    assert (obs == kept).all()
    obs[...] = 9
    twin = pickle.loads(pickle.dumps(env))
    assert same(env.step([1, 1]), twin.step([1, 1]))


def test_vector_env_resets_chosen_rows_with_options():
    env = functional.JaxVectorEnv("GridWorld-v0", 3, observation="goal")
    with pytest.raises(ResetNeeded):
        env.step([0, 0, 0])
    with pytest.raises(ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    env.reset(seed=0)
    before = env.step([3, 3, 3])[0]["observation"]
    options = {"reset_mask": np.array([False, True, False]), "start": (1, 2)}
    after, info = env.reset(options=options)
    assert after["observation"].tolist() == [before[0].tolist(), [1, 2], before[2].tolist()]
    assert info["_is_success"].tolist() == [False, True, False]
    assert options.keys() == {"reset_mask", "start"}
    assert env.step([0, 0, 0])[0]["observation"][1].tolist() == [1, 3]


def test_vector_env_refuses_bad_actions_and_arguments():
    env = functional.JaxVectorEnv("GridWorld-v0", 2)
    env.reset(seed=0)
    for bad, error in (([0, 4], ValueError), ([0, -1], ValueError), ([0.0, 1.0], TypeError), ([0], ValueError)):
        with pytest.raises(error):
            env.step(bad)
    for bad, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="num_envs must be"):
            functional.JaxVectorEnv("GridWorld-v0", bad)
    assert functional.JaxVectorEnv("GridWorld-v0", np.int64(2)).num_envs == 2
    with pytest.raises(TypeError, match="options must be a dict"):
        env.reset(options=3)
    with pytest.raises(ValueError, match="render_mode"):
        functional.JaxVectorEnv("GridWorld-v0", 1, render_mode="NON_VALID")


@FEW
def test_gymnasiums_wrappers_run_on_the_vector_env(env_id):
    env = NormalizeReward(RecordEpisodeStatistics(functional.JaxVectorEnv(env_id, 3, max_episode_steps=20)))
    env.reset(seed=0)
    lengths = []
    env.action_space.seed(0)
    for _ in range(60):
        info = env.step(env.action_space.sample())[-1]
        lengths += info["episode"]["l"][info["_episode"]].tolist() if "episode" in info else []
    assert lengths
    assert all(1 <= length <= 20 for length in lengths)


def test_vector_env_draws_one_picture_a_row():
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    env = functional.JaxVectorEnv("NumpyCartPole-v1", 2, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(5):
        env.step([0, 1])
    frames = env.render()
    assert len(frames) == 2
    assert all(frame.dtype == np.uint8 and frame.ndim == 3 for frame in frames)
    assert not np.array_equal(*frames)
    env.close()
    text = functional.JaxVectorEnv("GridWorld-v0", 2, render_mode="ansi")
    text.reset(seed=0)
    assert all(isinstance(row, str) for row in text.render())


# --- FuncEnv


@FEW
def test_func_env_runs_in_gymnasiums_own_env(env_id):
    from gymnasium.envs.functional_jax_env import FunctionalJaxEnv

    env, plain = FunctionalJaxEnv(functional.as_func_env(env_id)), functional.make(env_id, autoreset=False)
    obs, info = env.reset(seed=0)
    state = plain.from_state(env.state.world)
    assert info.keys() == plain.info(state).keys()
    step = jax.jit(plain.step)
    for action in (1, 0, 1, 1, 0):
        obs, reward, terminated, truncated, info = env.step(action)
        state, seen, expected, ended, _, told = step(jax.random.key(0), state, action)
        assert close(obs, seen, 1e-6)
        assert np.isclose(reward, float(expected), atol=1e-5)
        assert terminated == bool(ended)
        assert truncated is False
        assert info.keys() | {"final_observation"} == told.keys()


def test_func_env_takes_params_and_transformations():
    env = functional.as_func_env("NumpyCartPole-v1")
    state, push = jax.jit(env.initial)(jax.random.key(0)), jax.jit(env.transition)
    heavy = push(state, 1, jax.random.key(1), env.default_params._replace(masscart=100.0))
    usual = push(state, 1, jax.random.key(1), env.default_params)
    assert abs(heavy.world.x_dot) < abs(usual.world.x_dot)
    env.transform(jax.vmap)
    env.transform(jax.jit)
    keys = jax.random.split(jax.random.key(0), 4)
    states = env.transition(env.initial(keys), jnp.ones(4, int), keys)
    assert env.observation(states, keys).shape == (4, 4)
    assert env.terminal(states, keys).shape == (4,)
