"""The canvas: shapes where they belong, arrays of their own, windows that mind their manners, and the golden images.

``python tests/test_rendering.py`` writes the golden images anew; look at them before you commit them.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers import vector as vector_wrappers
from PIL import Image

import gym_custom
from gym_custom import rendering, window
from gym_custom.gridworld.policies import ScriptedPolicy, value_iteration
from gym_custom.rendering import Canvas, Palette, fade, mix
from gym_custom.window import load_pygame

assert gym_custom.World
GOLDEN = Path(__file__).parent / "golden"
IDS = ["NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0"]


def picture(paint: Any, canvas: Canvas | None = None, steps: int = 0, **kwargs: Any) -> np.ndarray:
    """A frame of 120 x 80 pixels that shows x from -3 to 3 and y from -2 to 2."""

    def draw(canvas: Canvas, params: Any, state: Any) -> None:
        canvas.begin((120, 80), (-3, -2, 3, 2))
        paint(canvas)

    return (canvas or Canvas()).frame(draw, None, None, steps, 0.0, **kwargs)


def color_at(frame: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    return tuple(int(c) for c in frame[round(40 - 20 * y), round(60 + 20 * x)])


def center_of(frame: np.ndarray, background: Any = Palette.PAPER) -> tuple[float, float]:
    """The middle of all that is painted, in world units."""
    rows, cols = np.nonzero((frame != background).any(axis=2))
    return (cols.mean() + 0.5 - 60) / 20, (40 - rows.mean() - 0.5) / 20


class TestShapes:
    def test_y_points_up_and_x_to_the_right(self):
        frame = picture(lambda canvas: canvas.circle((2.0, 1.0), 0.5, Palette.AGENT))
        assert frame.shape == (80, 120, 3)
        assert color_at(frame, 2.0, 1.0) == Palette.AGENT
        assert center_of(frame) == pytest.approx((2.0, 1.0), abs=0.03)

    @pytest.mark.parametrize(
        ("paint", "area"),
        [
            (lambda c: c.circle((0, 0), 1.0, Palette.INK), math.pi * 400),
            (lambda c: c.rectangle((-1, -0.5), (1, 0.5), Palette.INK), 800),
            (lambda c: c.rectangle((1, 0.5), (-1, -0.5), Palette.INK), 800),
            (lambda c: c.rectangle((-1, -1), (1, 1), Palette.INK, rounding=10), 1600 - (4 - math.pi) * 100),
            (lambda c: c.polygon([(-1, 0), (1, 0), (0, 2)], Palette.INK), 800),
            (lambda c: c.line((-1, -1), (1, 1), Palette.INK, width=4), 4 * 40 * math.sqrt(2)),
            (lambda c: c.circle((0, 0), 1.0, Palette.INK, width=5), math.pi * (400 - 225)),
            (lambda c: c.polyline([(-1, 0), (1, 0)], Palette.INK, width=6), 240 + math.pi * 9),
        ],
        ids=["disc", "rectangle", "corners swapped", "rounded", "triangle", "line", "ring", "polyline"],
    )
    def test_a_shape_covers_its_area(self, paint, area):
        frame = picture(paint).astype(float)
        share = (Palette.PAPER[0] - frame[..., 0]) / (Palette.PAPER[0] - Palette.INK[0])
        assert share.sum() == pytest.approx(area, rel=0.1)  # edges are a quarter of a pixel too wide

    def test_edges_are_anti_aliased(self):
        frame = picture(lambda canvas: canvas.circle((0, 0), 1.0, Palette.INK))
        assert len(np.unique(frame[..., 0])) >= 8

    def test_a_faded_color_lets_the_ground_through(self):
        frame = picture(lambda canvas: canvas.rectangle((-1, -1), (1, 1), fade((0, 0, 0), 0.5)))
        assert color_at(frame, 0, 0) == pytest.approx([c / 2 for c in Palette.PAPER], abs=2)

    def test_a_ring_can_be_faded_and_is_hollow(self):
        frame = picture(lambda canvas: canvas.circle((0, 0), 1.5, fade((0, 0, 0), 0.5), width=8))
        assert color_at(frame, 0, 0) == Palette.PAPER
        for angle in np.arange(12) / 12 * 2 * math.pi:
            found = color_at(frame, 1.3 * math.cos(angle), 1.3 * math.sin(angle))
            assert found == pytest.approx([c / 2 for c in Palette.PAPER], abs=3)

    def test_an_arrow_points_where_it_should(self):
        frame = picture(lambda canvas: canvas.arrow((-2, 0), (2, 0), Palette.INK, width=2, head=20))
        assert color_at(frame, -1.0, 0.0) == Palette.INK
        assert color_at(frame, 1.1, 0.3) == Palette.INK
        assert color_at(frame, -1.0, 0.3) == Palette.PAPER

    def test_dashes_leave_gaps(self):
        frame = picture(lambda canvas: canvas.line((-3, 0), (3, 0), Palette.INK, width=4, dash=6))
        dark = (frame[40, :, 0] < 100).astype(int)
        assert (np.diff(dark) == 1).sum() >= 8

    def test_text_has_its_anchor_at_the_point(self):
        frame = picture(lambda canvas: canvas.text((0, 0), "right", Palette.INK, 15, "midleft"))
        assert (frame[:, :58] == Palette.PAPER).all()
        assert (frame[:, 62:] != Palette.PAPER).any()

    def test_margins_shift_and_shrink_the_view_without_stretching_it(self):
        def draw(canvas: Canvas, params: Any, state: Any) -> None:
            canvas.begin((100, 140), (0, 0, 1, 1), margins=(0, 0, 0, 40))
            canvas.rectangle((0, 0), (1, 1), Palette.INK)

        frame = Canvas().frame(draw, None, None, 0, 0.0)
        assert (frame[42:] == Palette.INK).all()
        assert (frame[:38] == Palette.PAPER).all()

    @pytest.mark.parametrize("point", [(1e9, 0.0), (math.nan, 0.0), (math.inf, -math.inf), (0.0, -1e300)], ids=str)
    def test_what_is_far_away_does_no_harm(self, point):
        def paint(canvas: Canvas) -> None:
            canvas.circle(point, 1.0, Palette.INK)
            canvas.line((0, 0), point, Palette.INK)
            canvas.arrow((0, 0), point, Palette.INK)
            canvas.trail("far", point, Palette.INK)
            canvas.text(point, "far")

        assert picture(paint).shape == (80, 120, 3)

    def test_colors_mix_and_fade(self):
        assert mix((0, 0, 0), (100, 200, 50), 0.5) == (50, 100, 25)
        assert fade((1, 2, 3), 2.0) == (1, 2, 3, 255)


class TestBackground:
    def test_it_is_painted_once_and_stays(self):
        painted = []

        def draw(canvas: Canvas, params: Any, state: Any) -> None:
            if canvas.begin((120, 80), (-3, -2, 3, 2)):
                painted.append(1)
                canvas.circle((-2, 0), 0.5, Palette.GOAL)
                canvas.keep()
            canvas.circle((state, 0), 0.5, Palette.AGENT)

        canvas = Canvas()
        first, second = (canvas.frame(draw, None, x, 0, 0.0) for x in (0.0, 2.0))
        assert len(painted) == 1
        assert color_at(first, -2, 0) == color_at(second, -2, 0) == Palette.GOAL
        assert color_at(second, 0, 0) == Palette.PAPER


class TestTrail:
    def at(self, canvas: Canvas, x: float, steps: int, row: int = 0) -> np.ndarray:
        return picture(lambda c: c.trail("it", (x, 0.0), Palette.INK, width=6), canvas, steps, row=row)

    def test_it_joins_the_frames_of_an_episode(self):
        canvas = Canvas()
        self.at(canvas, -2.0, 0)
        frame = self.at(canvas, 2.0, 1)
        assert color_at(frame, 0.0, 0.0) != Palette.PAPER

    def test_it_begins_anew_when_told(self):
        canvas = Canvas()
        self.at(canvas, -2.0, 0)
        canvas.forget()
        assert (self.at(canvas, 2.0, 5) == Palette.PAPER).all()

    def test_drawing_a_step_twice_changes_nothing(self):
        canvas = Canvas()
        self.at(canvas, -2.0, 0)
        assert np.array_equal(self.at(canvas, 2.0, 1), self.at(canvas, 2.0, 1))

    def test_rows_have_trails_of_their_own(self):
        canvas = Canvas()
        for row, x in ((0, -2.0), (1, 2.0)):
            assert (self.at(canvas, x, 0, row) == Palette.PAPER).all()
        canvas.forget([1])
        assert (self.at(canvas, 0.0, 1, row=1) == Palette.PAPER).all()
        assert (self.at(canvas, 0.0, 1, row=0) != Palette.PAPER).any()

    def test_it_does_not_grow_for_ever(self, monkeypatch):
        monkeypatch.setattr(rendering, "_TRAIL_POINTS", 20)
        canvas = Canvas()
        for step in range(100):
            self.at(canvas, step / 50, step)
        assert [len(path) for path in canvas._trails.values()] == [20]


@pytest.mark.parametrize("env_id", IDS)
class TestArrays:
    def test_each_frame_has_its_own_memory(self, env_id):
        env = gym.make(env_id, render_mode="rgb_array")
        env.reset(seed=0)
        first = env.render()
        kept = first.copy()
        env.step(2 if env_id == "GridWorld-v0" else 1)
        second = env.render()
        assert np.array_equal(first, kept)
        assert not np.array_equal(first, second)
        assert not np.shares_memory(first, second)
        assert first.dtype == np.uint8
        assert first.ndim == 3
        assert first.flags.c_contiguous
        assert first.flags.writeable
        assert first.flags.owndata

    def test_close_twice_render_again(self, env_id):
        env, other = (gym.make(env_id, render_mode="rgb_array") for _ in range(2))
        env.reset(seed=0)
        other.reset(seed=0)
        before = env.render()
        env.close()
        env.close()
        assert np.array_equal(env.render(), before)
        assert np.array_equal(other.render(), before)

    def test_before_reset_it_says_so(self, env_id):
        with pytest.raises(ResetNeeded):
            gym.make(env_id, render_mode="rgb_array").unwrapped.render()
        with pytest.raises(ResetNeeded):
            gym.make_vec(env_id, num_envs=2, render_mode="rgb_array").render()

    def test_no_clock_runs(self, env_id, monkeypatch):
        monkeypatch.setattr(pygame.time, "Clock", None)
        env = gym.make(env_id, render_mode="rgb_array")
        env.reset(seed=0)
        env.step(0)
        assert env.render().std() > 1

    def test_drawing_leaves_state_and_generator_alone(self, env_id):
        env, other = (gym.make(env_id, render_mode=mode) for mode in ("rgb_array", None))
        for e in (env, other):
            e.reset(seed=3)
        env.render()
        for action in (0, 1, 0):
            found, expected = env.step(action), other.step(action)
            env.render()
            assert np.array_equal(found[0], expected[0])
        assert env.unwrapped.np_random.random() == other.unwrapped.np_random.random()

    def test_rows_of_a_vector_env_are_pictures_of_their_own(self, env_id):
        kwargs = {"random_start": True} if env_id == "GridWorld-v0" else {}
        rows = gym.make_vec(env_id, num_envs=3, render_mode="rgb_array", **kwargs)
        rows.reset(seed=0)
        frames = rows.render()
        kept = [frame.copy() for frame in frames]
        assert len(frames) == 3
        rows.step(np.zeros(3, int))
        rows.render()
        assert all(map(np.array_equal, frames, kept))
        assert not np.array_equal(frames[0], frames[1])
        for row, frame in enumerate(frames):
            single = gym.make(env_id, render_mode="rgb_array", **kwargs)
            single.reset(seed=row)
            assert np.array_equal(single.render(), frame)


def test_pictures_need_no_screen():
    code = f"""
import gymnasium as gym, gym_custom, sys
for env_id in {IDS!r}:
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().std() > 1
    rows = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array")
    rows.reset(seed=0)
    assert len(rows.render()) == 2
import pygame
assert not pygame.display.get_init()
assert not (pygame.mixer and pygame.mixer.get_init())
"""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("SDL_") and k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], env=keep, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""  # and nobody greets us from the pygame community


def test_without_pygame_the_error_names_the_package(monkeypatch):
    load_pygame.cache_clear()
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match="pip install pygame-ce"):
        picture(lambda canvas: None)
    load_pygame.cache_clear()


def test_memory_stays_flat():
    env = gym.make("NumpyCartPole-v1", render_mode="rgb_array").unwrapped

    def play(count: int) -> None:
        for _ in range(count):
            if env.step(0)[2]:
                env.reset()
            env.render()

    env.reset(seed=0)
    tracemalloc.start()
    play(60)
    before = tracemalloc.get_traced_memory()[0]
    play(150)
    assert tracemalloc.get_traced_memory()[0] - before < 200_000
    tracemalloc.stop()
    env.close()
    canvas = env._canvas
    assert canvas._device is canvas._picture is canvas._background is None
    assert not canvas._fonts
    assert not canvas._trails


class TestWindows:
    @pytest.fixture(autouse=True)
    def _clean(self):
        pygame.display.init()
        pygame.event.clear()
        yield
        for open_window in list(window._open):
            open_window.close()

    def window(self, env: gym.Env) -> Any:
        return env.unwrapped._canvas._window._window

    def test_each_env_has_a_window_with_its_picture(self):
        envs = [gym.make(env_id, render_mode="human") for env_id in IDS]
        for env in envs:
            env.reset(seed=0)
            assert env.render() is None
        windows = [self.window(env) for env in envs]
        assert [each.title for each in windows] == IDS
        for env, shown_in in zip(envs, windows, strict=True):
            shown = pygame.surfarray.array3d(shown_in.get_surface()).transpose(1, 0, 2)
            still = gym.make(env.spec.id, render_mode="rgb_array")
            still.reset(seed=0)
            assert np.array_equal(shown, still.render())
        envs[0].close()
        envs[1].step(0)
        assert self.window(envs[0]) is None
        assert self.window(envs[1]) is windows[1]

    @pytest.mark.parametrize("kind", [pygame.QUIT, pygame.WINDOWCLOSE], ids=["quit", "close"])
    def test_a_closed_window_does_not_end_the_run(self, kind):
        env, other = (gym.make("GridWorld-v0", render_mode="human") for _ in range(2))
        env.reset()
        other.reset()
        which = {"window": self.window(env)} if kind == pygame.WINDOWCLOSE else {}
        pygame.event.post(pygame.event.Event(kind, **which))
        env.step(0)
        assert self.window(env) is None
        assert (self.window(other) is None) == (kind == pygame.QUIT)
        for _ in range(5):
            env.step(0)
        env.reset()
        assert self.window(env) is None
        env.close()
        env.reset()
        assert self.window(env) is not None

    def test_the_keys_of_the_host_stay_in_the_queue(self):
        env = gym.make("GridWorld-v0", render_mode="human")
        env.reset()
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))
        env.step(0)
        assert pygame.event.peek(pygame.KEYDOWN)

    def test_the_window_waits_for_its_frames(self, monkeypatch):
        env = gym.make("GridWorld-v0", render_mode="human")
        env.reset()
        asked = []
        monkeypatch.setattr(
            env.unwrapped._canvas._window, "_clock", type("Clock", (), {"tick": lambda _, fps: asked.append(fps)})()
        )
        env.step(0)
        assert asked == [env.metadata["render_fps"]]

    def test_a_copy_and_a_pickle_leave_the_window_behind(self):
        import copy
        import pickle

        env = gym.make("GridWorld-v0", render_mode="human").unwrapped
        env.reset()
        for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            assert twin._canvas is None
            assert np.array_equal(twin.step(2)[0], [4, 3])
            twin.close()
        assert self.window(env) is not None


class TestWrappers:
    def test_record_video_takes_every_frame_at_the_right_pace(self, tmp_path):
        import imageio_ffmpeg

        env = RecordVideo(gym.make("GridWorld-v0", size=3, render_mode="rgb_array"), str(tmp_path / "films"))
        env.reset(seed=0)
        for action in (2, 2, 3, 3):
            env.step(action)
        env.close()
        (path,) = (tmp_path / "films").glob("*.mp4")
        frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
        assert frames == 5
        assert frames / seconds == pytest.approx(env.metadata["render_fps"], rel=0.05)

    def test_vector_record_video(self, tmp_path):
        rows = gym.make_vec("NumpyCartPole-v1", num_envs=3, render_mode="rgb_array")
        rows = vector_wrappers.RecordVideo(rows, str(tmp_path / "films"))
        rows.reset(seed=0)
        for _ in range(30):
            rows.step(np.ones(3, int))
        rows.close()
        assert list((tmp_path / "films").glob("*.mp4"))

    def test_vector_human_rendering(self):
        pytest.importorskip("cv2", reason="Gymnasium's vector HumanRendering shrinks pictures with OpenCV")
        rows = vector_wrappers.HumanRendering(gym.make_vec("GridWorld-v0", num_envs=2, render_mode="rgb_array"))
        rows.reset(seed=0)
        rows.step(np.array([2, 3]))
        rows.close()


# Golden images


def cart_pole(x: float, theta: float, **kwargs: Any) -> np.ndarray:
    env = gym.make("NumpyCartPole-v1", render_mode="rgb_array", **kwargs).unwrapped
    env.reset(seed=0)
    kept = env.get_state()
    for step in range(30):
        state = kept.state._replace(x=x - 0.02 * (29 - step), theta=theta)
        env.set_state(kept._replace(state=state, steps=step, episode_return=float(step)))
        frame = env.render()
    return frame


def grid_walk(steps: int, **kwargs: Any) -> np.ndarray:
    env = gym.make("GridWorld-v0", render_mode="rgb_array", **kwargs).unwrapped
    observation, _ = env.reset(seed=0)
    policy = ScriptedPolicy("shortest_path", env)
    frame = env.render()
    for _ in range(steps):
        observation = env.step(policy.predict(observation)[0])[0]
        frame = env.render()
    return frame


def grid_values(**kwargs: Any) -> np.ndarray:
    env = gym.make("GridWorld-v0", **kwargs).unwrapped
    return env.draw_values(value_iteration(*env.transition_model(), 0.9))


def my_env(actions: list[int], env_id: str = "MyEnv-v0", **changes: Any) -> np.ndarray:
    """The robot among people of both kinds, after so many actions, each taken four times or until the end."""
    people = [  # position, velocity, whether they notice the robot
        ([-0.6, 1.3], [0.9, -0.3], True),
        ([1.2, -1.6], [-0.4, 0.8], False),
        ([2.4, 1.4], [0.0, 0.0], True),
    ]
    pedestrians = [
        {"position": [x, y], "velocity": [vx, vy], "waypoints": [[x + 4 * vx, y + 4 * vy]] * 2, "notices": notices}
        for (x, y), (vx, vy), notices in people
    ]
    layout = {"robot": [-3.2, -1.0, 0.4], "goal": [3.4, 0.4], "pedestrians": pedestrians}
    layout |= {"obstacles": [[0.3, -0.4, 0.45], [-1.8, 2.6, 0.3]]}
    env = gym.make(env_id, render_mode="rgb_array").unwrapped
    env.reset(options={"layout": layout | changes})
    frame = env.render()
    for action in np.repeat(actions, 4):
        terminated = env.step(int(action))[2]
        frame = env.render()
        if terminated:
            break
    return frame


SCENES = {
    "cart_pole": lambda: cart_pole(0.6, -0.12),
    "cart_pole_lost": lambda: cart_pole(2.5, 0.3),
    "cart_pole_long": lambda: cart_pole(-1.0, 0.1, length=2.0, x_threshold=10.0),
    "grid_world": lambda: grid_walk(5),
    "grid_world_rooms": lambda: grid_walk(12, layout="four_rooms"),
    "grid_world_pit": lambda: grid_walk(3, layout=["S..O", ".#..", "O..G"], slip=0.4),
    "grid_world_values": lambda: grid_values(layout="cliff", slip=0.1),
    "my_env": lambda: my_env([7, 6, 7]),
    "my_env_goal": lambda: my_env([7, 7], robot=[2.4, -0.9, 0.9]),
    "my_env_hit": lambda: my_env([7] * 6, robot=[-3.2, -1.0, 0.17]),
    "my_env_hall": lambda: my_env([7, 8], "MyEnvPartial-v0", room=[6.0, 3.2]),
}


@pytest.mark.parametrize("name", SCENES)
def test_the_picture_is_the_golden_one(name):
    """Within what other builds of SDL and of the font renderer may round differently."""
    found, golden = SCENES[name](), np.asarray(Image.open(GOLDEN / f"{name}.png").convert("RGB"))
    assert found.shape == golden.shape
    difference = abs(found.astype(int) - golden).max(axis=2)
    assert difference.mean() < 1.0
    assert (difference > 48).mean() < 0.005


def test_there_is_no_golden_image_without_a_scene():
    assert {path.stem for path in GOLDEN.glob("*.png")} == set(SCENES)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for scene, paint in SCENES.items():
        Image.fromarray(paint()).quantize(128).save(GOLDEN / f"{scene}.png", optimize=True)
