"""The window beside the training: opens, follows, may be closed or killed, cannot be opened where there is none."""

import os
import time

import gymnasium as gym
import numpy as np
import psutil
import pytest

from agents.apex.envs import resolve
from agents.apex.frozen import FrozenNetwork
from agents.apex.network import make_network, to_arrays
from agents.apex.watching import make_watched, play_episode

from .helpers import agent
from .probes import Probe
from .test_masks import Doors


class Filmed(Probe):
    """Draws itself by leaving a mark in a file."""

    metadata = {"render_modes": ["human"], "render_fps": 1000}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def rule(self, action):
        if self.render_mode == "human":
            with open(os.environ["APEX_TEST_FILM"], "a") as film:
                film.write(f"{os.getpid()}\n")
        return 1.0, 0.0, self.time >= 10


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class FilmAgent:
    """An agent whose blocks are held up until the film has begun, then kills the window."""

    def __init__(self, ape, film, kill):
        self.receive, self.film, self.kill, self.pid = ape.cluster.receive, film, kill, None
        ape.cluster.receive = self

    def __call__(self, timeout):
        if self.pid is None:
            wait_for(lambda: self.film.exists() and self.film.read_text())
            self.pid = int(self.film.read_text().split()[0])
            if self.kill:
                psutil.Process(self.pid).kill()
        return self.receive(timeout)


@pytest.mark.serial
@pytest.mark.parametrize("kill", [True, False], ids=["closed", "open"])
def test_training_goes_on_whatever_happens_to_the_window(tmp_path, monkeypatch, kill):
    film = tmp_path / "film"
    monkeypatch.setenv("APEX_TEST_FILM", str(film))
    ape = agent(tmp_path, Filmed)
    witness = FilmAgent(ape, film, kill)
    ape.learn(400, watch=True)
    assert ape.num_timesteps >= 400
    assert witness.pid != os.getpid()
    assert not psutil.pid_exists(witness.pid)


def test_what_cannot_be_watched_is_named(tmp_path):
    with pytest.raises(ValueError, match="Probe cannot be watched: it has no render mode 'human'"):
        agent(tmp_path, Probe).learn(400, watch=True)


@pytest.mark.parametrize("env", ["CartPole-v1", Filmed, lambda: gym.make("CartPole-v1", render_mode="human")])
def test_what_can_be_watched(env):
    assert make_watched(resolve(env), probe=True) is None


def test_the_window_shows_the_greedy_policy():
    """Its return is that of the best actions by torch's network, and of no others."""
    env = gym.make("CartPole-v1")
    env.unwrapped.metadata = {"render_fps": 100_000}
    network = make_network(env.observation_space, env.action_space, (16,), True, 4)
    shown = play_episode(env, FrozenNetwork(to_arrays(network)), seed=3)
    import torch

    obs, _ = env.reset(seed=3)
    total, over = 0.0, False
    while not over:
        with torch.inference_mode():
            best = int(network(torch.from_numpy(obs)[None]).argmax())
        obs, reward, terminated, truncated, _ = env.step(best)
        total, over = total + reward, terminated or truncated
    assert shown == total


def test_masks_hold_in_the_window():
    doors = Doors()
    doors.metadata = {"render_fps": 100_000}
    network = FrozenNetwork(to_arrays(make_network(doors.observation_space, doors.action_space, (8,), True, 0)))
    for seed in range(5):
        assert np.isfinite(play_episode(doors, network, seed))
