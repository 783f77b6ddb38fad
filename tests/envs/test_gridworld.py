"""GridWorld against hand-made maps, an independent simulation and planning on its own model."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import gym_custom
from gym_custom.gridworld import GridWorldEnv, GridWorldVectorEnv, dynamics, layout, make_world
from gym_custom.gridworld.policies import ScriptedPolicy, value_iteration

assert gym_custom.World
RIGHT, DOWN, LEFT, UP = range(4)
DIRECTIONS = {"up": (UP, -1, 0), "right": (RIGHT, 0, 1), "down": (DOWN, 1, 0), "left": (LEFT, 0, -1)}


def walk(env: gym.Env, actions: list[int]) -> list[tuple[Any, float, bool]]:
    return [env.step(action)[:3] for action in actions]


def naive_move(text: list[str], place: tuple[int, int], action: int) -> tuple[int, int]:
    """A second, plain telling of the rules of moving."""
    row, col = place
    row, col = {0: (row, col + 1), 1: (row + 1, col), 2: (row, col - 1), 3: (row - 1, col)}[action]
    inside = 0 <= row < len(text) and 0 <= col < len(text[0])
    return (row, col) if inside and text[row][col] != "#" else place


def naive_distance(text: list[str], start: tuple[int, int]) -> int | None:
    """Steps from a place to the nearest goal that does not lead through a pit, breadth first."""
    queue, seen = deque([(start, 0)]), {start}
    while queue:
        place, steps = queue.popleft()
        if text[place[0]][place[1]] == "G":
            return steps
        for action in range(4):
            found = naive_move(text, place, action)
            if found not in seen and text[found[0]][found[1]] != "O":
                seen.add(found)
                queue.append((found, steps + 1))
    return None


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    rows, cols = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    cells = draw(st.lists(st.sampled_from("....#O"), min_size=rows * cols, max_size=rows * cols))
    start, goal = draw(st.permutations(range(rows * cols)))[:2]
    cells[start], cells[goal] = "S", "G"
    return ["".join(cells[row * cols : (row + 1) * cols]) for row in range(rows)]


class TestDefault:
    def test_empty_five_by_five_from_the_bottom_right_to_the_top_left(self):
        env = GridWorldEnv()
        observation, info = env.reset()
        assert observation.tolist() == [4, 4]
        assert observation.dtype == np.int64
        assert info == {}
        assert env.observation_space == gym.spaces.MultiDiscrete([5, 5])
        assert env.action_space == gym.spaces.Discrete(4)
        results = walk(env, [LEFT] * 4 + [UP] * 4)
        assert [reward for _, reward, _ in results] == [0.0] * 7 + [1.0]
        assert [end for *_, end in results] == [False] * 7 + [True]
        assert results[-1][0].tolist() == [0, 0]

    def test_the_spec_says_100_steps_and_a_threshold_of_1(self):
        spec = gym.spec("GridWorld-v0")
        assert (spec.max_episode_steps, spec.reward_threshold) == (100, 1.0)

    def test_walking_off_the_goal_and_back_pays_only_once(self):
        env = GridWorldEnv()
        env.reset(options={"start": (0, 1)})
        assert env.step(LEFT)[1:3] == (1.0, True)
        with pytest.warns(UserWarning, match="stands still"):
            rest = walk(env, [RIGHT, LEFT, RIGHT, LEFT])
        assert [(o.tolist(), r, end) for o, r, end in rest] == [([0, 0], 0.0, True)] * 4


class TestMoves:
    @pytest.mark.parametrize("name", DIRECTIONS)
    def test_numbers_text_and_picture_agree_on_directions(self, name):
        action, down, right = DIRECTIONS[name]
        text = ["G.......", "........", "........", "........", ".......S"]
        seen = {}
        for mode in ("ansi", "rgb_array"):
            env = GridWorldEnv(layout=text, render_mode=mode)
            env.reset(options={"start": (2, 3)})
            assert env.step(action)[0].tolist() == [2 + down, 3 + right]
            seen[mode] = env.render()
        assert layout.ACTION_NAMES[action] == name
        lines = seen["ansi"].split("\n")
        assert [(r, line.index("A")) for r, line in enumerate(lines) if "A" in line] == [(2 + down, 3 + right)]
        assert find_walker(seen["rgb_array"], 5, 8) == (2 + down, 3 + right)

    @pytest.mark.parametrize("size", [[1, 2], [5, 8], [300, 2]], ids=str)
    @pytest.mark.parametrize("action", range(4))
    def test_no_walk_leaves_the_map(self, size, action):
        env = GridWorldEnv(size=size, goal=[0, 0], random_start=True)
        rows = GridWorldVectorEnv(num_envs=3, size=size, goal=[0, 0], random_start=True)
        env.reset(seed=0)
        rows.reset(seed=0)
        for _ in range(max(size) + 5):
            place, _, end, _, _ = env.step(action)
            places = rows.step(np.full(3, action))[0]
            assert place in env.observation_space
            assert places in rows.observation_space
            if end:
                env.reset()

    @given(texts(), st.lists(st.integers(0, 3), max_size=30))
    def test_a_walk_is_the_plain_one(self, text, actions):
        start = next((r, line.index("S")) for r, line in enumerate(text) if "S" in line)
        if naive_distance(text, start) is None:
            with pytest.raises(ValueError, match="no path leads"):
                GridWorldEnv(layout=text)
            return
        env, place = GridWorldEnv(layout=text, goal_reward=5, pit_reward=-3, step_reward=-0.5), start
        assert env.reset()[0].tolist() == list(start)
        for action in actions:
            place = naive_move(text, place, action)
            observation, reward, end, _, _ = env.step(action)
            symbol = text[place[0]][place[1]]
            assert observation.tolist() == list(place)
            assert reward == {"G": 5.0, "O": -3.0}.get(symbol, -0.5)
            assert end == (symbol in "GO")
            if end:
                break


class TestSlip:
    def test_a_slip_goes_to_either_side_half_the_time_each(self):
        rows = GridWorldVectorEnv(num_envs=40_000, size=5, start=[2, 2], slip=0.3)
        rows.reset(seed=0)
        places = rows.step(np.full(40_000, RIGHT))[0]
        counts = {tuple(place): int((places == place).all(axis=1).sum()) for place in ([2, 3], [1, 2], [3, 2])}
        assert sum(counts.values()) == 40_000
        for place, probability in {(2, 3): 0.7, (1, 2): 0.15, (3, 2): 0.15}.items():
            deviation = np.sqrt(40_000 * probability * (1 - probability))
            assert abs(counts[place] - 40_000 * probability) < 4.5 * deviation

    @pytest.mark.parametrize("action", range(4))
    def test_a_certain_slip_is_always_perpendicular(self, action):
        env = GridWorldEnv(size=5, slip=1.0)
        env.reset(seed=0)
        for _ in range(50):
            env.reset(options={"start": (2, 2)})
            moved = env.step(action)[0] - [2, 2]
            assert abs(moved).sum() == 1
            assert moved @ layout.MOVES[action] == 0


class TestMaps:
    @pytest.mark.parametrize(
        ("name", "shape", "steps"), [("four_rooms", (13, 13), 20), ("maze", (6, 9), 14), ("cliff", (4, 12), 13)]
    )
    def test_shortest_ways_through_the_named_maps(self, name, shape, steps):
        """14 steps through the Dyna maze and 13 along the cliff, as Sutton & Barto 2018 say; 10 + 10 in the rooms."""
        env = GridWorldEnv(layout=name)
        assert tuple(env.observation_space.nvec) == shape
        observation, _ = env.reset()
        policy, total, count = ScriptedPolicy("shortest_path", env), 0.0, 0
        while True:
            observation, reward, end, _, _ = env.step(policy.predict(observation)[0])
            total, count = total + reward, count + 1
            if end:
                break
        assert count == steps
        assert total == {"cliff": -13.0}.get(name, 1.0)

    def test_values_of_the_random_policy_on_the_small_map(self):
        """Sutton & Barto 2018, figure 4.1, k = infinity."""
        p, r = GridWorldEnv(layout="small").transition_model()
        p, r = p.mean(axis=1), r.mean(axis=1)
        inner = slice(1, 15)
        values = np.zeros(16)
        values[inner] = np.linalg.solve(np.eye(14) - p[inner, inner], r[inner])
        expected = [[0, -14, -20, -22], [-14, -18, -20, -20], [-20, -20, -18, -14], [-22, -20, -14, 0]]
        np.testing.assert_allclose(values.reshape(4, 4), expected, atol=1e-9)

    def test_the_small_map_starts_anywhere_between_its_corners(self):
        env = GridWorldEnv(layout="small")
        env.reset(seed=0)
        assert {tuple(env.reset()[0]) for _ in range(400)} == {(r, c) for r in range(4) for c in range(4)} - {
            (0, 0),
            (3, 3),
        }

    def test_a_fall_from_the_cliff_costs_100_and_ends(self):
        env = GridWorldEnv(layout="cliff")
        env.reset()
        assert env.step(RIGHT)[1:3] == (-100.0, True)

    def test_any_of_several_goals_ends(self):
        env = GridWorldEnv(layout=["G.S.G"])
        for action, place in ((LEFT, 0), (RIGHT, 4)):
            env.reset()
            assert walk(env, [action, action])[-1][1:] == (1.0, True)
            assert env.transition_model()[0][place, 0, place] == 1.0

    def test_a_given_goal_replaces_those_of_the_map(self):
        env = GridWorldEnv(layout=["G.S.G"], goal=[0, 1])
        env.reset()
        assert walk(env, [RIGHT, RIGHT])[-1][1:] == (0.0, False)
        assert walk(env, [LEFT, LEFT, LEFT])[-1][1:] == (1.0, True)


class TestRandomPlaces:
    TEXT = ["S..#.", ".#.#G", "....."]

    def places(self, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.places_of(self.TEXT, count=20_000, **kwargs)

    def test_a_random_start_is_uniform_over_all_cells_but_the_goal(self):
        cells, goals = self.places(random_start=True)
        assert set(goals) == {9}
        free = [c for c, symbol in enumerate("".join(self.TEXT)) if symbol in "S."]
        assert_uniform(cells, free)

    def test_a_random_goal_is_uniform_over_all_cells_but_the_start(self):
        cells, goals = self.places(random_goal=True)
        assert set(cells) == {0}
        assert_uniform(goals, [c for c, symbol in enumerate("".join(self.TEXT)) if symbol in ".G"])

    def test_both_are_uniform_over_all_pairs(self):
        cells, goals = self.places(random_start=True, random_goal=True)
        free = [c for c, symbol in enumerate("".join(self.TEXT)) if symbol in "S.G"]
        assert_uniform(cells * 15 + goals, [a * 15 + b for a in free for b in free if a != b])

    def test_only_the_largest_region_serves_for_both(self):
        cells, goals = self.places_of(["..#...", "..#..."], random_start=True, random_goal=True)
        assert set(cells) == set(goals) == {3, 4, 5, 9, 10, 11}

    def test_a_random_start_never_is_in_a_region_without_the_goal(self):
        cells, _ = self.places_of(["..#.G.", "..#..."], random_start=True)
        assert set(cells) == {3, 5, 9, 10, 11}

    def places_of(self, text: list[str], count: int = 500, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Cells of walkers and goals after a reset of many rows."""
        rows = GridWorldVectorEnv(num_envs=count, layout=text, observation="goal", **kwargs)
        observations, _ = rows.reset(seed=1)
        per_cell = [len(text[0]), 1]
        return observations["achieved_goal"] @ per_cell, observations["desired_goal"] @ per_cell


def assert_uniform(found: np.ndarray, expected: list[int]) -> None:
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == sorted(expected)
    mean = found.size / len(expected)
    assert abs(counts - mean).max() < 5 * np.sqrt(mean)


class TestOptions:
    def test_start_and_goal_hold_for_one_episode(self):
        env = GridWorldEnv()
        assert env.reset(options={"start": (1, 3), "goal": (1, 4)})[0].tolist() == [1, 3]
        assert env.step(RIGHT)[1:3] == (1.0, True)
        assert env.reset()[0].tolist() == [4, 4]
        env.reset(options={"start": [1, 3]})
        assert env.step(RIGHT)[1:3] == (0.0, False)

    @pytest.mark.parametrize(
        "random",
        [{}, {"random_start": True}, {"random_goal": True}, {"random_start": True, "random_goal": True}],
        ids=str,
    )
    def test_one_option_leaves_the_other_as_constructed(self, random):
        env = GridWorldEnv(layout="four_rooms", observation="goal", **random)
        env.reset(seed=0)
        starts, goals = set(), set()
        for _ in range(30):
            starts.add(tuple(env.reset(options={"goal": (1, 4)})[0]["observation"]))
            goals.add(tuple(env.reset(options={"start": (11, 2)})[0]["desired_goal"]))
            assert env.get_state().state.cell == 11 * 13 + 2
        assert len(starts) == 1 or "random_start" in random
        assert len(goals) == 1 or "random_goal" in random
        assert (1, 4) not in starts
        assert (11, 2) not in goals

    def test_options_take_as_many_draws_as_none(self):
        kwargs = {"layout": "four_rooms", "random_start": True, "random_goal": True, "slip": 0.5}
        env, other = GridWorldEnv(**kwargs), GridWorldEnv(**kwargs)
        env.reset(seed=5, options={"start": (1, 1), "goal": (2, 2)})
        other.reset(seed=5)
        assert env.np_random.random() == other.np_random.random()

    def test_options_reach_every_row_of_a_vector_env(self):
        rows = GridWorldVectorEnv(num_envs=3, random_start=True)
        observations, _ = rows.reset(seed=0, options={"start": (2, 2)})
        assert observations.tolist() == [[2, 2]] * 3

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"start": (0, 0)}, "same cell"),
            ({"goal": (9, 0)}, "outside the map"),
            ({"start": (-1, 0)}, "outside the map"),
            ({"start": (0, 1)}, "is a wall"),
            ({"start": (1, 1)}, "is a pit"),
            ({"start": (0, 2)}, "no path leads"),
            ({"goal": (1.5, 0)}, r"must be \[row, column\]"),
            ({"start": 3}, r"must be \[row, column\]"),
            ({"begin": (0, 0)}, "'begin'"),
        ],
        ids=str,
    )
    def test_senseless_options_are_refused(self, options, reason):
        env = GridWorldEnv(layout=["G#.", ".O#", "..S"])
        with pytest.raises(ValueError, match=reason):
            env.reset(options=options)


class TestObservations:
    def test_index_counts_row_by_row(self):
        env = GridWorldEnv(size=[3, 7], observation="index")
        assert env.observation_space == gym.spaces.Discrete(21)
        assert env.reset(options={"start": (1, 2)})[0] == 9

    def test_goal_variant_is_a_goal_environment(self):
        env = GridWorldEnv(layout="four_rooms", observation="goal", random_start=True, random_goal=True)
        check_env(env, skip_render_check=True)
        observation, info = env.reset(seed=3)
        assert info == {"is_success": False}
        policy = ScriptedPolicy("shortest_path", env)
        for _ in range(100):
            observation, reward, end, _, info = env.step(policy.predict(observation)[0])
            achieved, desired = observation["achieved_goal"], observation["desired_goal"]
            assert achieved.tolist() == observation["observation"].tolist()
            assert env.compute_reward(achieved, desired, info) == reward
            assert env.compute_terminated(achieved, desired, info) is end
            assert info["is_success"] is end
            if end:
                break
        assert reward == 1.0

    def test_computed_rewards_take_batches(self):
        env = GridWorldEnv(layout=["S.O", "..G"], observation="goal", step_reward=-1, goal_reward=10, pit_reward=-5)
        achieved = np.array([[0, 0], [0, 1], [0, 2], [1, 2], [0, 2]])
        desired = np.array([[0, 0], [1, 2], [1, 2], [1, 2], [0, 2]])
        assert env.compute_reward(achieved, desired, None).tolist() == [10, -1, -5, 10, 10]
        assert env.compute_terminated(achieved, desired).tolist() == [True, False, True, True, True]

    @pytest.mark.parametrize("observation", ["position", "index"])
    def test_only_the_goal_variant_computes_rewards(self, observation):
        env = GridWorldEnv(observation=observation)
        assert not hasattr(env, "compute_reward")
        assert not hasattr(env, "compute_terminated")


class TestModel:
    def test_a_model_by_hand(self):
        """S . G over O . #, with slips, each entry written out."""
        env = GridWorldEnv(layout=["S.G", "O.#"], slip=0.2, step_reward=-1, goal_reward=7, pit_reward=-9)
        p, r = env.transition_model()
        np.testing.assert_allclose(p[0, RIGHT], [0.1, 0.8, 0, 0.1, 0, 0])
        np.testing.assert_allclose(p[0, DOWN], [0.1, 0.1, 0, 0.8, 0, 0])
        np.testing.assert_allclose(p[1, RIGHT], [0, 0.1, 0.8, 0, 0.1, 0])
        np.testing.assert_allclose(p[4, LEFT], [0, 0.1, 0, 0.8, 0.1, 0])
        np.testing.assert_allclose(r[0], [-0.9 - 0.9, 0.8 * -9 - 0.2, 0.9 * -1 + 0.1 * -9, -1.0])
        np.testing.assert_allclose(r[1, RIGHT], 0.8 * 7 - 0.2)
        for cell in (2, 3, 5):
            assert p[cell, :, cell].tolist() == [1.0] * 4
            assert r[cell].tolist() == [0.0] * 4

    @given(texts(), st.sampled_from([0.0, 0.3, 1.0]))
    @settings(max_examples=40)
    def test_probabilities_add_up_to_one(self, text, slip):
        try:
            env = GridWorldEnv(layout=text, slip=slip)
        except ValueError:
            return
        p, r = env.transition_model()
        np.testing.assert_allclose(p.sum(axis=2), 1.0, atol=1e-12)
        assert (p >= 0).all()
        assert r.shape == (p.shape[0], 4)

    @pytest.mark.parametrize(
        "kwargs",
        [
            {"layout": ["S..O", ".#..", "...G"], "slip": 0.2, "step_reward": -0.04, "pit_reward": -1.0},
            {"layout": "cliff", "slip": 0.1},
            {"layout": "small"},
        ],
        ids=["pits", "cliff", "small"],
    )
    def test_planning_foretells_what_the_env_pays(self, kwargs):
        """The value of the best policy is the mean return of that policy in the vector env, within four deviations."""
        discount, count, horizon = 0.95, 6_000, 300
        q = value_iteration(*GridWorldEnv(**kwargs).transition_model(), discount)
        rows = GridWorldVectorEnv(num_envs=count, observation="index", autoreset_mode="Disabled", **kwargs)
        cells, _ = rows.reset(seed=0)
        expected = q.max(axis=1)[cells].mean()
        returns, alive = np.zeros(count), np.ones(count, bool)
        for step in range(horizon):
            cells, rewards, ends, _, _ = rows.step(q.argmax(axis=1)[cells])
            returns += discount**step * rewards * alive
            alive &= ~ends
            if ends.any():
                cells, _ = rows.reset(options={"reset_mask": ends})
            if not alive.any():
                break
        assert abs(returns.mean() - expected) < 4 * returns.std() / np.sqrt(count) + 1e-6

    def test_the_model_follows_the_goal_of_the_episode(self):
        env = GridWorldEnv(random_goal=True)
        with pytest.raises(ResetNeeded):
            env.transition_model()
        env.reset(options={"goal": (2, 2)})
        assert env.transition_model()[0][12, :, 12].tolist() == [1.0] * 4
        assert env.transition_model()[0][0, RIGHT, 1] == 1.0


class TestRefusals:
    @pytest.mark.parametrize(
        ("kwargs", "reason"),
        [
            ({"layout": "labyrinth"}, "'labyrinth'"),
            ({"layout": ["S.G", ".."]}, "equally long"),
            ({"layout": ["S.X"]}, "'X' at row 0, column 2"),
            ({"layout": []}, "at least one row"),
            ({"layout": [""]}, "at least one row"),
            ({"layout": 7}, "list of strings"),
            ({"layout": ["S#G"]}, r"no path leads from the start \(0, 0\) to the goal \(0, 2\)"),
            ({"layout": ["SOG"]}, "no path leads"),
            ({"layout": ["S.."]}, "no goal"),
            ({"layout": ["..G"]}, "one start"),
            ({"layout": ["S.S.G"]}, "one start"),
            ({"layout": ["S#G"], "random_start": True}, "shut in"),
            ({"layout": ["S#G"], "random_goal": True}, "shut in"),
            ({"layout": ["S#G"], "random_start": True, "random_goal": True}, "two free cells"),
            ({"size": 1}, "at least two cells"),
            ({"size": 0}, "at least two cells"),
            ({"size": 10**30}, "at most 1,000,000 cells"),
            ({"size": np.array(3.0)}, "size must be"),
            ({"start": np.array(1)}, r"start must be \[row, column\]"),
            ({"pit_reward": 10**400}, "pit_reward must be finite"),
            ({"observation": ["index"]}, r"observation must be one of .*not \['index'\]"),
            ({"size": [3]}, "size must be"),
            ({"size": "big"}, "size must be"),
            ({"size": 4, "layout": "maze"}, "'empty' only"),
            ({"start": [0, 0]}, "same cell"),
            ({"goal": [5, 0]}, "outside the map"),
            ({"start": [0, 0], "layout": "four_rooms"}, "is a wall"),
            ({"start": [1, 1], "random_start": True}, "exclude each other"),
            ({"goal": [1, 1], "random_goal": True}, "exclude each other"),
            ({"slip": 1.5}, "a number from 0 to 1, not 1.5"),
            ({"slip": float("nan")}, "a number from 0 to 1, not nan"),
            ({"goal_reward": float("inf")}, "finite"),
            ({"observation": "picture"}, "'picture'"),
            ({"observation": "goal", "layout": "small"}, "single goal"),
        ],
        ids=str,
    )
    def test_one_sentence_names_the_value(self, kwargs, reason):
        with pytest.raises(ValueError, match=reason):
            gym.make("GridWorld-v0", **kwargs)
        with pytest.raises(ValueError, match=reason):
            gym.make_vec("GridWorld-v0", num_envs=2, **kwargs)

    @pytest.mark.parametrize(
        "kwargs", [{"slip": "much"}, {"random_start": 1}, {"step_reward": True}, {"colour": 3}], ids=str
    )
    def test_wrong_types(self, kwargs):
        with pytest.raises(TypeError, match=next(iter(kwargs))):
            gym.make("GridWorld-v0", **kwargs)

    def test_arguments_stay_as_given(self):
        kwargs = {"layout": ["S..", "..G"], "goal": [0, 2]}
        env = gym.make("GridWorld-v0", **kwargs)
        env.reset()
        assert kwargs == {"layout": ["S..", "..G"], "goal": [0, 2]}
        assert env.spec.kwargs == kwargs


class TestPictures:
    def test_text_shows_the_map_and_the_walker(self):
        env = GridWorldEnv(layout=["S.#", "O.G"], render_mode="ansi")
        env.reset()
        assert env.render() == "A.#\nO.G"
        env.step(RIGHT)
        assert env.render() == env.render() == "SA#\nO.G"

    def test_a_moved_goal_shows(self):
        env = GridWorldEnv(layout=["S.#", "O.G"], render_mode="ansi")
        env.reset(options={"start": (1, 1), "goal": (0, 1)})
        assert env.render() == "SG#\nOA."

    def test_the_walker_is_where_the_state_says(self):
        env = GridWorldEnv(size=[3, 7], render_mode="rgb_array")
        for place in ((0, 6), (2, 0), (1, 3)):
            env.reset(options={"start": place})
            assert find_walker(env.render(), 3, 7) == place

    def test_values_color_cells_and_point_to_the_goal(self):
        env = GridWorldEnv()
        q = value_iteration(*env.transition_model(), 0.9)
        frame, flat = env.draw_values(q), env.draw_values(np.zeros((5, 5, 4)))
        assert frame.shape == flat.shape
        assert frame.dtype == np.uint8
        near, far = cell_pixels(frame, 0, 1, 5), cell_pixels(frame, 4, 4, 5)
        assert saturation(near) > saturation(far) + 0.2
        assert (flat != frame).any()
        assert cell_pixels(flat, 4, 4, 5).min() > 20  # no arrow where nothing is known; the value's digits are there

    @pytest.mark.parametrize(
        "q", [np.zeros((4, 4)), np.zeros((5, 5)), np.full((25, 4), np.nan)], ids=["few", "flat", "nan"]
    )
    def test_senseless_values_are_refused(self, q):
        with pytest.raises(ValueError, match="q must be finite, of shape"):
            GridWorldEnv().draw_values(q)


def cell_pixels(frame: np.ndarray, row: int, col: int, rows: int) -> np.ndarray:
    """The middle of a cell of a square map with cells of 72 pixels."""
    top, left = 44 + (frame.shape[0] - 58 - 72 * rows) // 2, 14
    return frame[top + 72 * row + 6 : top + 72 * row + 66, left + 72 * col + 6 : left + 72 * col + 66]


def saturation(pixels: np.ndarray) -> float:
    colors = np.median(pixels.reshape(-1, 3), axis=0) / 255
    return float(colors.max() - colors.min())


def find_walker(frame: np.ndarray, rows: int, cols: int) -> tuple[int, int]:
    """Row and column of the blue disc, found by its color and the picture's margins."""
    red, green, blue = (frame[..., channel].astype(int) for channel in range(3))
    ys, xs = np.nonzero((blue > 180) & (red < 90) & (green < 150))
    side = (frame.shape[1] - 28) / cols
    return int((ys.mean() - 44) // side), int((xs.mean() - 14) // side)


def test_make_world_is_what_the_envs_use():
    world = make_world(layout="maze", slip=0.1)
    assert (world.step_draws, world.max_step_draws, world.reset_draws) == (1, 1, 0)
    assert make_world().step_draws == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_uniform_draws_the_last_of_any_number_of_cells(dtype):
    counts = np.arange(1, 200_000)
    largest = np.nextafter(dtype(1), dtype(0))
    assert (dynamics._index(np, np.full(counts.size, largest), counts.astype(dtype)) == counts - 1).all()


def test_a_goal_traced_in_jax_is_never_the_random_start():
    jax = pytest.importorskip("jax", reason="JAX is an extra")
    from gym_custom import functional

    env = functional.make("GridWorld-v0", random_start=True)
    goals, keys = jax.numpy.repeat(jax.numpy.arange(25), 40), jax.random.split(jax.random.key(0), 1000)
    state, _ = jax.vmap(lambda goal, key: env.reset(key, env.params._replace(goal=goal)))(goals, keys)
    assert (np.asarray(state.world.goal) == np.asarray(goals)).all()
    assert (np.asarray(state.world.cell) != np.asarray(goals)).all()
    assert len(np.unique(state.world.cell)) == 25
