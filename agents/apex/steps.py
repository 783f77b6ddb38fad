"""Single steps in place of windows, for memories that make windows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.replay import HindsightMemory, ReplayMemory
from agents.trees import tree_take
from agents.types import Experience


def wants_steps(memory: ReplayMemory) -> bool:
    """Whether a memory must be given Experiences: one that changes goals works out rewards and windows anew."""
    return isinstance(memory, HindsightMemory)


class SingleSteps:
    """Stands in an NStepAccumulator's place and hands every real step on as it is.

    Args:
        sources: number of each env row's stream, (E,); no other row, actor or life has it.
    """

    def __init__(self, sources: np.ndarray) -> None:
        self._sources = sources

    def push(
        self, obs: Any, action: Any, reward: Any, terminated: Any, truncated: Any, next_obs: Any, valid: np.ndarray
    ) -> Experience:
        """Give the steps of valid rows; their ``obs`` is followed by their sources."""
        rows = np.flatnonzero(valid)
        steps = Experience((*obs, self._sources), action, reward, terminated, truncated, next_obs)
        return Experience(*tree_take(tuple(steps), rows))
