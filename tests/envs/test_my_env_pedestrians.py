"""How the pedestrians of the robot's world walk, and that nobody enters anybody."""

import numpy as np
import pytest
from rooms import IDS, STOP, made, start, step, walker

from gym_custom.my_env import make_world
from gym_custom.my_env.scenarios import SCENARIOS
from gym_custom.world import load_world


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
    assert worst_overlap("MyEnvHard-v0", 300, 200, n_obstacles=9, scenario=scenario) < 0.01


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
