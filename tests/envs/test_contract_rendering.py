"""What the pictures of every id keep: modes, memory, windows, no display for arrays."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import tracemalloc

import gymnasium as gym
import numpy as np
import pytest
from contract import IDS, actions, make, make_vec, play, play_rows, same
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import HumanRendering
from gymnasium.wrappers.vector import RecordVideo as RecordRows

every_id = pytest.mark.parametrize("env_id", IDS)


def modes(env_id: str) -> list[str]:
    return ["human", "rgb_array"] if "CartPole" in env_id else ["human", "rgb_array", "ansi"]


every_mode = pytest.mark.parametrize(("env_id", "mode"), [(env_id, mode) for env_id in IDS for mode in modes(env_id)])


@every_id
def test_the_modes_of_an_id(env_id):
    single, rows = make(env_id), make_vec(env_id, num_envs=1)
    assert sorted(single.metadata["render_modes"]) == sorted(modes(env_id))
    assert sorted(rows.metadata["render_modes"]) == sorted(set(modes(env_id)) - {"human"})
    assert single.metadata["render_fps"] > 0
    assert rows.metadata["render_fps"] == single.metadata["render_fps"]


@every_id
def test_an_unknown_mode_is_refused(env_id):
    entry, vector_entry = (
        gym.envs.registration.load_env_creator(getattr(gym.spec(env_id), name))
        for name in ("entry_point", "vector_entry_point")
    )
    kwargs = gym.spec(env_id).kwargs
    for creator in (entry, vector_entry):
        with pytest.raises(ValueError, match="NON_VALID"):
            creator(render_mode="NON_VALID", **kwargs)


@every_mode
def test_render_before_reset_says_so(env_id, mode):
    with pytest.raises(gym.error.ResetNeeded):
        make(env_id, render_mode=mode).unwrapped.render()
    if mode != "human":
        with pytest.raises(gym.error.ResetNeeded):
            make_vec(env_id, num_envs=2, render_mode=mode).render()


@every_id
def test_render_without_a_mode_gives_nothing_and_one_warning(env_id):
    env = make(env_id).unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


@every_mode
def test_drawing_changes_nothing_and_draws_no_random_numbers(env_id, mode):
    seen, unseen = make(env_id, render_mode=mode), make(env_id)
    seen.unwrapped.metadata["render_fps"] = 10_000
    choices = actions(unseen, 8)
    expected = play(unseen, choices)
    results = [seen.reset(seed=0)]
    for action in choices:
        assert same(seen.render(), seen.render())
        results.append(seen.step(action))
        if results[-1][2] or results[-1][3]:
            results.append(seen.reset())
    seen.close()
    assert same(results, expected)


@every_id
def test_a_frame_is_an_image_of_its_own(env_id):
    env = make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    frames = [env.render()]
    copies = [frames[0].copy()]
    for action in actions(env, 6):
        env.step(action)
        frames.append(env.render())
        copies.append(frames[-1].copy())
    env.close()
    for frame, kept in zip(frames, copies, strict=True):
        assert frame.dtype == np.uint8
        assert frame.ndim == 3
        assert frame.shape[2] == 3
        assert frame.flags.c_contiguous
        assert frame.flags.owndata or frame.base is None
        assert frame.flags.writeable
        assert frame.std() > 1
        assert np.array_equal(frame, kept)
    assert not np.array_equal(frames[0], frames[-1])


@every_id
def test_the_frame_after_the_end_shows_the_end(env_id):
    env = make(env_id, render_mode="rgb_array", max_episode_steps=3)
    env.reset(seed=0)
    before, ended = env.render(), False
    while not ended:
        _, _, te, tr, _ = env.step(1)
        ended = te or tr
    assert env.render().std() > 1
    assert not np.array_equal(env.render(), before)


@every_id
def test_close_twice_render_again_and_leave_others_alone(env_id):
    one, other = make(env_id, render_mode="rgb_array"), make(env_id, render_mode="rgb_array")
    one.reset(seed=0), other.reset(seed=0)
    first = one.render()
    one.close()
    one.close()
    assert np.array_equal(other.render(), first)
    assert np.array_equal(one.unwrapped.render(), first)


@every_id
def test_each_row_has_its_own_picture(env_id):
    kwargs = {"random_start": True} if env_id.startswith("GridWorld") else {}
    rows = make_vec(env_id, num_envs=3, render_mode="rgb_array", **kwargs)
    rows.reset(seed=3)
    for action in actions(rows, 4):
        rows.step(action)
    frames = rows.render()
    assert isinstance(frames, tuple)
    assert len(frames) == 3
    copies = [frame.copy() for frame in frames]
    assert all(frame.dtype == np.uint8 and frame.ndim == 3 for frame in frames)
    assert not (np.array_equal(frames[0], frames[1]) and np.array_equal(frames[1], frames[2]))
    rows.step(actions(rows, 1)[0])
    rows.render()
    assert all(map(np.array_equal, frames, copies))


@every_id
def test_a_row_is_drawn_as_the_single_env(env_id):
    rows, single = make_vec(env_id, num_envs=2, render_mode="rgb_array"), make(env_id, render_mode="rgb_array")
    rows.reset(seed=3), single.reset(seed=4)
    for action in (1, 0, 1):
        assert np.array_equal(rows.render()[1], single.render())
        rows.step([0, action])
        _, _, te, tr, _ = single.step(action)
        if te or tr:
            break
    assert np.array_equal(rows.render()[1], single.render())


@pytest.mark.parametrize("env_id", [i for i in IDS if "CartPole" not in i])
def test_text_comes_back_and_is_not_printed(env_id, capsys):
    env = make(env_id, render_mode="ansi")
    env.reset(seed=0)
    text = env.render()
    assert isinstance(text, str)
    assert text.count("\n") > 3
    assert env.render() == text
    assert capsys.readouterr().out == ""


@every_id
def test_arrays_use_no_clock_and_no_window(env_id, monkeypatch):
    import pygame

    def boom(*args, **kwargs):
        raise AssertionError("a clock or window for an array")

    for name in ("time.Clock", "display.set_mode", "Window", "display.init"):
        holder, _, attribute = f"pygame.{name}".rpartition(".")
        monkeypatch.setattr(pygame if holder == "pygame" else getattr(pygame, holder.split(".")[1]), attribute, boom)
    env = make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    for action in actions(env, 10):
        _, _, te, tr, _ = env.step(action)
        env.render()
        if te or tr:
            env.reset()
    env.close()


@pytest.mark.serial
def test_arrays_need_no_display():
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "SDL_AUDIODRIVER")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    code = f"""
import warnings, gymnasium as gym, gym_custom
warnings.filterwarnings("ignore", message="(?s).*is out of date")
for i in {IDS}:
    env = gym.make(i, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().std() > 1
    rows = gym.make_vec(i, num_envs=2, render_mode="rgb_array")
    rows.reset(seed=0)
    assert all(frame.std() > 1 for frame in rows.render())
import pygame
assert not pygame.display.get_init()
assert not (pygame.mixer and pygame.mixer.get_init())
"""
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert result.returncode == 0, result.stderr


@every_id
def test_a_closed_window_ends_no_training_and_keys_stay_with_their_owner(env_id):
    import pygame

    env = make(env_id, render_mode="human")
    env.unwrapped.metadata["render_fps"] = 10_000
    env.reset(seed=0)
    assert env.render() is None
    pygame.event.clear()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    for action in actions(env, 30):
        _, _, te, tr, _ = env.step(action)
        if te or tr:
            env.reset()
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))
    env.reset(seed=0)
    assert pygame.event.peek(pygame.KEYDOWN)
    pygame.event.clear()
    env.close()
    env.close()


@every_mode
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_of_an_env_with_pictures_goes_on_without_its_window(env_id, mode, clone):
    env = make(env_id, render_mode=mode)
    env.unwrapped.metadata["render_fps"] = 10_000
    play(env, actions(env, 3))
    env.render()
    twin = clone(env)
    choices = actions(env, 6, seed=1)
    assert same(play(env, choices, seed=None), play(twin, choices, seed=None))
    assert same(env.render(), twin.render()) or mode == "rgb_array"  # the copy has no trail of what went before
    env.close()
    twin.close()


@every_id
def test_closing_one_window_leaves_the_other(env_id):
    one, other = make(env_id, render_mode="human"), make(env_id, render_mode="human")
    one.reset(seed=0), other.reset(seed=0)
    one.close()
    other.step(0)
    other.reset()
    other.close()


@pytest.mark.parametrize("env_id", ["NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0"])
def test_record_video_writes_frames_at_the_envs_pace(env_id, tmp_path):
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy")
    films = tmp_path / "films"
    env = RecordVideo(make(env_id, render_mode="rgb_array", max_episode_steps=8), str(films), disable_logger=True)
    env.reset(seed=0)
    frames, ended = [], False
    while not ended:
        frames = list(env.recorded_frames)  # emptied with the last step, when the film is written
        _, _, te, tr, _ = env.step(1)
        ended = te or tr
    env.close()
    assert env.frames_per_sec == env.metadata["render_fps"]
    assert len({frame.tobytes() for frame in frames}) > 1
    assert [path.suffix for path in films.iterdir()].count(".mp4") == 1


@pytest.mark.parametrize("env_id", ["NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0"])
def test_gymnasiums_vector_film_takes_it(env_id, tmp_path):
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy")
    rows = make_vec(env_id, num_envs=3, render_mode="rgb_array", max_episode_steps=3)
    films = RecordRows(rows, str(tmp_path / "films"), video_aspect_ratio=(1, 1), disable_logger=True)
    play_rows(films, actions(rows, 6))
    films.close()
    assert [path.suffix for path in (tmp_path / "films").iterdir()].count(".mp4") >= 1


def test_gymnasiums_vector_window_takes_it():
    pytest.importorskip("cv2", reason="Gymnasium's vector HumanRendering scales pictures with OpenCV")
    window = HumanRendering(make_vec("MyEnv-v0", num_envs=3, render_mode="rgb_array"))
    play_rows(window, actions(window.unwrapped, 3))
    window.close()


@pytest.mark.parametrize("env_id", ["NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0"])
def test_memory_does_not_grow_with_pictures(env_id):
    env = make(env_id, render_mode="rgb_array", max_episode_steps=20)

    def pictures(count: int) -> None:
        env.reset(seed=0)
        for _ in range(count):
            _, _, te, tr, _ = env.step(0)
            env.render()
            if te or tr:
                env.reset()

    pictures(8)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pictures(16)
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()
    env.close()


@pytest.mark.parametrize("env_id", ["NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0"])
def test_no_surfaces_or_fonts_outlive_their_env(env_id):
    import pygame

    def alive() -> int:
        gc.collect()
        return sum(type(thing) in (pygame.Surface, pygame.font.Font) for thing in gc.get_objects())

    def once() -> None:
        env = make(env_id, render_mode="rgb_array")
        env.reset(seed=0)
        env.render()
        env.close()

    once()
    before = alive()
    for _ in range(10):
        once()
    assert alive() <= before
