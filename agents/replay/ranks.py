"""Rank-based prioritization (Schaul et al. 2016, section 3.3): P(i) ~ (1 / rank(i))**alpha."""

from __future__ import annotations

import numpy as np

from agents.replay.checks import check_priorities
from agents.replay.saving import saved_integer, saved_vector

STALE_SHARE = 16
"""Rows are ranked anew once one of this many has changed; until then changed rows are ranked against the others."""
ALWAYS_RANKED = 1024
"""Memories up to this size are ranked anew after every change."""


class Ranking:
    """Ranks of priorities: 1 for the largest, equal ones by age, the older first."""

    def __init__(self) -> None:
        self._falling = np.zeros(0)  # minus the priorities at the last ranking, sorted
        self._num_changes = 0

    def rank(self, priorities: np.ndarray) -> np.ndarray:
        """Ranks (k,) that these priorities would have had at the last ranking."""
        self._num_changes += len(priorities)
        return self._falling.searchsorted(-priorities, side="left") + 1

    def outdated(self, num_rows: int) -> bool:
        """Whether so many rows have changed that all should be ranked anew."""
        return self._num_changes > (0 if num_rows <= ALWAYS_RANKED else num_rows // STALE_SHARE)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The last ranking as plain arrays."""
        return {"ranked_priorities": -self._falling, "num_changes": np.array(self._num_changes)}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take over a saved ranking; ValueError if there is none."""
        ranked = saved_vector(state, "ranked_priorities", np.dtype(np.float64))
        falling = -check_priorities("saved ranked_priorities", ranked, len(ranked))
        if (falling[1:] < falling[:-1]).any():
            raise ValueError("saved ranked_priorities must fall, the largest first")
        self._falling, self._num_changes = falling, saved_integer(state, "num_changes", 0)

    def rank_all(self, priorities: np.ndarray) -> np.ndarray:
        """Rank all rows anew, (N,)."""
        order = np.argsort(-priorities, kind="stable")
        self._falling, self._num_changes = -priorities[order], 0
        ranks = np.empty(len(priorities), np.int64)
        ranks[order] = np.arange(1, len(priorities) + 1)
        return ranks
