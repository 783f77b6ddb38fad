"""What learners ask of a replay memory, whichever it is."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from agents.types import Batch, Experience, Transition


class ReplayMemory(Protocol):
    """Rows in, batches out: what UniformMemory, PrioritizedMemory and HindsightMemory have in common."""

    @property
    def capacity(self) -> int:
        """Most rows that it holds."""
        ...

    def __len__(self) -> int:
        """Rows that it holds now."""
        ...

    def append(self, rows: Experience | Transition, priorities: Any = None, source: Any = 0) -> np.ndarray:
        """Store rows and give their ids, (N,)."""
        ...

    def sample(
        self,
        batch_size: int,
        n_step: int = 1,
        discount: float | None = None,
        sequence_length: int = 1,
        source: int | None = None,
    ) -> Batch:
        """Draw a batch for training."""
        ...

    def update_priorities(self, ids: Any, abs_td_errors: Any) -> int:
        """Tell what the learner found; gives the number of ids whose rows are gone."""
        ...

    def state_dict(self) -> dict[str, np.ndarray]:
        """All that must be saved, as plain arrays."""
        ...

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take over what ``state_dict`` gave."""
        ...


class Draw(NamedTuple):
    """Rows that were drawn, before their contents are gathered."""

    slots: np.ndarray  # (N,), where the rows lie in the ring
    ids: np.ndarray  # (N,), int64
    weights: np.ndarray  # (N,), importance weights
    probabilities: np.ndarray  # (N,)
