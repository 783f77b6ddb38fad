"""Single steps: where an actor writes them down, and how memories that make windows themselves are given them."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.replay import HindsightMemory, ReplayMemory
from agents.trees import tree_map, tree_take
from agents.types import Experience


class StepBuffer:
    """The steps of one block, T steps of E env rows with the time in front, and the K observations before them.

    Everything is copied in at once, so that envs may use their arrays again. A place is a number that one
    observation of one row has for ever; windows are made of places, and what stands there is looked up at their end.

    Args:
        num_steps: T.
        num_kept: K, so many steps as an open window may reach back.
        obs: the first observations, (E, ...).
        q: their values, (E, A).

    Attributes:
        obs: tree of (K + T + 1, E, ...).
        q: (K + T + 1, E, A), their values.
        action: (T, E), int64.
        reward: (T, E), float64.
        terminated: (T, E), bool.
        truncated: (T, E), bool.
        valid: (T, E), bool; False for an automatic reset.
    """

    def __init__(self, num_steps: int, num_kept: int, obs: Any, q: np.ndarray) -> None:
        shape, length = (num_steps, len(q)), num_kept + num_steps + 1
        self.obs = tree_map(lambda leaf: np.repeat(np.asarray(leaf)[None], length, axis=0), obs)
        self.q = np.repeat(q[None], length, axis=0)
        self.action, self.reward = np.zeros(shape, np.int64), np.zeros(shape)
        self.terminated, self.truncated, self.valid = (np.zeros(shape, bool) for _ in range(3))
        self.num_steps, self._kept = num_steps, num_kept + 1
        self._places = np.arange(num_kept * len(q), (num_kept + num_steps) * len(q)).reshape(shape)
        self._oldest = -num_steps * len(q)  # place of the first observation here; the first block begins at 0

    def begin(self) -> None:
        """Make room for the next block: the last observations become the first."""
        kept = self._kept
        tree_map(lambda leaf: np.copyto(leaf[:kept], leaf[-kept:].copy()), (self.obs, self.q))
        self._oldest += self.action.size

    def values(self, t: int) -> np.ndarray:
        """Give the values (E, A) of the observations before step ``t``."""
        return self.q[self._kept - 1 + t]

    def write(self, t: int, obs: Any, q: np.ndarray) -> None:
        """Write the observations (E, ...) after step ``t`` and their values (E, A)."""
        place = self._kept + t

        def write(leaves: np.ndarray, leaf: Any) -> None:
            leaves[place] = leaf

        tree_map(write, self.obs, obs)
        self.q[place] = q

    def steps(self) -> Experience:
        """Give all steps (T, E), with places as observations."""
        before = self._places + self._oldest
        after = before + self.action.shape[1]
        return Experience(before, self.action, self.reward, self.terminated, self.truncated, after)

    def look_up(self, places: np.ndarray) -> tuple[Any, np.ndarray]:
        """Give the observations and values that stand at places (N,)."""
        index = places - self._oldest
        obs = tree_map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]).take(index, axis=0), self.obs)
        return obs, self.q.reshape(-1, self.q.shape[2]).take(index, axis=0)


class SingleSteps:
    """Stands in an NStepAccumulator's place and hands every real step on as it is.

    Args:
        sources: number of each env row's stream, (E,); no other row, actor or life has it.
    """

    def __init__(self, sources: np.ndarray) -> None:
        self._sources = sources

    def push_steps(
        self, obs: Any, action: Any, reward: Any, terminated: Any, truncated: Any, next_obs: Any, valid: np.ndarray
    ) -> Experience:
        """Give the valid ones of steps (T, E) in order of time; each ``obs`` is a pair with its source."""
        sources = np.broadcast_to(self._sources, valid.shape)
        steps = ((obs, sources), action, reward, terminated, truncated, next_obs)
        return Experience(*tree_take(steps, np.nonzero(valid)))


def wants_steps(memory: ReplayMemory) -> bool:
    """Whether a memory must be given Experiences: one that changes goals works out rewards and windows anew."""
    return isinstance(memory, HindsightMemory)
