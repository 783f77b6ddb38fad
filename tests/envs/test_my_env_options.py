"""Reset options, layouts, scenarios, observations and what is refused."""

import json

import gymnasium as gym
import numpy as np
import pytest

import gym_custom  # noqa: F401
from gym_custom.my_env import CASE_SEEDS, SELECTION_SEEDS, make_world
from gym_custom.my_env.scenarios import SCENARIOS
from gym_custom.world import plain_params

OBSERVATIONS = {"lidar": 78, "lidar_stack": 78, "partial": 42, "camera": 77, "state": 7 + 5 * 4 + 3 * 3}


def overlap_free(state, room_tolerance=1e-9):
    """No disc of the start covers another or leaves the room; a batch, (N,) bool."""
    centres = np.concatenate([state.position[:, None], state.pedestrians, state.obstacles], axis=1)
    radii = np.concatenate([0 * state.heading[None] + 0.3, state.pedestrian_radii, state.obstacle_radii])
    people = 1 + state.pedestrians.shape[1]
    inside = (np.abs(centres[:, :people]) + radii[:people] <= state.room[:, None] + room_tolerance).all((0, 1))
    for i in range(centres.shape[1]):
        for j in range(i):
            inside &= np.hypot(*(centres[:, i] - centres[:, j])) > radii[i] + radii[j]
    return inside


def starts(count, **kwargs):
    world = make_world(**kwargs)
    u = np.random.default_rng(0).random((world.reset_draws, count))
    return world.initial_state(np, plain_params(world.params), u)


def reachable(state, row, cell=0.1):
    """Flood fill of the robot's centre among everything that stands still at the start."""
    half_x, half_y = state.room[:, row]
    x, y = np.arange(-half_x, half_x + cell, cell), np.arange(-half_y, half_y + cell, cell)
    gx, gy = np.meshgrid(x, y, indexing="ij")
    free = (np.abs(gx) < half_x - 0.3) & (np.abs(gy) < half_y - 0.3)
    discs = [(*state.obstacles[:, k, row], state.obstacle_radii[k, row]) for k in range(state.obstacles.shape[1])]
    if not state.walks[:, row].any():
        discs += [(*state.pedestrians[:, k, row], 0.3) for k in range(state.pedestrians.shape[1])]
    for dx, dy, radius in discs:
        free &= np.hypot(gx - dx, gy - dy) > radius + 0.3
    near = np.hypot(gx - state.position[0, row], gy - state.position[1, row]) < 0.2
    goal = np.hypot(gx - state.goal[0, row], gy - state.goal[1, row]) < 0.4
    reached = near & free
    while True:
        grown = reached.copy()
        grown[1:] |= reached[:-1]
        grown[:-1] |= reached[1:]
        grown[:, 1:] |= reached[:, :-1]
        grown[:, :-1] |= reached[:, 1:]
        grown &= free
        if (grown & goal).any():
            return True
        if (grown == reached).all():
            return False
        reached = grown


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    ("people", "things", "radius"),
    [(4, 3, 0.3), (14, 9, 0.3), (13, 8, 0.3), (1, 1, 0.3), (0, 0, 0.3), (4, 9, 0.35), (12, 9, 0.35), (14, 3, 0.309)],
)
def test_no_start_overlaps(scenario, people, things, radius):
    state = starts(
        2_000, scenario=scenario, n_pedestrians=people, n_obstacles=things, pedestrian_radius=[radius, radius]
    )
    assert overlap_free(state).all()


@pytest.mark.slow
@pytest.mark.parametrize(("people", "things"), [(4, 3), (14, 9)])
def test_no_start_overlaps_and_no_goal_is_cut_off_over_a_hundred_thousand_seeds(people, things):
    state = starts(100_000, n_pedestrians=people, n_obstacles=things)
    assert overlap_free(state).all()
    reach = np.hypot(*state.obstacles) + state.obstacle_radii
    circle = np.hypot(*state.position)
    assert np.allclose(circle, np.hypot(*state.goal))
    assert (reach.max(axis=0) + 0.3 < circle).all(), "the robot can go round on the circle of start and goal"
    assert (circle + 0.3 < 5.0).all()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_goal_can_be_reached(scenario):
    state = starts(8, scenario=scenario, n_pedestrians=14, n_obstacles=9)
    assert all(reachable(state, row) for row in range(8))


def test_a_case_is_its_seed():
    env = gym.make("MyEnv-v0")
    by_case = env.reset(seed=5, options={"case": 7})[0]
    assert np.array_equal(by_case, env.reset(seed=CASE_SEEDS[7])[0])
    assert len(set(CASE_SEEDS)) == 500
    assert len(set(SELECTION_SEEDS)) == 100
    assert not set(CASE_SEEDS) & set(SELECTION_SEEDS)


@pytest.mark.parametrize("options", [{"scenario": name} for name in SCENARIOS] + [{"case": 3, "n_pedestrians": 2}])
def test_layouts_go_through_json_and_restore_places_and_motion(options):
    env, other = gym.make("MyEnv-v0").unwrapped, gym.make("MyEnv-v0").unwrapped
    env.reset(seed=1, options=options)
    for _ in range(5):
        assert not env.step(0)[2]
    layout = json.loads(json.dumps(env.layout()))
    observation = other.reset(seed=9, options={"layout": layout})[0]
    assert other.layout() == layout
    for _ in range(5):
        first, second = env.step(0), other.step(0)
        assert np.array_equal(first[0], second[0])
        assert first[2] == second[2]
    assert observation in env.observation_space


def test_options_lower_the_counts_and_hold_for_one_reset():
    env = gym.make("MyEnv-v0").unwrapped
    _, info = env.reset(seed=0, options={"n_pedestrians": 0, "n_obstacles": 1})
    assert info["min_gap"] == 6.0
    assert len(env.layout()["pedestrians"]) == 0
    assert len(env.layout()["obstacles"]) == 1
    for action in (7, 7, 3):
        env.step(action)
    env.reset()
    assert len(env.layout()["pedestrians"]) == 4


def test_pose_goal_and_notice_options():
    env = gym.make("MyEnv-v0").unwrapped
    _, info = env.reset(seed=0, options={"robot_pose": [4.5, 4.5, 1.0], "goal": [4.5, -4.5], "notice_prob": 0.0})
    layout = env.layout()
    assert layout["robot"] == [4.5, 4.5, 1.0]
    assert info["goal_distance"] == 9.0
    assert not any(person["notices"] for person in layout["pedestrians"])


@pytest.mark.parametrize(
    "options",
    [
        {"scenario": "maze"}, {"n_pedestrians": 5}, {"n_obstacles": -1}, {"notice_prob": 1.5}, {"case": 500},
        {"robot_pose": [0, 0]}, {"goal": [9.0, 0.0]}, {"speed": 3}, {"robot_pose": [4.9, 0, 0]}, {"layout": 3},
        {"layout": {"robot": [0, 0, 0]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0], "obstacles": [[0.2, 0, 0.3]]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0], "pedestrians": [{"position": [0.5, 0]}]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0], "pedestrians": [{"position": [2, 0]}, {"position": [2.3, 0]}]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0], "obstacles": [[2, 0, 0.3]] * 4}},
        {"layout": {"robot": [0, 0, float("nan")], "goal": [4, 0]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0], "robot_velocity": [5, 0]}},
        {"layout": {"robot": [0, 0, 0], "goal": [4, 0]}, "n_pedestrians": 2},
        {"layout": {"robot": [0, 0, 0], "goal": [0, 0]}}, {"robot_pose": [0, 0, 0], "goal": [0, 0]},
        {"goal": [10**400, 0]}, {"notice_prob": 10**400}, {"goal": np.array(0.0)}, {"goal": [[1, 2], [3, 4, 5]]},
        {"robot_pose": "abc"}, {"goal": [True, 1]}, {"case": True}, {"case": 1.0}, {"notice_prob": np.eye(3)},
        {"layout": {"robot": [0, 0, 0], "goal": [1e-9, 0]}}, {"n_pedestrians": 10**5000}, {10**400: 1},
    ],
)  # fmt: skip
def test_senseless_options_are_refused_in_one_sentence(options):
    with pytest.raises(ValueError, match=r"\A.{10,250}\Z"):
        gym.make("MyEnv-v0").reset(seed=0, options=options)


def room(person=None, **more):
    """Options for a layout with one pedestrian."""
    usual = {"robot": [-4, 0, 0], "goal": [4, 0], "pedestrians": [{"position": [0, 2]} | (person or {})]}
    return {"layout": usual | more}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (room({"velocity": [1e200, 0]}), r"\['velocity'\] must be a number from -10 to 10, not 1e\+200"),
        (room({"waypoints": [[0, 1e160], [0, 0]]}), r"\['waypoints'\] must be a number from -100 to 100, not 1e\+160"),
        (room({"waypoints": [[0, 1]]}), "two points"),
        (room({"notices": 1}), "True or False, not 1"),
        (room({"speed": -0.1}), "from 0 to 3"),
        (room({"radius": 0.0}), "from 0.05 to 1"),
        (room({"place": [0, 0]}), "no entry 'place'; legal are position, velocity"),
        (room(room=[0.5, 5.0]), "from 0.6 to 15"),
        (room(room=[float("inf"), 5.0]), r"layout\['room'\] must be finite, not inf"),
        (room(pedestrians={}), "must be a list"),
        (room(obstacles=[[9.0, 0.0, 0.3]]), "obstacle 0 at .* is not inside the room"),
        (room(goal=[5.1, 0.0]), r"the goal \[5.1, 0.0\] is not inside the room"),
        (room(goal=[-4.0, 1e-6]), "the goal .* must not be the robot's own place"),
        (room(goal=[-4.0, 0.1]), None),
        (room({"waypoints": [[99, 99], [-99, 0]], "velocity": [-10, 10]}), None),
        ({"goal": [1.7, 0.0], "robot_pose": [-4, 0, 0], "n_pedestrians": 0}, None),
    ],
)
def test_impossible_layouts_are_refused_and_possible_ones_are_not(options, sentence):
    env = gym.make("MyEnv-v0")
    if sentence is None:
        assert env.reset(seed=0, options=options)[1]["outcome"] == "running"
        return
    with pytest.raises(ValueError, match=sentence):
        env.reset(seed=0, options=options)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"n_pedestrians": 15}, {"n_pedestrians": 10_000}, {"n_pedestrians": 2.0}, {"n_obstacles": 10},
        {"notice_prob": -0.1}, {"scenario": "maze"}, {"observation": "sonar"}, {"continuous": 1},
        {"pedestrian_radius": [0.3]}, {"pedestrian_radius": [0.3, 0.2]}, {"pedestrian_speed": [1, 0, 2, 1]},
        {"n_pedestrians": 14, "pedestrian_radius": [0.3, 0.35]}, {"discomfort_distance": 0.0}, {"goal_reward": "x"},
        {"goal_reward": 10**400}, {"observation": ["lidar"]}, {"scenario": None}, {"notice_prob": float("nan")},
    ],
)  # fmt: skip
def test_senseless_arguments_are_refused(kwargs):
    with pytest.raises(ValueError, match=rf"{list(kwargs)[-1]} must|do not fit"):
        gym.make("MyEnv-v0", **kwargs)


@pytest.mark.parametrize("kind", [*OBSERVATIONS, "dict"])
@pytest.mark.parametrize("continuous", [False, True])
def test_every_observation_stays_in_its_space(kind, continuous):
    env = gym.make("MyEnv-v0", observation=kind, continuous=continuous).unwrapped
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    if kind != "dict":
        assert observation.shape == (OBSERVATIONS[kind],)
    for _ in range(120):
        observation, _, ended, _, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        if ended:
            observation, _ = env.reset()


def test_the_parts_of_an_observation_stand_where_the_page_says():
    layout = {"robot": [0, 0, 0], "goal": [0, 3], "pedestrians": [{"position": [2, 0], "velocity": [-1, 0]}]}
    views = {
        kind: gym.make("MyEnv-v0", observation=kind).unwrapped.reset(seed=0, options={"layout": layout})[0]
        for kind in [*OBSERVATIONS, "dict"]
    }
    diagonal = 2 * np.hypot(5, 5)
    lidar = views["lidar"]
    assert lidar[0] == pytest.approx(1.7 / 6)
    assert lidar[36] == pytest.approx(-0.5)
    assert lidar[72:] == pytest.approx([3 / diagonal, 0, 1, 0, 0, 1.7 / 6], abs=1e-6)
    assert np.array_equal(views["lidar_stack"][36:72], lidar[:36])
    assert np.array_equal(views["dict"]["lidar"], lidar[:72])
    assert np.array_equal(views["dict"]["goal"], lidar[72:75])
    state = views["state"]
    assert state[:7] == pytest.approx([3 / diagonal, 0, 3 / diagonal, 0, 0, 1, 0], abs=1e-6)
    assert state[7:12] == pytest.approx([2 / diagonal, 0, -0.5, 0, 0.3], abs=1e-6)
    assert not state[12:].any()
    camera = views["camera"]
    assert camera[11] == pytest.approx(1.7 / 6, abs=1e-2)
    assert camera[24 + 11] == 1.0
    assert not camera[48:72].any()


def test_noise_and_drop_out_of_the_partial_sensor():
    env = gym.make("MyEnv-v0", observation="partial", n_pedestrians=0, n_obstacles=0).unwrapped
    layout = {"robot": [3.0, 0.0, 0.0], "goal": [-4, 0]}
    env.reset(seed=0, options={"layout": layout})
    ranges = np.array([env.step(1)[0][:36] for _ in range(1_000)]) * 3.0
    ahead = ranges[:, 17]
    dropped = ahead > 2.9
    true = 2.0 / np.cos(np.radians(120 / 35 / 2))
    assert 0.02 < dropped.mean() < 0.04
    assert ahead[~dropped].mean() == pytest.approx(true, abs=0.01)
    assert ahead[~dropped].std() == pytest.approx(0.01 + 0.01 * true, rel=0.1)


def test_ansi_shows_everybody():
    env = gym.make("MyEnv-v0", render_mode="ansi")
    env.reset(options={"layout": {"robot": [-4, -4, 0], "goal": [4, 4], "pedestrians": [{"position": [4, -4]}]}})
    lines = env.render().splitlines()
    assert [len(line) for line in lines[:21]] == [21] * 21
    assert (lines[18][2], lines[2][18], lines[18][18]) == ("R", "G", "P")
