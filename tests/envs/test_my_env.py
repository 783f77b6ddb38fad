"""The physics of the robot among pedestrians."""

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gym_custom  # noqa: F401
from gym_custom.my_env import dynamics, make_world
from gym_custom.my_env.scenarios import SCENARIOS
from gym_custom.my_env.state import OBSTACLE, PEDESTRIAN, SUCCESS, WALL, State
from gym_custom.world import load_world, plain_params

IDS = ["MyEnv-v0", "MyEnvStatic-v0", "MyEnvDense-v0", "MyEnvHard-v0", "MyEnvPartial-v0"]
STOP, AHEAD = 1, 7


def start(world, seeds, params=None):
    u = np.stack([np.random.default_rng(seed).random(world.reset_draws) for seed in seeds], axis=1)
    return world.initial_state(np, params or plain_params(world.params), u)


def step(world, state, action, rng=None):
    u = rng.random((world.step_draws, *state.heading.shape)) if world.step_draws else None
    return world.transition(np, plain_params(world.params), state, np.asarray(action, float), u)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_counters_begin_at_a_zero_without_a_sign(scenario):
    state = start(make_world(scenario=scenario), range(64))
    assert (state.heading < 0).any()
    for name in ("steps", "speed", "turn_rate", "discomfort_steps", "path_length"):
        assert not np.signbit(getattr(state, name)).any(), name


def made(layout, **kwargs):
    """An environment in a given layout, and its first observation."""
    env = gym.make("MyEnv-v0", **kwargs).unwrapped
    return env, env.reset(seed=0, options={"layout": layout})[0]


def walker(x, y, vx=0.0, vy=0.0, to=None, **more):
    there = to or [x, y]
    return {"position": [x, y], "velocity": [vx, vy], "waypoints": [there, there], **more}


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


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"goal": [2, 0]}, "success"),
        ({"pedestrians": [walker(1.5, 0.0)]}, "pedestrian"),
        ({"obstacles": [[1.5, 0.0, 0.4]]}, "obstacle"),
        ({"room": [2.0, 5.0], "goal": [0, 4]}, "wall"),
    ],
)
def test_every_outcome_is_reached_at_the_touch_itself(more, outcome):
    env, _ = made({"robot": [0, 0, 0], "goal": [4, 4]} | more)
    for _ in range(20):
        _, reward, ended, _, info = env.step(AHEAD)
        if ended:
            break
    assert info["outcome"] == outcome
    touch = {"success": 1.6, "pedestrian": 0.9, "obstacle": 0.8, "wall": 1.7}[outcome]
    assert env.get_state().state.position == pytest.approx([touch, 0.0], abs=1e-6)
    assert info["is_success"] is (outcome == "success")
    assert reward < -50 or outcome == "success"


def test_head_on_the_episode_ends_on_the_first_step_with_contact():
    """Robot at full speed against somebody at 2 m/s who does not notice it: 0.6 m in 0.2 s, nearly two radii."""
    oncoming = walker(3.0, 0.0, -2.0, 0.0, to=[-4.9, 0.0], speed=2.0, notices=False)
    env, _ = made({"robot": [-3, 0, 0], "robot_velocity": [1, 0], "goal": [4.5, 0], "pedestrians": [oncoming]})
    gaps = []
    for _ in range(20):
        before = env.get_state().state
        _, _, ended, _, info = env.step(AHEAD)
        gaps.append(info["min_gap"])
        if ended:
            break
    assert info["outcome"] == "pedestrian"
    assert gaps[-1] == pytest.approx(0.0, abs=1e-8)
    assert min(gaps[:-1]) > 0
    closing = np.hypot(*(before.pedestrians[:, 0] - before.position)) - 0.6
    assert 0 < closing <= 0.6 + 1e-9


@settings(max_examples=60, deadline=None)
@given(speed=st.floats(0.5, 3.0), offset=st.floats(-0.55, 0.55), far=st.floats(0.7, 2.0))
def test_nothing_passes_through_somebody_who_crosses(speed, offset, far):
    crossing = walker(offset, far, 0.0, -speed, to=[offset, -4.0], speed=speed, notices=False)
    env, _ = made({"robot": [0, 0, 0], "goal": [4, 0], "pedestrians": [crossing]})
    for _ in range(40):
        _, _, ended, _, info = env.step(STOP)
        if ended:
            break
    assert info["outcome"] == "pedestrian"
    assert info["hit_while_parked"] is True


def test_the_earlier_of_goal_and_contact_wins():
    goal = {"robot": [0, 0, 0], "robot_velocity": [1, 0], "goal": [0.5, 0]}
    assert made(goal | {"obstacles": [[1.0, 0.0, 0.55]]})[0].step(AHEAD)[4]["outcome"] == "success"
    assert made(goal | {"obstacles": [[0.7, 0.0, 0.37]]})[0].step(AHEAD)[4]["outcome"] == "obstacle"


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


# Pedestrians


def overlaps(state):
    """Deepest overlap (m) of pedestrians with each other, with obstacles and with walls."""
    people, radii = state.pedestrians, state.pedestrian_radii
    deepest = [np.float64(-1)]
    if people.shape[1]:
        deepest.append((np.abs(people) + radii - state.room[:, None]).max())
        for k in range(people.shape[1]):
            others = np.hypot(*(people[:, k : k + 1] - people[:, :k]))
            deepest.append((radii[k] + radii[:k] - others).max(initial=-1))
            things = np.hypot(*(people[:, k : k + 1] - state.obstacles))
            deepest.append((radii[k] + state.obstacle_radii - things).max(initial=-1))
    return max(deepest)


def worst_overlap(env_id, rooms, steps, **kwargs):
    """Over rooms in which the robot drives at random and comes back unhurt from every collision."""
    world, _ = load_world(env_id, **kwargs)
    rng, state, worst = np.random.default_rng(0), start(world, range(rooms)), -1.0
    for _ in range(steps):
        state = step(world, state, rng.integers(0, 9, rooms), rng)
        home = np.where(state.outcome > 0, 4.65, state.position)
        state = state._replace(outcome=np.zeros_like(state.outcome), position=home)
        worst = max(worst, overlaps(state))
    return worst


@pytest.mark.parametrize("env_id", IDS)
def test_nobody_enters_anybody(env_id):
    assert worst_overlap(env_id, 60, 100) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_nobody_enters_anybody_in_a_thousand_rooms(env_id):
    assert worst_overlap(env_id, 1_000, 200) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nobody_enters_anybody_where_it_is_fullest(scenario):
    assert worst_overlap("MyEnv-v0", 300, 200, n_pedestrians=14, n_obstacles=9, scenario=scenario) < 0.01


def test_pedestrians_walk():
    world = make_world()
    state, speeds = start(world, range(200)), []
    for _ in range(200):
        state = step(world, state, np.full(200, STOP))._replace(outcome=np.zeros(200, int))
        speeds.append(np.hypot(*state.velocities))
    assert 0.5 < np.mean(speeds) < 1.1
    assert np.max(speeds) <= 1.3 * 1.3 + 1e-9


def test_they_react_to_a_robot_they_notice_and_to_no_other():
    def path(notices, robot):
        person = walker(2.0, 0.0, -1.0, 0.0, to=[-4.0, 0.0], notices=notices)
        env, _ = made({"robot": [*robot, 0], "goal": [4, 4], "pedestrians": [person]})
        for _ in range(8):
            env.step(STOP)
        return env.get_state().state.pedestrians[:, 0]

    far = (-4.0, 4.0)
    assert np.array_equal(path(False, (0.0, 0.7)), path(False, far))
    assert np.abs(path(True, (0.0, 0.7)) - path(True, far)).max() > 0.05


def test_a_parked_robot_that_everybody_notices_is_never_hit():
    world = make_world(n_pedestrians=10, n_obstacles=2, notice_prob=1.0)
    state = start(world, range(100))
    for _ in range(200):
        state = step(world, state, np.full(100, STOP))
    assert (state.outcome == 0).all()


def test_people_at_rest_stay_there():
    env, _ = made(
        {"robot": [-4, 0, 0], "goal": [4, 0], "pedestrians": [walker(1.0, 1.0), walker(1.7, 1.0, to=[-2, 1])]}
    )
    for _ in range(30):
        env.step(STOP)
    assert env.get_state().state.pedestrians[:, 0].tolist() == [1.0, 1.0]
    assert env.get_state().state.pedestrians[0, 1] != 1.7


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
