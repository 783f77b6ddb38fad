"""Replay with every row equally likely (Lin 1992; Mnih et al. 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.replay.base import RingMemory
from agents.replay.checks import check_ids, check_integer, check_priorities
from agents.replay.memory import Draw
from agents.replay.streams import check_source
from agents.types import Experience, Transition


class UniformMemory(RingMemory):
    """Replay memory with uniform draws; all weights are 1.

    It takes priorities where a prioritized memory would, checks them and makes no use of them, so that either memory
    serves in the same loop.
    """

    def append(self, rows: Experience | Transition, priorities: Any = None, source: Any = 0) -> np.ndarray:
        """Store rows, as :meth:`ReplayMemory.append` says."""
        checked = self.ring.check(rows)
        if priorities is not None:
            check_priorities("priorities", priorities, checked.num_rows)
        return self.ring.append(checked, check_source(source, checked.num_rows))

    def update_priorities(self, ids: Any, abs_td_errors: Any) -> int:
        """Check the arguments and count the ids whose rows are gone."""
        ids = check_ids(ids)
        check_priorities("abs_td_errors", abs_td_errors, len(ids))
        return int(((ids < self.ring.oldest) | (ids >= self.ring.inserted)).sum())

    def resize(self, capacity: int) -> None:
        """Change the capacity: growing keeps all rows, shrinking the newest; ids and order stay."""
        self.ring = self.ring.resized(capacity)

    def draw(self, batch_size: int, source: int | None = None) -> Draw:
        """Draw rows, all equally likely, without gathering them."""
        batch_size = check_integer("batch_size", batch_size, 1)
        if not len(self.ring):
            raise ValueError("cannot sample from an empty memory")
        if source is None:
            ids = self.rng.integers(self.ring.oldest, self.ring.inserted, batch_size)
            slots, num_rows = ids % self.capacity, len(self.ring)
        else:
            candidates = self.candidates(source)
            num_rows = len(candidates)
            slots = candidates[self.rng.integers(0, num_rows, batch_size)]
            ids = self.ring.ids_of(slots)
        return slots, ids, np.ones(batch_size), np.full(batch_size, 1 / num_rows)
