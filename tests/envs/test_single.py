"""The single env over worlds of one's own, and the ways in which worlds are found and registered."""

from __future__ import annotations

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from contract import same
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import gym_custom
from gym_custom.drivers.single_rules import _called, single_rules
from gym_custom.drivers.state_layout import StateLayout
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import load_world, make_world, plain_params

CARTPOLE, GRIDWORLD = "gym_custom.cartpole:make_world", "gym_custom.gridworld:make_world"
BALLOON, SWARM = "worlds:make_balloon", "worlds:make_swarm"
WORLDS = [
    (CARTPOLE, {}),
    (CARTPOLE, {"precision": "float32"}),
    (CARTPOLE, {"integrator": "semi-implicit", "cart_friction": 0.4, "sutton_barto_reward": True}),
    (GRIDWORLD, {"layout": "cliff", "slip": 0.2}),
    (BALLOON, {}),
    (BALLOON, {"precision": "float32"}),
    (SWARM, {}),
    (SWARM, {"counted": True}),
    ("gym_custom.my_env:make_world", {}),
    ("gym_custom.my_env:make_world", {"observation": "partial", "n_pedestrians": 1}),
    ("gym_custom.my_env:make_world", {"observation": "state", "n_obstacles": 0}),
]
every_world = pytest.mark.parametrize(("world", "kwargs"), WORLDS, ids=lambda value: str(value))


def play(env: SingleEnv, steps: int, seed: int) -> list:
    rng = np.random.default_rng(seed)
    results = [env.reset(seed=seed)]
    for _ in range(steps):
        space = env.action_space
        discrete = isinstance(space, gym.spaces.Discrete)
        action = int(rng.integers(space.n)) if discrete else rng.uniform(-1, 1, space.shape).astype(np.float32)
        results.append(env.step(action))
        if results[-1][2]:
            results.append(env.reset())
    return results


@every_world
def test_gymnasiums_checker_passes(world, kwargs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*(infinity|symmetric|no spec|not at the normal|normalized)")
        check_env(SingleEnv(world, **kwargs), skip_render_check=True)


@every_world
def test_compiled_rules_are_the_rules_to_the_last_bit(world, kwargs):
    made = make_world(world, kwargs)
    fast, env = single_rules(made), SingleEnv(world, **kwargs)
    slow = _called(made, StateLayout(made, plain_params(made.params)), fast.scalar)
    env.reset(seed=0)
    expected = play(env, 150, seed=1)
    env._step, env._rules = slow.step, slow
    assert same(play(env, 150, seed=1), expected)


def test_what_is_elementwise_is_compiled_and_what_is_not_is_called():
    def is_compiled(world: str, **kwargs) -> bool:
        return single_rules(make_world(world, kwargs)).step.__qualname__.startswith("_compiled")

    assert is_compiled(CARTPOLE)
    assert is_compiled(GRIDWORLD, slip=0.2)
    assert is_compiled(BALLOON)
    assert not is_compiled(CARTPOLE, precision="float32")
    assert not is_compiled(SWARM)


@every_world
def test_a_copy_goes_on_alike(world, kwargs):
    env = SingleEnv(world, **kwargs)
    play(env, 30, seed=2)
    env.action_space.seed(0)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        mine = copy.deepcopy(env)
        assert same(mine.step(mine.action_space.sample()), twin.step(twin.action_space.sample()))
        assert same(mine.reset(), twin.reset())


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
def test_an_env_with_a_picture_is_copied_without_it(mode):
    env = SingleEnv(CARTPOLE, render_mode=mode)
    env.reset(seed=0), env.step(1), env.render()
    twin = pickle.loads(pickle.dumps(env))
    assert twin._canvas is None
    assert same(env.step(0), twin.step(0))
    env.close(), env.close()
    assert same(env.step(1), twin.step(1))  # closing one harms nobody
    twin.close()


@settings(max_examples=30, deadline=None)
@given(which=st.sampled_from(WORLDS), seed=st.integers(0, 2**31), before=st.integers(0, 30))
def test_set_state_brings_the_very_same_future(which, seed, before):
    world, kwargs = which
    env, other = SingleEnv(world, **kwargs), SingleEnv(world, **kwargs)
    play(env, before, seed)
    snapshot = env.get_state()
    other.reset(seed=99)
    other.np_random = copy.deepcopy(env.np_random)
    other.set_state(snapshot)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        space = env.action_space
        discrete = isinstance(space, gym.spaces.Discrete)
        action = int(rng.integers(space.n)) if discrete else rng.uniform(-1, 1, space.shape)
        one, two = env.step(action), other.step(action)
        assert same(one, two)
        if one[2]:
            break


def test_a_snapshot_is_no_view_of_the_env():
    env = SingleEnv(SWARM)
    env.reset(seed=0)
    snapshot = env.get_state()
    kept = snapshot.state.places.copy()
    env.step(np.ones(2))
    snapshot.state.closest  # noqa: B018
    assert np.array_equal(snapshot.state.places, kept)
    env.set_state(snapshot)
    snapshot.state.places[...] = 7.0
    assert np.array_equal(env.get_state().state.places, kept)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (np.array([0.0, 1.5]), ValueError),
        (np.array([0.0, np.nan]), ValueError),
        (np.zeros(3), ValueError),
        (0.5, ValueError),
        ("left", TypeError),
        (None, TypeError),
    ],
)
def test_points_outside_a_box_are_refused(action, error):
    env, rows = SingleEnv(SWARM), BatchEnv(2, SWARM)
    env.reset(seed=0), rows.reset(seed=0)
    with pytest.raises(error, match="must be numbers of shape"):
        env.step(action)
    with pytest.raises((ValueError, TypeError), match="must be numbers of shape"):
        rows.step([action, action])


def test_labels_become_words_and_numbers_python_ones():
    env = SingleEnv(BALLOON)
    _, info = env.reset(seed=0, options={"place": -0.5})
    assert info == {"side": "left", "calm": env.get_state().state.gusts == 0, "distance": 0.5}
    assert [type(value) for value in info.values()] == [str, bool, float]
    rows = BatchEnv(2, BALLOON)
    _, infos = rows.reset(seed=0, options={"place": -0.5})
    assert infos["side"].tolist() == ["left", "left"]
    assert infos["side"].dtype == object


# --- finding and registering


@pytest.fixture
def registered():
    gym_custom.register_world("Balloon-v0", BALLOON, max_episode_steps=30, reward_threshold=12.0, strength=0.1)
    yield "Balloon-v0"
    del gym.registry["Balloon-v0"]


def test_a_registered_world_is_made_single_and_as_a_batch(registered):
    env, rows = gym.make(registered), gym.make_vec(registered, num_envs=3)
    assert env.spec.reward_threshold == 12.0
    assert env.unwrapped._params.strength == rows.unwrapped._params.strength == 0.1
    sync = gym.make_vec(registered, num_envs=3, vectorization_mode="sync")
    assert same(rows.reset(seed=1), sync.reset(seed=1))
    for t in range(80):
        assert same(rows.step([t % 3, 0, 2]), sync.step(np.array([t % 3, 0, 2])))
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert same(env.reset(seed=3), again.reset(seed=3))


def test_the_callers_arguments_go_over_the_registrations(registered):
    assert gym.make(registered, strength=0.7).unwrapped._params.strength == 0.7
    assert load_world(registered)[0].params.strength == 0.1
    assert load_world(registered, strength=0.7)[0].params.strength == 0.7
    assert load_world(registered)[1] == 30


def test_registering_the_same_again_is_silent_and_another_warns(registered):
    gym_custom.register_world("Balloon-v0", BALLOON, max_episode_steps=30, reward_threshold=12.0, strength=0.1)
    with pytest.warns(UserWarning, match="Overriding"):
        gym_custom.register_world("Balloon-v0", SWARM)


def test_a_world_is_found_by_id_spec_or_path():
    by_id, steps = load_world("NumpyCartPole-v1", gravity=3.0)
    by_spec, _ = load_world(gym.spec("NumpyCartPole-v1"), gravity=3.0)
    by_path, none = load_world(CARTPOLE, gravity=3.0)
    by_module, _ = load_world("gym_custom:NumpyCartPole-v1", gravity=3.0)
    assert by_id.params == by_spec.params == by_path.params == by_module.params
    assert (steps, none) == (500, None)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("CartPole-v1", ValueError, "CartPole-v1 is no world"),
        ("Unheard-v0", gym.error.NameNotFound, "Unheard"),
        ("worlds:absent", ValueError, "has no 'absent'"),
        ("worlds:Wind", TypeError, "must return a World"),
    ],
)
def test_what_is_no_world_is_refused(name, error, words):
    with pytest.raises(error, match=words):
        load_world(name)
