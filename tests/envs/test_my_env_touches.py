"""What the robot touches first, and when."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rooms import AHEAD, STOP, made, start, walker

from gym_custom.my_env import dynamics, make_world
from gym_custom.my_env.state import OBSTACLE, PEDESTRIAN, SUCCESS, WALL, State
from gym_custom.world import plain_params


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


coordinate = st.floats(-2.5, 2.5)
travel = st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))


@settings(max_examples=200, deadline=None)
@given(
    people=st.lists(st.tuples(coordinate, st.floats(1.0, 4.0), travel, travel), max_size=3),
    things=st.lists(st.tuples(coordinate, st.floats(0.0, 4.0), st.floats(0.1, 1.0)), max_size=3),
    ways=st.tuples(travel, travel),
    place=st.tuples(coordinate, st.floats(3.0, 4.6)),
    goal=st.tuples(coordinate, st.floats(1.0, 4.6)),
)
def test_the_first_touch_is_the_one_that_many_small_steps_find(people, things, ways, place, goal):
    """Robot and pedestrians move along straight lines in each of two substeps, here in 4,000 pieces."""
    world = make_world(n_pedestrians=len(people), n_obstacles=len(things))
    params = plain_params(world.params)
    position, goal = np.array(place), np.array(goal)
    walkers = np.array([p[:2] for p in people]).reshape(-1, 2).T
    walks = np.array([p[2:] for p in people]).reshape(-1, 2, 2).transpose(1, 2, 0)  # (substep, 2, P)
    discs = np.array(things).reshape(-1, 3).T
    state = start(world, [0])
    state = State(*(leaf[..., 0] for leaf in state))._replace(
        position=position, goal=goal, pedestrians=walkers, obstacles=discs[:2], obstacle_radii=discs[2]
    )
    moves = [SimpleNamespace(way=np.array(ways[k]), ways=walks[k]) for k in (0, 1)]
    found, share, gap = dynamics._first_touches(np, params, state, *moves)
    for k in (0, 1):
        t = np.linspace(0.0, 1.0, 4001)
        robot = position[:, None] + t * moves[k].way[:, None]  # (2, T)
        bodies = walkers[:, :, None] + t * walks[k][:, :, None]  # (2, P, T)
        person = (np.hypot(*(bodies - robot[:, None])) - 0.6).min(axis=0, initial=9.0)
        thing = (np.hypot(*(discs[:2, :, None] - robot[:, None])) - 0.3 - discs[2][:, None]).min(axis=0, initial=9.0)
        gaps = np.array([np.hypot(*(goal[:, None] - robot)) - 0.4, person, thing, (4.7 - np.abs(robot)).min(axis=0)])
        assume(gaps[:, 0].min() > 1e-3)  # an episode that runs
        assume(abs(gaps.min()) > 1e-6)  # no graze
        if gaps.min() > 0.0:
            assert (found[k], share[k]) == (0, 1.0)
            assert gap[k] == pytest.approx(person.min(), abs=1e-3) or not people
        else:
            first = np.argmax(gaps.min(axis=0) <= 0.0)
            assert gaps[[SUCCESS, PEDESTRIAN, OBSTACLE, WALL].index(found[k]), first] <= 1e-3
            assert share[k] == pytest.approx(t[first], abs=1e-3)
            assert gap[k] == pytest.approx(person[: first + 1].min(), abs=1e-3) or not people
            return
        position, walkers = position + moves[k].way, walkers + walks[k]
