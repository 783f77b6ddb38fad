"""A window in which the policy plays greedily while training goes on, in a process of its own that nobody waits for."""

from __future__ import annotations

import inspect
import multiprocessing
import signal
import time
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np

from agents.apex.envs import EVALUATION_SEED, EnvSource
from agents.apex.features import batch_of_one, feature_array
from agents.apex.frozen import FrozenNetwork
from agents.apex.mailbox import SharedMailbox
from agents.apex.masks import MASK, barrier
from agents.apex.spawned import ctrl_c_later, end_with_parent, one_thread
from agents.types import Weights

FPS = 30.0  # where the env names no pace
STOP_SECONDS = 2.0  # until a window that does not close by itself is closed

_spawn = multiprocessing.get_context("spawn")


class Watcher:
    """The window's process; whatever happens to it, training goes on.

    Args:
        source: of the env, which must have the render mode "human", or be a factory that takes ``render_mode`` or whose
            envs have a render mode already.
        weights: the first to play with.

    Raises:
        ValueError: the env cannot be watched.
    """

    def __init__(self, source: EnvSource, weights: Weights) -> None:
        make_watched(source, probe=True)
        self._mailbox = SharedMailbox(weights)
        self.process = _spawn.Process(
            target=play, args=(cloudpickle.dumps(source), self._mailbox), name="apex-watch", daemon=True
        )
        with ctrl_c_later(), one_thread():
            self.process.start()

    def publish(self, weights: Weights) -> None:
        """Play with these weights from the next episode on; never waits."""
        self._mailbox.publish(weights)

    def close(self) -> None:
        """Close the window."""
        self.process.terminate()
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def make_watched(source: EnvSource, probe: bool = False) -> gym.Env | None:
    """Make an env that draws itself; with ``probe`` only find out whether there can be one.

    Raises:
        ValueError: there cannot.
    """
    if source.spec is not None:
        env = gym.make(source.spec, render_mode=None if probe else "human")
        modes = env.metadata.get("render_modes", [])
    else:
        factory = cloudpickle.loads(source.factory)
        takes_mode = "render_mode" in inspect.signature(factory).parameters
        env = factory(render_mode="human") if takes_mode and not probe else factory()
        modes = env.metadata.get("render_modes", []) if takes_mode else [env.render_mode]
    if probe:
        env.close()
        if "human" not in modes:
            raise ValueError(f"{source.name} cannot be watched: it has no render mode 'human'")
        return None
    return env


def play(source_bytes: bytes, mailbox: SharedMailbox) -> None:
    """Play greedy episodes at the env's pace until the learner's process ends this one.

    Args:
        source_bytes: a pickled EnvSource (by cloudpickle).
        mailbox: with the newest weights.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the learner's business
    end_with_parent()
    env = make_watched(cloudpickle.loads(source_bytes))
    assert env is not None
    version = -1
    network: Any = None
    seed: int | None = EVALUATION_SEED
    while True:
        if (weights := mailbox.newer_than(version)) is not None:
            version, network = weights.version, FrozenNetwork(weights.arrays)
        play_episode(env, network, seed)
        seed = None


def play_episode(env: gym.Env, network: FrozenNetwork, seed: int | None) -> float:
    """Play one episode greedily, no faster than the env's ``render_fps``; gives its return."""
    pause = 1.0 / float(env.metadata.get("render_fps") or FPS)
    obs, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        due = time.monotonic() + pause
        obs, reward, terminated, truncated, info = env.step(best_action(env, network, obs, info))
        total, over = total + float(reward), terminated or truncated
        time.sleep(max(0.0, due - time.monotonic()))  # a window that was closed keeps no pace any more
    return total


def best_action(env: gym.Env, network: FrozenNetwork, obs: Any, info: dict[str, Any]) -> Any:
    """The best legal action for one observation."""
    q = network(feature_array(env.observation_space, batch_of_one(obs)))
    if MASK in info:
        q = q + barrier(np.atleast_2d(info[MASK]), q.shape[1])
    return q[0].argmax() + env.action_space.start  # type: ignore[attr-defined]  # Discrete
