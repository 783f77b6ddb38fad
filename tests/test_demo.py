"""The scripts for people: demo.py and play.py, called in-process with tiny budgets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from PIL import Image

import gym_custom.__main__ as main_of_gym_custom
from agents import __main__ as main_of_agents
from agents import pretrained
from gym_custom.programs import check, console, demo, play, policies, screens, values

SCRIPTS = str(Path(__file__).parents[1] / "scripts")
SHORT = ["--env", "GridWorld-v0", "--env-kwargs", "size:3"]


def reach_down(env: gym.Env) -> Any:
    """A policy factory, as ``--policy module:function`` wants it: from the bottom right to the top left."""
    return lambda observation: 2 if observation[1] else 3


class Climber:
    """A model with predict."""

    def predict(self, observation, deterministic=True):
        assert deterministic
        return 3, None


def climber(env: gym.Env) -> Climber:
    return Climber()


def nonsense(env: gym.Env) -> int:
    return 7


def frames_of(path: Path) -> int:
    with Image.open(path) as film:
        return film.n_frames


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as film:
        return film.size


@pytest.fixture(scope="module")
def agent(tmp_path_factory) -> Path:
    """A saved agent that has learnt nothing yet."""
    from agents.apex import ApeX, ApeXConfig

    path = tmp_path_factory.mktemp("agent") / "run.apex"
    ApeX("NumpyCartPole-v1", ApeXConfig(cluster="inline", num_actors=1)).save(path)
    return path


class TestDemo:
    def test_a_gif_of_one_episode(self, tmp_path, capsys):
        path = tmp_path / "new" / "walk.gif"
        assert demo.main([*SHORT, "--output", str(path)]) == 0
        out = capsys.readouterr().out
        assert "Episode 1 finished after 4 timesteps, return 1" in out
        assert str(path) in out
        assert list(path.parent.iterdir()) == [path]
        assert frames_of(path) == 5  # the last picture's repetitions are one longer frame
        with Image.open(path) as film:
            first, last = (self.picture(film, index) for index in (0, 4))
        env = gym.make("GridWorld-v0", size=3, render_mode="rgb_array")
        env.reset(seed=0)
        assert abs(first - env.render()).mean() < 1
        assert abs(first - last).mean() > 1

    def picture(self, film: Image.Image, index: int) -> np.ndarray:
        film.seek(index)
        return np.asarray(film.convert("RGB")).astype(int)

    def test_a_video_has_the_frames_and_the_pace(self, tmp_path):
        import imageio_ffmpeg

        path = tmp_path / "walk.mp4"
        assert demo.main([*SHORT, "--output", str(path)]) == 0
        frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
        fps = gym.make("GridWorld-v0").metadata["render_fps"]
        assert frames == 1 + 4 + round(demo.HOLD * fps)
        assert frames / seconds == pytest.approx(fps, rel=0.05)

    def test_a_bar_leaves_nothing_behind(self, tmp_path, capsys):
        assert demo.main([*SHORT, "--output", str(tmp_path / "a.gif")]) == 0
        lines = capsys.readouterr().err.split("\r")
        assert any("step/s" in line or "?" in line for line in lines)
        assert not lines[-1].strip()

    @pytest.mark.parametrize("rows", ["1", "2"])
    def test_the_last_picture_stays(self, rows, tmp_path):
        assert demo.main([*SHORT, "--num-envs", rows, "--output", str(tmp_path / "a.gif")]) == 0
        with Image.open(tmp_path / "a.gif") as film:
            film.seek(film.n_frames - 1)
            assert film.info["duration"] >= 1000 * demo.HOLD

    def test_a_wall_of_rows(self, tmp_path, capsys):
        path = tmp_path / "wall.gif"
        assert demo.main([*SHORT, "--num-envs", "4", "--policy", "random", "--output", str(path)]) == 0
        assert "4 rows, 1 episode each" in capsys.readouterr().out
        single = gym.make("GridWorld-v0", size=3, render_mode="rgb_array")
        single.reset()
        assert 1000 >= size_of(path)[0] > 2 * single.render().shape[1]

    @pytest.mark.parametrize("rows", ["1", "2"])
    @pytest.mark.parametrize(
        "policy", ["scripted", "scripted:shortest_path", "tests_of_demo:reach_down", "tests_of_demo:climber"]
    )
    def test_policies(self, policy, rows, tmp_path, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "tests_of_demo", sys.modules[__name__])
        if policy.endswith("climber") and rows == "2":
            pytest.skip("this model takes one observation at a time")
        arguments = [*SHORT, "--env-kwargs", "size:3", "start:[2,0]", "--policy", policy, "--num-envs", rows]
        assert demo.main([*arguments, "--output", str(tmp_path / "a.gif")]) == 0
        assert "return 1" in capsys.readouterr().out

    @pytest.mark.parametrize("rows", ["1", "2"])
    def test_a_trained_agent_plays(self, agent, rows, tmp_path, capsys):
        arguments = ["--env", "NumpyCartPole-v1", "--model", str(agent), "--num-envs", rows]
        assert demo.main([*arguments, "--output", str(tmp_path / "a.gif")]) == 0
        assert "return" in capsys.readouterr().out

    @pytest.mark.parametrize("rows", ["1", "2"])
    @pytest.mark.parametrize("kwargs", [[], ["observation:index"]], ids=["position", "index"])
    def test_a_table_of_values_plays_and_shows(self, kwargs, rows, tmp_path, capsys):
        q = np.zeros((3, 3, 4))
        q[:, 1:, 2], q[1:, 0, 3] = 1.0, 1.0
        np.save(tmp_path / "q.npy", q.reshape(9, 4) if kwargs else q)
        arguments = [*SHORT, *kwargs, "--model", str(tmp_path / "q.npy"), "--num-envs", rows]
        assert demo.main([*arguments, "--output", str(tmp_path / "a.gif")]) == 0
        assert "return 1" in capsys.readouterr().out
        if rows == "1":
            env = gym.make("GridWorld-v0", size=3).unwrapped
            env.reset()
            with Image.open(tmp_path / "a.gif") as film:
                assert abs(self.picture(film, 0) - env.draw_values(q)).mean() < 2

    def test_an_agent_of_another_world_is_refused(self, agent, capsys):
        assert demo.main([*SHORT, "--model", str(agent)]) == 2
        assert "was trained on observations" in capsys.readouterr().err

    def test_a_foreign_file_is_refused(self, tmp_path, capsys):
        (tmp_path / "a.apex").write_bytes(b"no agent")
        assert demo.main([*SHORT, "--model", str(tmp_path / "a.apex")]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_the_same_seed_shows_the_same(self, tmp_path):
        films = [tmp_path / name for name in ("a.gif", "b.gif", "c.gif")]
        for film, seed in zip(films, "001", strict=True):
            demo.main([*SHORT, "--policy", "random", "--seed", seed, "--output", str(film)])
        assert films[0].read_bytes() == films[1].read_bytes() != films[2].read_bytes()

    def test_any_gymnasium_id_will_do(self, tmp_path):
        path = tmp_path / "pole.gif"
        assert demo.main(["--env", "CartPole-v1", "--policy", "random", "--output", str(path)]) == 0
        assert size_of(path) == (600, 400)

    def test_the_cart_pole_stands_to_the_end(self):
        env = gym.make("NumpyCartPole-v1")
        model = policies.scripted(env, "", "NumpyCartPole-v1")
        for seed in range(20):
            observation, _ = env.reset(seed=seed)
            steps, terminated, truncated = 0, False, False
            while not (terminated or truncated):
                observation, _, terminated, truncated, _ = env.step(model.predict(observation)[0])
                steps += 1
            assert (steps, terminated) == (500, False)

    def test_a_window_shows_frames_until_it_is_closed(self, monkeypatch, capsys):
        shown = []

        class Clock:
            def tick(self, fps: float) -> None:
                shown.append(fps)
                if len(shown) == 3:
                    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE))

        monkeypatch.setattr(pygame.time, "Clock", Clock)
        assert demo.main(SHORT) == 0
        assert shown == [8.0] * 3
        assert "finished" not in capsys.readouterr().out

    def test_ctrl_c_keeps_what_there_is(self, tmp_path, monkeypatch, capsys):
        path, show = tmp_path / "a.gif", screens.GifFile.show

        def interrupt(screen: Any, frame: np.ndarray) -> bool:
            show(screen, frame)
            if len(screen._frames) == 3:
                raise KeyboardInterrupt
            return True

        monkeypatch.setattr(screens.GifFile, "show", interrupt)
        assert demo.main([*SHORT, "--output", str(path)]) == 130
        assert frames_of(path) == 3
        assert "stopped" in capsys.readouterr().out

    def test_a_failure_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "a.gif"
        path.write_bytes(b"old")
        monkeypatch.setattr(screens.GifFile, "show", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            demo.main([*SHORT, "--output", str(path)])
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_help_has_examples(self, capsys):
        with pytest.raises(SystemExit) as stop:
            demo.main(["--help"])
        assert stop.value.code == 0
        assert "examples:" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--env", "Nowhere-v0"], "Nowhere"),
            (["--env", "GridWorld"], "there is no environment 'GridWorld'; near it are GridWorld-v0"),
            (["--env", "NumpyCartPol-v1"], "NumpyCartPole-v1"),
            (["--env", "no_such_module:Walk-v0"], "no_such_module"),
            (["--env", "GridWorld-v0", "--env-kwargs", "layout:labyrinth"], "'labyrinth'"),
            (["--env", "GridWorld-v0", "--env-kwargs", "layout"], "NAME:VALUE"),
            (["--env", "GridWorld-v0", "--env-kwargs", "colour:3"], "colour"),
            (["--env", "GridWorld-v0", "--env-kwargs", "slip:much"], "not 'much'\n"),
            ([*SHORT, "--seed", "-1"], "must be an integer from 0, not '-1'"),
            ([*SHORT, "--output", "walk.png"], ".gif or .mp4"),
            ([*SHORT, "--output", f"{__file__}/walk.gif"], "test_demo.py"),
            ([*SHORT, "--policy", "clever"], "'clever'"),
            ([*SHORT, "--policy", "scripted:clever"], "'clever'"),
            ([*SHORT, "--policy", "trained"], "was trained on observations"),
            ([*SHORT, "--policy", "random", "--model", "run.apex"], "--model"),
            ([*SHORT, "--model", "no_such_file.apex"], "no_such_file.apex"),
            ([*SHORT, "--model", "."], ". is a folder"),
            ([*SHORT, "--policy", "no_such_module:f"], "no_such_module"),
            ([*SHORT, "--policy", "math:no_such_function"], "no_such_function"),
            ([*SHORT, "--policy", "tests_of_demo:nonsense"], "7"),
            (["--env", "CartPole-v1", "--policy", "scripted"], "no scripted policy"),
            (["--env", "CartPole-v1", "--model", __file__.replace("test_demo.py", "no_table.npy")], "no_table.npy"),
            ([*SHORT, "--episodes", "0"], "positive integer"),
            ([*SHORT, "--num-envs", "many"], "'many'"),
            (["--colour"], "--colour"),
        ],
        ids=str,
    )
    def test_wrong_arguments_get_one_sentence(self, arguments, sentence, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "tests_of_demo", sys.modules[__name__])
        assert demo.main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("demo: ")
        assert captured.err.count("\n") == 1
        assert sentence in captured.err


def test_walls_keep_pictures_whole_and_in_order():
    frames = [np.full((40, 60, 3), 10 * index, np.uint8) for index in range(5)]
    found = screens.wall(frames, 1000)
    levels = [int(level) for level in np.unique(found[..., 0]) if level < 60]
    assert levels == [0, 10, 20, 30, 40]
    tops = [int(np.argwhere(found[..., 0] == level)[0] @ [10_000, 1]) for level in levels]
    assert tops == sorted(tops)
    assert all((found[..., 0] == level).sum() == 40 * 60 for level in levels)


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (12, 4)])
def test_walls_leave_few_places_empty(count, columns):
    wall = screens.wall([np.zeros((600, 600, 3), np.uint8)] * count, 100_000)
    assert (wall.shape[1] - screens._GAP) // (600 + screens._GAP) == columns


def test_a_gif_keeps_the_colors_of_a_legend(tmp_path):
    frame = np.random.default_rng(0).integers(0, 80, (200, 300, 3), np.uint8)  # thousands of colors, none of them ours
    colors = [screens.Palette.ACCENT, screens.Palette.GOAL, screens.Palette.SECOND]
    for place, color in enumerate(colors):
        frame[10:13, 20 * place : 20 * place + 3] = color
    with screens.GifFile(tmp_path / "a.gif", 10) as file:
        file.show(frame)
    with Image.open(tmp_path / "a.gif") as film:
        found = np.asarray(film.convert("RGB"))
    assert [tuple(found[11, 20 * place + 1]) for place in range(3)] == colors


def test_shrinking_takes_means():
    frame = np.zeros((4, 5, 3), np.uint8)
    frame[:2, 0] = 100
    assert screens.shrink(frame, 2)[..., 0].tolist() == [[50, 0], [0, 0]]


class Keys:
    """Presses keys by the clock of the game."""

    def __init__(self, script: dict[int, list[tuple[int, int]]]):
        self.script, self.ticks = script, 0

    def __call__(self) -> Keys:
        return self

    def tick(self, fps: float) -> None:
        self.ticks += 1
        for kind, key in self.script.get(self.ticks, []):
            pygame.event.post(pygame.event.Event(kind, key=key))


@pytest.fixture
def press(monkeypatch):
    def start(script: dict[int, list[tuple[int, int]]]) -> None:
        monkeypatch.setattr(pygame.time, "Clock", Keys(script))

    return start


DOWN, UP = pygame.KEYDOWN, pygame.KEYUP
LEAVE = [(DOWN, pygame.K_ESCAPE)]


class TestPlay:
    def test_the_arrow_keys_walk_and_nothing_moves_without(self, press, tmp_path, capsys):
        press(
            {
                3: [(DOWN, pygame.K_LEFT)],
                5: [(UP, pygame.K_LEFT)],
                8: [(DOWN, pygame.K_w)],
                10: [(UP, pygame.K_w)],
                14: LEAVE,
            }
        )
        path = tmp_path / "game.gif"
        assert play.main([*SHORT, "--output", str(path)]) == 0
        assert "Episode finished after 4 timesteps, return 1" in capsys.readouterr().out
        assert frames_of(path) >= 5

    def test_a_resting_cart_pole_outlasts_a_pushed_one(self, press, capsys):
        press({60: LEAVE})
        assert play.main(["--env", "NumpyCartPole-v1", "--seed", "3"]) == 0
        resting = capsys.readouterr().out.count("Episode")
        press({1: [(DOWN, pygame.K_RIGHT)], 60: LEAVE})
        assert play.main(["--env", "NumpyCartPole-v1", "--seed", "3"]) == 0
        assert capsys.readouterr().out.count("Episode") > resting

    def test_without_a_screen_there_is_a_sentence(self, monkeypatch, capsys):
        monkeypatch.setattr(play, "screen_is_there", lambda: False)
        assert play.main(SHORT) == 2
        assert capsys.readouterr().err.startswith("play: there is no screen here")

    def test_number_keys_serve_other_ids(self, press, capsys):
        press({1: [(DOWN, pygame.K_2)], 20: LEAVE})
        assert play.main(["--env", "CartPole-v1", "--seed", "1"]) == 0
        assert "Episode finished after" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--env", "Pendulum-v1"], "cannot steer"),
            (["--env", "Nowhere-v0"], "Nowhere"),
            ([*SHORT, "--output", "a.png"], ".gif or .mp4"),
            (["--fps", "fast"], "fast"),
            (["--fps", "0"], "positive integer"),
            (["--seed", "-1"], "must be an integer from 0, not '-1'"),
        ],
        ids=str,
    )
    def test_wrong_arguments_get_one_sentence(self, arguments, sentence, capsys):
        assert play.main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("play: ")
        assert captured.err.count("\n") == 1
        assert sentence in captured.err


def played(env: gym.Env, policy: Any, steps: int) -> Any:
    """The observation after some steps."""
    observation, _ = env.reset(seed=3)
    for _ in range(steps):
        observation, *_ = env.step(policy.predict(observation)[0])
    return observation


class TestValues:
    def test_a_network_on_a_grid_shows_values_and_arrows_on_the_map(self):
        env = gym.make("GridWorld-v0", render_mode="rgb_array")
        policy = pretrained.load(env)
        observation = played(env, policy, 2)
        table = np.array([[policy.action_values(np.array([row, col])) for col in range(5)] for row in range(5)])
        expected = env.unwrapped.draw_values(table)
        assert (values.picture_with_values(env, policy)(observation) == expected).all()
        assert abs(expected.astype(int) - env.render()).mean() > 1

    def test_bars_below_the_picture_show_how_much_less_the_others_are_worth(self):
        frame = np.full((50, 300, 3), 7, np.uint8)
        picture = values.Bars().below(frame, np.array([1.0, 3.0, 2.0]))
        assert (picture[:50] == frame).all()
        panel = picture[50:].astype(int)
        best = (panel == values.Palette.AGENT).all(axis=-1)
        assert set(np.flatnonzero(best.any(axis=0)) // 100) == {1}
        ground = (panel == values.Palette.PANEL).all(axis=-1)
        heights = [int((~ground[:42, 100 * i + 50]).sum()) for i in range(3)]  # above the labels
        assert heights[1] > heights[2] > heights[0] > 0
        assert heights[2] == pytest.approx((heights[0] + heights[1]) / 2, abs=2)

    def test_the_scale_is_that_of_the_largest_difference_so_far(self):
        bars, frame = values.Bars(), np.zeros((20, 200, 3), np.uint8)
        alone = values.Bars().below(frame, np.array([1.0, 1.1]))
        bars.below(frame, np.array([0.0, 1.0]))
        assert (bars.below(frame, np.array([1.0, 1.1])) != alone).any()

    @pytest.mark.parametrize("rows", ["1", "2"])
    def test_a_trained_pole_gets_bars_unless_they_are_not_wanted(self, rows, tmp_path):
        arguments = ["--env", "NumpyCartPole-v1", "--policy", "trained", "--num-envs", rows]
        arguments += ["--env-kwargs", "max_episode_steps:5"]
        for name, more in (("with.gif", []), ("without.gif", ["--no-values"])):
            assert demo.main([*arguments, *more, "--output", str(tmp_path / name)]) == 0
        assert size_of(tmp_path / "with.gif")[1] > size_of(tmp_path / "without.gif")[1]

    def test_what_has_no_values_is_shown_as_it_is(self):
        env = gym.make("NumpyCartPole-v1", render_mode="rgb_array")
        observation, _ = env.reset(seed=0)
        picture = values.picture_with_values(env, policies.RandomModel(env.action_space, 0))
        assert (picture(observation) == env.render()).all()


BROKEN_WORLD = """from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom import World


class Params(NamedTuple):
    goal: float = 1.0


class State(NamedTuple):
    x: Any


def initial_state(xp, params, u):
    return State(u[0])


def transition(xp, params, state, action, u=None):
    return State(state.x + 0.5 * action)  # leaves the observation space


def outcome(xp, params, state, action, next_state):
    return next_state.x, next_state.x > 99.0


def observe(xp, params, state):
    return (state.x,)


def make_world():
    rules = (initial_state, transition, outcome, observe)
    return World(Params(), *rules, spaces.Discrete(2), spaces.Box(0, 1, (1,), np.float32), reset_draws=1)
"""


class TestCheck:
    def test_a_world_that_keeps_its_contract(self, capsys):
        assert check.main(["GridWorld-v0", "--env-kwargs", "layout:small"]) == 0
        assert capsys.readouterr().out.split(maxsplit=1) == ["GridWorld-v0", "keeps the contract\n"]

    def test_a_world_that_does_not_is_told_why(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "leaky_world_of_a_user.py").write_text(BROKEN_WORLD)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        assert check.main(["leaky_world_of_a_user:make_world"]) == 1
        assert "fault" in capsys.readouterr().out

    def test_all_ids_are_meant_where_none_is_named(self):
        assert {"NumpyCartPole-v1", "GridWorld-v0", "MyEnvHard-v0"} <= set(check.own_ids())

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["Nowhere-v0"], "Nowhere-v0"),
            (["CartPole-v1"], "is no world of this package"),
            (["no_such_module:make_world"], "no_such_module"),
            (["GridWorld-v0", "--env-kwargs", "size:none"], "none"),
            (["--colour"], "--colour"),
        ],
        ids=str,
    )
    def test_wrong_arguments_get_one_sentence(self, arguments, sentence, capsys):
        assert check.main(arguments) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("check: ")
        assert captured.err.count("\n") == 1
        assert sentence in captured.err


class TestModules:
    """``python -m gym_custom`` and ``python -m agents``, called as functions."""

    @pytest.mark.parametrize("program", ["demo", "play", "check"])
    def test_each_program_has_help_with_examples(self, program, capsys):
        with pytest.raises(SystemExit) as stop:
            main_of_gym_custom.main([program, "--help"])
        assert stop.value.code == 0
        assert f"examples:\n  python -m gym_custom {program}" in capsys.readouterr().out

    def test_the_program_gets_the_rest(self, capsys):
        assert main_of_gym_custom.main(["demo", "--env", "Nowhere-v0"]) == 2
        assert capsys.readouterr().err.startswith("demo: ")

    @pytest.mark.parametrize("main", [main_of_gym_custom.main, main_of_agents.main])
    def test_an_unknown_program_gets_one_sentence(self, main, capsys):
        assert main(["dem"]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_train_gets_the_rest(self, capsys):
        assert main_of_agents.main([]) == 0
        assert "train" in capsys.readouterr().out
        assert main_of_agents.main(["train", "--env", "Nowhere-v0"]) == 2
        assert capsys.readouterr().err.startswith("train: ")

    def test_without_tqdm_there_is_no_bar_and_all_goes_on(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        assert isinstance(console.progress_bar(3, "step", True), console.NoBar)
        assert demo.main([*SHORT, "--output", str(tmp_path / "a.gif")]) == 0
        captured = capsys.readouterr()
        assert "finished after 4 timesteps" in captured.out
        assert captured.err == ""


OWN_WORLD = """import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import register


class Candle(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space, action_space = spaces.Discrete(4), spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length = 3
        return self.length, {}

    def step(self, action):
        self.length -= 1
        return self.length, 1.0, self.length == 0, False, {}

    def render(self):
        return np.full((20, 20, 3), 60 * self.length, np.uint8)


register(id="Candle-v0", entry_point="candle_of_a_user:Candle", max_episode_steps=5)
"""


@pytest.mark.serial
@pytest.mark.parametrize(
    ("script", "arguments", "sentence"),
    [
        ("demo.py", ["--output", "candle.gif"], "finished after 3 timesteps, return 3"),
        ("train_q_learning.py", ["--mode", "python", "--num-episodes", "2"], "Total number of steps: 6"),
        ("train_apex.py", ["--total-timesteps", "9"], "more than the warm-up"),
        ("compare_baselines.py", ["--algo", "q_learning", "-n", "30", "--eval-episodes", "1"], "Report: logs"),
    ],
    ids=["demo", "train_q_learning", "train_apex", "compare_baselines"],
)
def test_scripts_find_a_world_in_the_folder_where_the_user_stands(script, arguments, sentence, tmp_path):
    (tmp_path / "candle_of_a_user.py").write_text(OWN_WORLD)
    command = [sys.executable, f"{SCRIPTS}/{script}", "--env", "candle_of_a_user:Candle-v0", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert sentence in done.stdout + done.stderr, done.stderr
