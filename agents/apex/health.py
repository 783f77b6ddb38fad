"""Figures by which one sees whether replay is well: how old the drawn rows are, and whether any are left out."""

from __future__ import annotations

import numpy as np

from agents.types import Batch


class Health:
    """Follows the rows of a memory from their arrival to their first draw.

    Rows that were there before count as drawn. All means are over the draws since the last call of ``figures``.
    """

    def __init__(self) -> None:
        self._fresh = np.zeros(0, bool)  # by id modulo capacity: never drawn since they came
        self._inserted = 0  # the newest row's id, and one more
        self._ages: list[float] = []
        self._sizes: list[float] = []

    def inserted(self, ids: np.ndarray, capacity: int) -> None:
        """Note new rows (N,) of a memory with so many places."""
        if len(self._fresh) != capacity:
            self._fresh = np.zeros(capacity, bool)
        if len(ids):
            self._fresh[ids % capacity] = True
            self._inserted = int(ids[-1]) + 1

    def drawn(self, batch: Batch) -> None:
        """Note a batch that was drawn for training."""
        if not len(self._fresh):
            return
        self._fresh[batch.ids % len(self._fresh)] = False
        self._ages.append(self._inserted - float(batch.ids.mean()))
        self._sizes.append(effective_sample_size(batch.weights))

    def figures(self) -> dict[str, float]:
        """Give the figures, and begin anew.

        Returns:
            row_age: rows that came after a drawn one, on average.
            effective_sample_size: of the batches, on average, in rows.
            never_drawn: share of the memory's rows that were never drawn.
        """
        age, size = (float(np.mean(values)) if values else float("nan") for values in (self._ages, self._sizes))
        self._ages, self._sizes = [], []
        held = min(self._inserted, len(self._fresh))
        never = float(self._fresh.sum()) / max(held, 1)
        return {"row_age": age, "effective_sample_size": size, "never_drawn": never}


def effective_sample_size(weights: np.ndarray) -> float:
    """How many rows of weight 1 are worth as much as these (N,): (sum w)^2 / sum w^2 (Kish 1965)."""
    return float(weights.sum() ** 2 / np.square(weights).sum())
