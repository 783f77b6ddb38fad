"""The judge: greedy episodes from fixed starts that no actor ever sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from agents.apex.envs import EVALUATION_SEED, EnvSource, make_envs
from agents.apex.masks import join, masks_of

MAX_STEPS = 10_000  # an episode of an env without a time limit is cut here


class Evaluation(NamedTuple):
    """Undiscounted returns and lengths of the evaluation's episodes."""

    returns: np.ndarray  # (episodes,)
    lengths: np.ndarray  # (episodes,)


class Evaluator:
    """Plays one episode a row, all rows at once, always from the same seeds.

    Args:
        source: of the envs.
        episodes: how many.
        masked: whether infos say which actions are legal; observations then come with their masks.
    """

    def __init__(self, source: EnvSource, episodes: int, masked: bool = False) -> None:
        self._envs, self._masked = make_envs(source, episodes), masked
        self._num_actions = int(self._envs.single_action_space.n)  # type: ignore[attr-defined]  # Discrete

    def __call__(self, act: Callable[[Any], np.ndarray]) -> Evaluation:
        """Play with ``act``, a function from a batch of observations to env actions."""
        num = self._envs.num_envs
        returns, lengths, playing = np.zeros(num), np.zeros(num, int), np.ones(num, bool)
        obs, infos = self._envs.reset(seed=[EVALUATION_SEED + i for i in range(num)])  # type: ignore[arg-type]
        for _ in range(MAX_STEPS):
            obs = join(obs, masks_of(infos, num, self._num_actions)) if self._masked else obs
            obs, reward, terminated, truncated, infos = self._envs.step(act(obs))
            returns += np.where(playing, reward, 0.0)
            lengths += playing
            playing &= ~(terminated | truncated)
            if not playing.any():
                break
        return Evaluation(returns, lengths)

    def close(self) -> None:
        """Close the envs."""
        self._envs.close()
