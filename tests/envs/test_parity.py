"""CartPole against Gymnasium's, whose attributes are set where it has one for an argument."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from contract import make, same
from gymnasium.envs.classic_control.cartpole import CartPoleEnv as Reference
from hypothesis import given, settings
from hypothesis import strategies as st

import gym_custom.cartpole
from gym_custom.cartpole import CartPoleEnv, dynamics

assert gym_custom.cartpole

ATTRIBUTES = {
    "gravity": "gravity",
    "masscart": "masscart",
    "masspole": "masspole",
    "length": "length",
    "force_mag": "force_mag",
    "tau": "tau",
    "integrator": "kinematics_integrator",
    "x_threshold": "x_threshold",
    "theta_threshold": "theta_threshold_radians",
}
OTHER = {
    "gravity": 1.6,
    "masscart": 2.0,
    "masspole": 0.5,
    "length": 1.3,
    "force_mag": 4.0,
    "tau": 0.05,
    "integrator": "semi-implicit",
    "x_threshold": 0.1,
    "theta_threshold": 0.05,
}


def reference(sutton_barto_reward: bool = False, **arguments) -> Reference:
    """Gymnasium's env under other physics; what it derives in its constructor is derived again."""
    env = Reference(sutton_barto_reward=sutton_barto_reward)
    for name, value in arguments.items():
        setattr(env, ATTRIBUTES[name], value)
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length
    return env


def episode(env: gym.Env, seed: int, bias: float, options=None, steps: int = 600) -> list:
    """Results of one episode under biased random pushes, the first observation first."""
    rng = np.random.default_rng(seed)
    results = [env.reset(seed=seed, options=options)]
    for _ in range(steps):
        results.append(env.step(int(rng.random() < bias)))
        if results[-1][2] or results[-1][3]:
            break
    return results


@pytest.mark.parametrize(("ours", "theirs"), [("NumpyCartPole-v0", "CartPole-v0"), ("NumpyCartPole-v1", "CartPole-v1")])
def test_the_ids_equal_gymnasiums_to_the_end_of_episodes(ours, theirs):
    one, other = make(ours), make(theirs)
    for seed in range(60):
        assert same(episode(one, seed, 0.5), episode(other, seed, 0.5))
    assert one.observation_space == other.observation_space
    assert one.action_space == other.action_space
    assert one.metadata["render_fps"] == other.metadata["render_fps"]


def test_balancing_to_the_limit_equals_gymnasiums():
    one, other = gym.make("NumpyCartPole-v1"), gym.make("CartPole-v1")
    for seed in range(5):
        observation, expected = one.reset(seed=seed), other.reset(seed=seed)
        for _ in range(500):
            assert same(observation, expected)
            push = int(expected[0][2] + 0.3 * expected[0][3] > 0)
            observation, expected = one.step(push), other.step(push)
        assert expected[3]
        assert same(observation, expected)


@pytest.mark.parametrize("name", OTHER)
def test_an_argument_does_what_gymnasiums_attribute_does(name):
    value = OTHER[name]
    changed = 0
    for seed in range(20):
        ours = episode(CartPoleEnv(**{name: value}), seed, 0.5)
        assert same(ours, episode(reference(**{name: value}), seed, 0.5))
        changed += not same(ours, episode(reference(), seed, 0.5))
    assert changed


@settings(max_examples=40, deadline=None)
@given(
    arguments=st.fixed_dictionaries(
        {},
        optional={
            "gravity": st.floats(0.0, 50.0),
            "masscart": st.floats(0.05, 20.0),
            "masspole": st.floats(0.01, 5.0),
            "length": st.floats(0.05, 5.0),
            "force_mag": st.floats(0.0, 60.0),
            "tau": st.floats(0.001, 0.1),
            "integrator": st.sampled_from(["euler", "semi-implicit"]),
            "x_threshold": st.floats(0.06, 10.0),
            "theta_threshold": st.floats(0.06, 3.0),
        },
    ),
    sutton_barto=st.booleans(),
    seed=st.integers(0, 2**31),
    bias=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_any_arguments_equal_gymnasiums(arguments, sutton_barto, seed, bias):
    ours = episode(CartPoleEnv(**arguments, sutton_barto_reward=sutton_barto), seed, bias, steps=200)
    assert same(ours, episode(reference(sutton_barto, **arguments), seed, bias, steps=200))


def test_the_sutton_barto_reward_is_zero_until_the_fall():
    rewards = [result[1] for result in episode(CartPoleEnv(sutton_barto_reward=True), 0, 1.0)[1:]]
    assert rewards == [0.0] * (len(rewards) - 1) + [-1.0]
    assert same(
        episode(CartPoleEnv(sutton_barto_reward=True), 0, 1.0), episode(reference(sutton_barto_reward=True), 0, 1.0)
    )


@pytest.mark.parametrize("options", [{"low": -0.2, "high": 0.1}, {"low": 0.0}, {"high": 0.3}, {}, {"other": 1}])
def test_reset_options_are_gymnasiums(options):
    ours, theirs = CartPoleEnv(), reference()
    for seed in range(10):
        assert same(episode(ours, seed, 0.5, options), episode(theirs, seed, 0.5, options))
        assert same(ours.reset(), theirs.reset())  # the options were for one episode, the generator goes on


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"low": "a"}, "must be a number"),
        ({"low": None}, r"options\['low'\] must be a number from -1e\+09 to 1e\+09, not None"),
        ({"high": [0.1]}, "must be a number"),
        ({"low": math.nan}, "must be a number"),
        ({"high": math.inf}, "must be a number"),
        ({"low": -1e308, "high": 1e308}, "must be a number"),
        ({"high": 10**400}, "must be a number"),
        ({"low": 1.0, "high": 0.0}, "must not exceed"),
    ],
)
def test_senseless_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        CartPoleEnv().reset(seed=0, options=options)


def test_friction_is_a_force_against_the_motion():
    """One step by hand: friction of b at speed v is the same as a push smaller by b v."""
    params = dynamics.Params(cart_friction=2.0)
    state = dynamics.State(0.1, 0.7, 0.05, -0.3)
    with_friction = dynamics.accelerations(np, params, state, 1.0)
    weaker_push = dynamics.Params(force_mag=10.0 - 2.0 * 0.7)
    assert with_friction == pytest.approx(dynamics.accelerations(np, weaker_push, state, 1.0), rel=1e-15)


def test_friction_takes_energy():
    """Without a push and without gravity, a cart slows down by exp(-b t / m) if the pole has hardly any mass."""
    env = CartPoleEnv(
        cart_friction=1.0, force_mag=0.0, gravity=0.0, masspole=1e-9, tau=0.001, x_threshold=1e3, theta_threshold=1e3
    )
    env.reset(seed=0)
    env.set_state(env.get_state()._replace(state=dynamics.State(0.0, 2.0, 0.0, 0.0)))
    for _ in range(1_000):
        env.step(0)
    assert env.get_state().state.x_dot == pytest.approx(2.0 * math.exp(-1.0), rel=1e-3)


def test_a_frictionless_fall_keeps_its_energy_better_the_finer_the_step():
    def drift(tau: float) -> float:
        env = CartPoleEnv(force_mag=0.0, tau=tau, theta_threshold=3.0, x_threshold=1e3, integrator="semi-implicit")
        env.reset(seed=0)
        env.set_state(env.get_state()._replace(state=dynamics.State(0.0, 0.0, 0.2, 0.0)))
        before = energy(env.get_state().state)
        for _ in range(round(0.8 / tau)):
            env.step(0)
        return abs(energy(env.get_state().state) - before)

    assert drift(0.001) < 0.01
    assert drift(0.001) < drift(0.01) / 5


def energy(state: dynamics.State, length: float = 0.5, gravity: float = 9.8) -> float:
    """Of the cart of 1 kg and a uniform pole of 0.1 kg, in joules."""
    _, v, theta, omega = state
    vx, vy = v + length * omega * math.cos(theta), -length * omega * math.sin(theta)
    rotation = 0.5 * (0.1 * (2 * length) ** 2 / 12) * omega**2
    return 0.5 * v**2 + 0.05 * (vx**2 + vy**2) + rotation + 0.1 * gravity * length * math.cos(theta)


def test_float32_stays_within_a_hundred_thousandth_a_step():
    exact, fast = CartPoleEnv(), CartPoleEnv(precision="float32")
    rng = np.random.default_rng(0)
    for seed in range(30):
        exact.reset(seed=seed), fast.reset(seed=seed)
        for _ in range(40):
            push = int(rng.integers(2))
            one, other = exact.step(push), fast.step(push)
            assert np.abs(one[0] - other[0]).max() <= 1e-5
            if one[2] or other[2]:
                break
            here = exact.get_state()
            single = dynamics.State(*(np.float32(leaf) for leaf in here.state))
            fast.set_state(here._replace(state=single))
    assert all(type(leaf) is np.float32 for leaf in fast.get_state().state)


@pytest.mark.parametrize("name", ["gravity", "masscart", "masspole", "length", "force_mag", "tau", "cart_friction"])
def test_other_physics_have_no_bounds_that_one_step_could_leave(name):
    space = CartPoleEnv(**{name: 3.0}).observation_space
    assert np.isinf(space.high).all()


@pytest.mark.parametrize(
    ("arguments", "high"),
    [
        ({}, [4.8, 0.41887903]),
        ({"x_threshold": 1.0, "theta_threshold": 0.1}, [4.8, 0.41887903]),
        ({"x_threshold": 5.0}, [np.inf, 0.41887903]),
        ({"theta_threshold": 1.0}, [4.8, np.inf]),
    ],
)
def test_bounds_follow_the_thresholds(arguments, high):
    assert np.allclose(CartPoleEnv(**arguments).observation_space.high[[0, 2]], high)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"masscart": 0}, ValueError, r"masscart must be a number from 1e-12 to 1e\+09, not 0"),
        ({"masspole": -1.0}, ValueError, "masspole must be a number"),
        ({"length": math.nan}, ValueError, "length must be a number"),
        ({"tau": math.inf}, ValueError, "tau must be a number"),
        ({"gravity": -9.8}, ValueError, r"gravity must be a number from 0 to 1e\+09"),
        ({"masspole": 1e308}, ValueError, "masspole must be a number"),
        ({"length": 1e-308}, ValueError, "length must be a number"),
        ({"force_mag": 10**400}, ValueError, "force_mag must be a number"),
        ({"gravity": None}, TypeError, "gravity must be a number"),
        ({"tau": [0.02]}, TypeError, "tau must be a number"),
        ({"cart_friction": -0.1}, ValueError, "cart_friction must be a number"),
        ({"x_threshold": "2"}, TypeError, "x_threshold must be a number"),
        ({"force_mag": True}, TypeError, "force_mag must be a number"),
        ({"sutton_barto_reward": 1}, TypeError, "True or False"),
        ({"integrator": "rk4"}, ValueError, "'euler', 'semi-implicit'"),
        ({"precision": "float16"}, ValueError, "'float64', 'float32'"),
        ({"precision": "float32", "cart_friction": 1e4}, ValueError, "cart_friction must be a number from 0 to 1000"),
        ({"wind": 1.0}, TypeError, "no argument 'wind'"),
    ],
)
def test_senseless_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        CartPoleEnv(**arguments)


PHYSICS = [name for name in dynamics.Params()._asdict() if "reward" not in name]


def physics(precision):
    numbers = [1e-3, 1.0, 1e3] if precision == "float32" else [1e-12, 1e-3, 1.0, 1e3, 1e9]
    return st.fixed_dictionaries({name: st.sampled_from(numbers) for name in PHYSICS})


@settings(max_examples=120, deadline=None)
@given(data=st.data(), precision=st.sampled_from(["float64", "float32"]), seed=st.integers(0, 1_000))
def test_no_legal_physics_gives_what_is_no_number(data, precision, seed):
    env = CartPoleEnv(**data.draw(physics(precision)), precision=precision)
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(20):
        assert observation in env.observation_space
        with np.errstate(over="ignore", invalid="ignore"):
            observation, reward, ended, _, _ = env.step(env.action_space.sample())
        assert reward == 1.0
        if ended:
            break
    assert not np.isnan(observation).any()
