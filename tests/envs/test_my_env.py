"""The robot among pedestrians: how the robot moves, what it earns, and the symmetries of its world."""

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rooms import AHEAD, IDS, STOP, made, start, step, walker

from gym_custom.my_env import dynamics, make_world
from gym_custom.my_env.scenarios import SCENARIOS
from gym_custom.my_env.state import OBSTACLE, PEDESTRIAN, SUCCESS, WALL, State
from gym_custom.world import load_world, plain_params


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_counters_begin_at_a_zero_without_a_sign(scenario):
    state = start(make_world(scenario=scenario), range(64))
    assert (state.heading < 0).any()
    for name in ("steps", "speed", "turn_rate", "discomfort_steps", "path_length"):
        assert not np.signbit(getattr(state, name)).any(), name


# The robot


@settings(max_examples=200, deadline=None)
@given(heading=st.floats(-3.1, 3.1), speed=st.floats(0, 1), turn=st.floats(-1.5, 1.5))
def test_the_unicycle_equals_a_fine_integration(heading, speed, turn):
    way = dynamics._way(np, np.float64(heading), np.float64(speed), np.float64(turn), 0.1)
    pieces = 2000
    angles = heading + turn * 0.1 * (np.arange(pieces) + 0.5) / pieces
    fine = speed * 0.1 / pieces * np.array([np.cos(angles).sum(), np.sin(angles).sum()])
    assert way == pytest.approx(fine, abs=1e-9)


def test_commands_are_those_of_the_documentation():
    params = plain_params(make_world().params)
    found = [dynamics.discrete_command(params, np.float64(action)) for action in range(9)]
    assert found == [(v, w) for v in (0.0, 0.5, 1.0) for w in (1.5, 0.0, -1.5)]
    assert dynamics.continuous_command(params, np.array([1.0, -1.0])) == (1.0, -1.5)
    assert dynamics.continuous_command(params, np.array([-1.0, 0.5])) == (0.0, 0.75)


def test_speed_and_turn_rate_keep_to_their_limits():
    env, _ = made({"robot": [-4, 0, 0], "goal": [4, 0]})
    env.step(6)
    state = env.get_state().state
    assert (float(state.speed), float(state.turn_rate)) == pytest.approx((0.4, 1.2))
    env.step(6)
    assert float(env.get_state().state.turn_rate) == 1.5


def test_spinning_keeps_the_heading_in_range():
    env, obs = made({"robot": [0, 0, 0], "goal": [4, 0]})
    for _ in range(2_000):
        obs = env.step(0)[0]
        assert -math.pi <= env.get_state().state.heading < math.pi
    assert obs in env.observation_space


def test_observations_are_continuous_where_the_heading_wraps():
    views = [made({"robot": [1, 2, heading], "goal": [4, 0]})[1] for heading in (math.pi - 1e-3, -math.pi + 1e-3)]
    assert np.abs(views[0] - views[1]).max() < 1e-2


# Rewards and outcomes


def test_a_straight_trip_earns_what_the_formula_says():
    env, _ = made({"robot": [-4, 0, 0], "goal": [4, 0]})
    total, steps, ended = 0.0, 0, False
    while not ended:
        _, reward, ended, _, info = env.step(AHEAD)
        total, steps = total + reward, steps + 1
    assert info["outcome"] == "success"
    assert info["is_success"] is True
    assert info["goal_distance"] == pytest.approx(0.4)
    assert total == pytest.approx(60 * (8 - 0.4) / 8 - 0.1 * steps + 60)
    assert 112 < total < 113.5
    assert info["spl"] == 1.0
    assert info["path_length"] == pytest.approx(7.6)
    assert info["nav_time"] == pytest.approx(steps * 0.2)


def test_progress_telescopes():
    world = make_world(n_pedestrians=0, n_obstacles=0)
    params, rng = plain_params(world.params), np.random.default_rng(0)
    state = start(world, range(50))
    first, total = state.goal_distance, 0.0
    for _ in range(60):
        action = rng.integers(0, 9, 50).astype(float)
        after = step(world, state, action)
        running = after.outcome == 0
        reward = world.outcome(np, params, state, action, after)[0]
        total = total + np.where(running, reward + params.time_penalty, 0.0)
        state = State(*(np.where(running, new, old) for old, new in zip(state, after, strict=True)))
    assert total == pytest.approx(60 * (first - state.goal_distance) / first)


def test_discomfort_counts_from_a_quarter_metre_on():
    env, _ = made({"robot": [0, 0, 0], "goal": [4, 0], "pedestrians": [walker(0.0, 0.7)]})
    _, reward, _, _, info = env.step(STOP)
    assert info["min_gap"] == pytest.approx(0.1)
    assert reward == pytest.approx(-0.1 - (1 - 0.1 / 0.25))
    assert info["discomfort_ratio"] == 1.0


def test_without_pedestrians_the_gap_is_the_range():
    env = gym.make("MyEnvStatic-v0")
    assert env.reset(seed=0)[1]["min_gap"] == 6.0
    assert env.step(0)[4]["min_gap"] == 6.0


# Symmetry


def turned(state, turns, mirror=False):
    """The same moment in a room turned by quarter turns, or mirrored about the x axis first."""
    cos, sin = round(math.cos(turns * math.pi / 2)), round(math.sin(turns * math.pi / 2))
    flip = -1.0 if mirror else 1.0

    def move(v):
        v = np.stack([v[0], flip * v[1]])
        return np.stack([cos * v[0] - sin * v[1], sin * v[0] + cos * v[1]])

    vectors = ("position", "goal", "pedestrians", "velocities", "way_points", "next_way_points", "obstacles")
    moved = {name: move(getattr(state, name)) for name in vectors}
    heading = dynamics.wrap(np, flip * state.heading + turns * math.pi / 2)
    return state._replace(**moved, heading=heading, turn_rate=flip * state.turn_rate)


@pytest.mark.parametrize(("turns", "mirror"), [(1, False), (2, False), (3, False), (0, True), (1, True)])
def test_dynamics_and_observation_turn_and_mirror_with_the_room(turns, mirror):
    world = make_world(n_pedestrians=8, n_obstacles=4)
    params = plain_params(world.params)
    other = plain_params(world.params._replace(side=world.params.side * (-1 if mirror else 1)))
    rng, state = np.random.default_rng(1), start(world, range(20))
    there = turned(state, turns, mirror)
    for _ in range(15):
        action = rng.integers(0, 9, 20).astype(float)
        mirrored = action - action % 3 + 2 - action % 3 if mirror else action
        state = world.transition(np, params, state, action, None)
        there = world.transition(np, other, there, mirrored, None)
    going = (state.outcome == 0) & (there.outcome == 0)
    assert (state.outcome == there.outcome).all()
    expected = turned(state, turns, mirror)
    for name in ("position", "pedestrians", "velocities"):
        assert np.allclose(getattr(there, name)[..., going], getattr(expected, name)[..., going], atol=1e-7)
    rays = np.arange(36)
    views = world.observe(np, params, state)[0], world.observe(np, other, there)[0]
    assert np.allclose(views[0][(-rays) % 36 if mirror else rays][:, going], views[1][:, going], atol=1e-4)


def test_finished_states_and_every_variant_raise_no_floating_point_error():
    with np.errstate(all="raise"):
        for env_id in IDS:
            world, _ = load_world(env_id)
            rng, state = np.random.default_rng(0), start(world, range(40))
            for _ in range(60):
                state = step(world, state, rng.integers(0, 9, 40), rng)
                world.observe(np, plain_params(world.params), state)
            assert {OBSTACLE, PEDESTRIAN, WALL} & set(state.outcome.tolist()) or env_id == "MyEnvStatic-v0"
            assert SUCCESS not in state.outcome


@pytest.mark.parametrize("env_id", IDS)
def test_a_batch_has_the_bits_of_each_row(env_id):
    world, _ = load_world(env_id, n_obstacles=9, observation="lidar_stack")
    rng, batch = np.random.default_rng(0), start(world, range(9))
    rows = [State(*(leaf[..., row] for leaf in batch)) for row in range(9)]
    for _ in range(40):
        action = rng.integers(0, 9, 9).astype(float)
        batch = step(world, batch, action)
        rows = [step(world, row, a) for row, a in zip(rows, action, strict=True)]
    for row, one in enumerate(rows):
        assert all(np.array_equal(leaf[..., row], part) for leaf, part in zip(batch, one, strict=True))
