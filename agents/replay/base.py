"""What the uniform and the prioritized memory share: rows in a ring, batches built from drawn rows."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from agents.replay.checks import check_choice, check_fraction, check_integer
from agents.replay.memory import Draw, ReplayMemory
from agents.replay.ring import Ring
from agents.replay.saving import check_fits, ring_from_state, ring_state, rng_from_state, rng_state
from agents.replay.windows import sequences, transitions
from agents.types import Batch, Experience, Transition

DISCOUNT = 0.99
"""Gamma where none is given, as in MATLAB's replay memories."""


class RingMemory(ReplayMemory):
    """Rows in a ring; a child says how rows are drawn (``draw``) and what it keeps beside them.

    Args:
        observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of such.
        action_space: Likewise.
        capacity: Most rows that are held; then the oldest is overwritten.
        check_memory: Refuse at once a capacity whose rows, each with two observations, exceed the memory that is free.
        seed: For ``numpy.random.default_rng``: an integer, or a Generator to be used.

    Raises:
        ValueError: For a capacity that is no positive integer.
        TypeError: For a space that cannot be stored.
        MemoryError: With ``check_memory``, if the rows will not fit.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        capacity: int = 10_000,
        check_memory: bool = False,
        seed: int | np.random.Generator | None = None,
    ):
        if check_memory:
            check_fits(Ring(observation_space, action_space, 1).row_bytes() + self.extra_row_bytes, capacity)
        self.ring = Ring(observation_space, action_space, capacity)
        self.rng = np.random.default_rng(seed)
        self.num_samples = 0

    extra_row_bytes = 0
    """What a child keeps for each row beside the ring."""

    def __len__(self) -> int:
        return len(self.ring)

    @property
    def capacity(self) -> int:
        """Most rows that are held; ``resize`` changes it."""
        return self.ring.capacity

    @property
    def observation_space(self) -> spaces.Space:
        """Space of the rows' observations."""
        return self.ring.obs_layout.space

    @property
    def action_space(self) -> spaces.Space:
        """Space of the rows' actions."""
        return self.ring.action_layout.space

    @property
    def oldest(self) -> int:
        """Id of the oldest row: a row is alive iff ``oldest <= id < inserted``. Only grows."""
        return self.ring.oldest

    @property
    def inserted(self) -> int:
        """Number of ids given so far, which is the next row's id."""
        return self.ring.inserted

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows."""
        return self.ring.nbytes

    def validate_experience(self, rows: Experience | Transition) -> None:
        """Check that ``append`` would take these rows.

        Raises:
            TypeError: If they are no Experience or Transition, or not of the kind that is held.
            ValueError: If a shape, dtype, key or number of rows does not fit the spaces.
        """
        self.ring.check(rows)

    @abstractmethod
    def draw(self, batch_size: int, source: int | None = None) -> Draw:
        """Draw rows without gathering them."""

    def _batch(
        self, batch_size: int, n_step: int, discount: float | None, sequence_length: int, source: int | None
    ) -> Batch:
        if self.ring.kind is Transition:
            if n_step != 1 or sequence_length != 1 or discount is not None:
                raise ValueError("n_step, discount and sequence_length are for Experiences; these rows are Transitions")
            slots, ids, weights, probabilities = self.draw(batch_size, source)
            return Batch(self.ring.record(slots), ids, weights, probabilities)
        gamma = DISCOUNT if discount is None else check_fraction("discount", discount)
        return self.gather(self.draw(batch_size, source), n_step, gamma, sequence_length)

    def gather(self, drawn: Draw, n_step: int, discount: float, sequence_length: int) -> Batch:
        """The Batch of drawn Experiences; arguments as those of ``sample``."""
        slots, ids, weights, probabilities = drawn
        check_integer("n_step", n_step, 1)
        if check_integer("sequence_length", sequence_length, 1) == 1:
            return Batch(transitions(self.ring, slots, n_step, discount), ids, weights, probabilities)
        rows, mask = sequences(self.ring, slots, sequence_length, n_step, discount)
        return Batch(rows, ids, weights, probabilities, mask)

    def candidates(self, source: int) -> np.ndarray:
        """Slots of the rows of one source, oldest first; ValueError if there are none."""
        slots = self.ring.alive_slots()
        slots = slots[self.ring.source[slots] == check_integer("source", source)]
        if not slots.size:
            raise ValueError(f"source {source} has no rows in this memory")
        return slots

    def all_experiences(self, concatenate: str = "batch") -> Any:
        """All rows, oldest first, as they were given.

        Args:
            concatenate: "batch": one record with arrays (N, ...). "sequence": one record of a single sequence, with
                arrays (1, N, ...). "none": a list of N records with arrays (1, ...).

        Returns:
            Experiences or Transitions, whichever were appended (an empty Experience before the first).
        """
        check_choice("concatenate", concatenate, ("batch", "sequence", "none"))
        slots = self.ring.alive_slots()
        if concatenate == "none":
            return [self.ring.record(slots[row : row + 1]) for row in range(len(slots))]
        return self.ring.record(slots if concatenate == "batch" else slots[None])

    def reset(self) -> None:
        """Forget all rows. Ids go on counting; annealing and random numbers are not touched."""
        self.ring.clear()

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything as plain arrays: goes through ``numpy.savez`` and back without pickle."""
        return ring_state(self.ring) | rng_state(self.rng)

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take over a saved memory with its capacity, in place of all that is here.

        In a memory that never held a row the saved ids stay. Otherwise they move up by a multiple of the capacity,
        past all ids that this memory ever gave: a late update can never hit another row. Streams do not go on: what is
        appended next starts new windows and episodes, since the environments of a resumed run start anew.

        Raises:
            ValueError: If an entry is missing, broken, or does not fit these spaces. Nothing is changed then.
        """
        loaded = copy.copy(self)
        loaded._take_over(state)  # may fail half-way, when only the copy has changed
        self.__dict__.update(vars(loaded))

    def _take_over(self, state: dict[str, np.ndarray]) -> None:
        """Bind all attributes anew from a saved state; what they were bound to stays as it is."""
        self.ring, self.rng = ring_from_state(self.ring, state), rng_from_state(state)
