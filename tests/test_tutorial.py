"""The two test programs of an old OpenAI Gym tutorial, typed as one types them today, for every id.

They are the first thing that many people run on an environment: make, reset, render; then twenty episodes of up to a
hundred random steps, with every observation printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import pygame
import pytest

import gym_custom
from gym_custom import rendering

assert gym_custom.World
IDS = sorted(i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom"))

FIRST = """
import gymnasium as gym
import gym_custom

env = gym.make({env_id!r}, render_mode={mode!r})
env.reset()
env.render()
"""

SECOND = """
import gymnasium as gym
import gym_custom

env = gym.make({env_id!r}, render_mode={mode!r})
for i_episode in range(20):
    observation, info = env.reset()
    for t in range(100):
        env.render()
        print(observation)
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            print("Episode finished after {{}} timesteps".format(t + 1))
            break
env.close()
"""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Windows show every frame, but nobody looks at them: coarse ones will do."""
    monkeypatch.setattr(rendering, "_FINENESS", 1)
    monkeypatch.setattr(pygame.time, "Clock", type("Clock", (), {"tick": lambda self, fps: 0}))


def run(program: str, env_id: str, mode: str | None) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*is out of date", category=DeprecationWarning)
        exec(compile(program.format(env_id=env_id, mode=mode), "<tutorial>", "exec"), names)
    names["env"].close()
    return names


@pytest.mark.parametrize("mode", ["human", "rgb_array"])
@pytest.mark.parametrize("env_id", IDS)
def test_make_reset_render(env_id, mode):
    run(FIRST, env_id, mode)


@pytest.mark.parametrize("env_id", IDS)
def test_render_without_a_mode_only_warns(env_id):
    with pytest.warns(UserWarning, match="render"):
        run(FIRST, env_id, None)


@pytest.mark.parametrize("env_id", [i for i in IDS if i in ("NumpyCartPole-v1", "GridWorld-v0", "MyEnv-v0")])
def test_twenty_episodes_in_a_window(env_id, capsys):
    check_printed(env_id, run(SECOND, env_id, "human"), capsys.readouterr().out)


@pytest.mark.parametrize("env_id", IDS)
def test_twenty_episodes_of_printed_observations(env_id, capsys):
    program = SECOND.replace("        env.render()\n", "")
    check_printed(env_id, run(program, env_id, None), capsys.readouterr().out)


def check_printed(env_id: str, names: dict[str, Any], out: str) -> None:
    """Each episode that ended says so; of the others a hundred observations are there."""
    lengths = [int(n) for n in re.findall(r"Episode finished after (\d+) timesteps", out)]
    assert all(1 <= n <= 100 for n in lengths)
    printed = out.count("[")
    assert printed == sum(lengths) + 100 * (20 - len(lengths))
    assert names["observation"] in names["env"].observation_space
    if env_id.startswith("NumpyCartPole"):
        assert len(lengths) >= 19  # a random pole hardly ever stands for two seconds


def test_the_ids_work_in_a_fresh_process_without_the_import():
    code = "import gymnasium as gym; env = gym.make('gym_custom:MyEnv-v0'); print(env.reset()[0].shape)"
    found = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("(")
