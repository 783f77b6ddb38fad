"""What learners ask of a replay memory, whichever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from agents.types import Batch, Experience, Transition


class ReplayMemory(ABC):
    """Rows in, batches out: what UniformMemory, PrioritizedMemory and HindsightMemory have in common."""

    rng: np.random.Generator
    num_samples: int
    """Batches drawn for training."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Most rows that are held; ``resize`` changes it."""

    @abstractmethod
    def __len__(self) -> int:
        """Rows that are held now."""

    @abstractmethod
    def append(self, rows: Experience | Transition, priorities: Any = None, source: Any = 0) -> np.ndarray:
        """Store rows, in order.

        Args:
            rows: Transitions or Experiences, whichever this memory holds. Of more than ``capacity`` rows the newest
                are kept.
            priorities: Raw priorities, (N,), finite and not negative. Default: the largest one present, 1 in an empty
                memory. A uniform memory checks them and makes no use of them.
            source: The rows' stream, one integer or (N,). Rows of one source must come in the order in which they
                happened.

        Returns:
            Ids, (N,), int64, one for every row given.

        Raises:
            TypeError, ValueError: As ``validate_experience``, or for a bad priority or source. Nothing is written then.
        """

    @abstractmethod
    def update_priorities(self, ids: Any, abs_td_errors: Any) -> int:
        """Give rows new raw priorities; where an id comes twice, the last one counts.

        Args:
            ids: (k,), from a Batch or from ``append``.
            abs_td_errors: (k,), the learner's ``|delta|``: unweighted, finite and not negative. A uniform memory checks
                them and makes no use of them.

        Returns:
            Number of ids whose rows are gone; these are ignored.

        Raises:
            ValueError: If a priority is NaN, infinite or negative: the message names the row, nothing is written.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything as plain arrays: goes through ``numpy.savez`` and back without pickle."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take over what ``state_dict`` gave; ValueError if it does not fit, with nothing changed."""

    def sample(
        self,
        batch_size: int,
        n_step: int = 1,
        discount: float | None = None,
        sequence_length: int = 1,
        source: int | None = None,
    ) -> Batch:
        """Draw a batch for training.

        Args:
            batch_size: Rows N of the batch; a row may come more than once.
            n_step: Steps K of the window that starts at each drawn Experience. It ends sooner at the episode's end, at
                the newest row of its source, and where a goal put in by hindsight is reached, with the discount that
                belongs to its own length.
            discount: Gamma, default 0.99, or the one of HindsightMemory's constructor.
            sequence_length: Above 1, a sequence of that many rows T starts at each drawn Experience: all arrays of the
                transition get the shape (N, T, ...), and the mask is False where the sequence had already ended (the
                last row is repeated there, with reward and discount 0).
            source: Draw only rows of this source.

        Returns:
            The Batch. Its arrays are copies.

        Raises:
            ValueError: If the memory (or the source) holds no rows or an argument is out of range; if ``n_step``,
                ``discount`` or ``sequence_length`` is given and the rows are Transitions, whose windows are closed.
        """
        batch = self._batch(batch_size, n_step, discount, sequence_length, source)
        self.num_samples += 1
        return batch

    def peek(
        self,
        batch_size: int,
        n_step: int = 1,
        discount: float | None = None,
        sequence_length: int = 1,
        source: int | None = None,
    ) -> Batch:
        """What ``sample`` would give now, leaving everything as it is: annealing and random numbers too."""
        mark = self._mark()
        try:
            return self._batch(batch_size, n_step, discount, sequence_length, source)
        finally:
            self._return_to(mark)

    def _mark(self) -> Any:
        """All that ``_batch`` changes."""
        return self.rng.bit_generator.state

    def _return_to(self, mark: Any) -> None:
        self.rng.bit_generator.state = mark

    @abstractmethod
    def _batch(
        self, batch_size: int, n_step: int, discount: float | None, sequence_length: int, source: int | None
    ) -> Batch:
        """A batch, with arguments as those of ``sample``."""


Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows that were drawn, before their contents are gathered: slots in the ring, ids (int64), weights, probabilities."""
