"""Prioritized experience replay (Schaul et al. 2016, arXiv:1511.05952)."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np
from gymnasium import spaces

from agents.replay.base import RingMemory
from agents.replay.checks import (
    check_choice,
    check_epsilon,
    check_fraction,
    check_ids,
    check_integer,
    check_priorities,
)
from agents.replay.extremes import Extreme
from agents.replay.masses import random_masses, random_places
from agents.replay.memory import Draw
from agents.replay.ranks import Ranking
from agents.replay.saving import saved_array, saved_choice, saved_integer, saved_number
from agents.replay.streams import check_source
from agents.replay.sum_tree import SumTree
from agents.types import Experience, Transition

WEIGHT_NORMS = ("batch", "memory", "none")
PRIORITIZATIONS = ("proportional", "rank")


class PrioritizedMemory(RingMemory):
    """Replay memory that draws rows by their priorities and corrects for it with importance weights.

    With raw priorities p (absolute TD errors) of the N rows:

        P(j) = (p_j + epsilon)**alpha / sum_i (p_i + epsilon)**alpha       (Schaul et al. 2016, eq. 1 and section 3.3)
        w_j = (N P(j))**-beta / max_i w_i                                  (section 3.4)
        beta = beta_0 + (1 - beta_0) * samples / num_annealing_steps, at most 1

    Args:
        observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of such.
        action_space: Likewise.
        capacity: Most rows that are held; then the oldest is overwritten.
        priority_exponent: alpha in [0, 1]; 0 draws uniformly. May be assigned at any time.
        initial_importance_sampling_exponent: beta_0 in [0, 1]. May be assigned at any time.
        num_annealing_steps: Calls of ``sample`` until beta is 1, at least 1. May be assigned at any time.
        priority_epsilon: Added to every raw priority, here and nowhere else; not negative.
        stratified: Draw one row from each of batch_size equal shares of the total, else all rows independently.
        weight_norm: What the weights are divided by: the largest of the "batch", the largest that a row of the
            "memory" could have, or "none".
        prioritization: "proportional", or "rank" for P(j) ~ (1 / rank(j))**alpha (section 3.3), where large memories
            rank all rows anew once a sixteenth of them has changed.
        check_memory: Refuse at once a capacity whose rows, each with two observations, exceed the memory that is free.
        seed: For ``numpy.random.default_rng``: an integer, or a Generator to be used.

    Raises:
        ValueError: If a number is out of its range.
        TypeError: For a space that cannot be stored.
        MemoryError: With ``check_memory``, if the rows will not fit.
    """

    extra_row_bytes = 8 * 4  # raw priority, leaf, its running sum, the levels above
    _largest: Extreme | None
    _extremes: list[Extreme]

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        capacity: int = 10_000,
        priority_exponent: float = 0.6,
        initial_importance_sampling_exponent: float = 0.4,
        num_annealing_steps: int = 1_000_000,
        priority_epsilon: float = 1e-6,
        stratified: bool = True,
        weight_norm: str = "batch",
        prioritization: str = "proportional",
        check_memory: bool = False,
        seed: int | np.random.Generator | None = None,
    ):
        self._exponent = check_fraction("priority_exponent", priority_exponent)
        self.initial_importance_sampling_exponent = initial_importance_sampling_exponent
        self.num_annealing_steps = num_annealing_steps
        self._epsilon = check_epsilon("priority_epsilon", priority_epsilon)
        self._stratified = check_choice("stratified", stratified, (True, False))
        self._weight_norm = check_choice("weight_norm", weight_norm, WEIGHT_NORMS)
        self._prioritization = check_choice("prioritization", prioritization, PRIORITIZATIONS)
        super().__init__(observation_space, action_space, capacity, check_memory, seed)
        self._set_priorities(np.zeros(0))

    priority_epsilon = property(operator.attrgetter("_epsilon"), doc="Added to every raw priority.")
    stratified = property(operator.attrgetter("_stratified"), doc="Whether each equal share of the total gives a row.")
    weight_norm = property(operator.attrgetter("_weight_norm"), doc="What the weights are divided by.")
    prioritization = property(operator.attrgetter("_prioritization"), doc='"proportional" or "rank".')

    @property
    def priority_exponent(self) -> float:
        """Alpha in [0, 1]: how much priorities count."""
        return self._exponent

    @priority_exponent.setter
    def priority_exponent(self, value: float) -> None:
        self._exponent = check_fraction("priority_exponent", value)
        self._set_priorities(self.priorities)

    @property
    def initial_importance_sampling_exponent(self) -> float:
        """Beta in [0, 1] before the first sample."""
        return self._first_beta

    @initial_importance_sampling_exponent.setter
    def initial_importance_sampling_exponent(self, value: float) -> None:
        self._first_beta = check_fraction("initial_importance_sampling_exponent", value)

    @property
    def num_annealing_steps(self) -> int:
        """Calls of ``sample`` until beta is 1."""
        return self._num_annealing_steps

    @num_annealing_steps.setter
    def num_annealing_steps(self, value: int) -> None:
        self._num_annealing_steps = check_integer("num_annealing_steps", value, 1)

    @property
    def importance_sampling_exponent(self) -> float:
        """Beta now: grows linearly with the number of samples, up to 1."""
        if self.num_samples >= self._num_annealing_steps:
            return 1.0
        return self._first_beta + (1.0 - self._first_beta) * self.num_samples / self._num_annealing_steps

    @property
    def priorities(self) -> np.ndarray:
        """Raw priorities of all rows, oldest first."""
        return self._raw[self.ring.alive_slots()]

    def append(self, rows: Experience | Transition, priorities: Any = None, source: Any = 0) -> np.ndarray:
        """Store rows, as :meth:`ReplayMemory.append` says."""
        checked = self.ring.check(rows)
        source = check_source(source, checked.num_rows)
        if priorities is None:
            raw = np.zeros(checked.num_rows) + self._largest_present()  # in half the time of np.full
        else:
            raw = check_priorities("priorities", priorities, checked.num_rows, self._largest_priority)
        ids = self.ring.append(checked, source)
        self._write_newest(raw if len(raw) <= self.ring.capacity else raw[-self.capacity :])
        if priorities is None and self._largest and len(raw):
            self._largest.settle(raw.item(0))
        self._refresh_ranks()
        return ids

    def update_priorities(self, ids: Any, abs_td_errors: Any) -> int:
        """Give rows new raw priorities, as :meth:`ReplayMemory.update_priorities` says."""
        ids = check_ids(ids)
        raw = check_priorities("abs_td_errors", abs_td_errors, len(ids), self._largest_priority)
        alive, num_stale = self.ring.alive(ids), 0
        if alive is not None:
            num_stale = len(ids) - int(alive.sum())
            ids, raw = ids[alive], raw[alive]
        self._write(self.ring.slots_of(ids), raw)
        self._refresh_ranks()
        return num_stale

    def resize(self, capacity: int) -> None:
        """Change the capacity: growing keeps all rows, shrinking the newest; ids, order and priorities stay."""
        ring = self.ring.resized(capacity)
        raw = self.priorities[len(self.ring) - len(ring) :]
        self.ring = ring
        self._set_priorities(raw)

    def reset(self) -> None:
        """Forget all rows. Ids go on counting; annealing and random numbers are not touched."""
        super().reset()
        self._set_priorities(np.zeros(0))

    def draw(self, batch_size: int, source: int | None = None) -> Draw:
        """Draw rows by priority without gathering them."""
        batch_size = check_integer("batch_size", batch_size, 1)
        tree, ring = self.tree, self.ring
        total = tree.total
        if source is None and total > 0:
            masses = random_masses(self.rng, batch_size, total, self._stratified)
            slots, leaves, reference = tree.find_checked(masses)
            if self._weight_norm != "batch":
                reference = self._smallest.get(tree.leaves) if self._smallest else total / len(ring)
        elif len(ring):
            candidates = ring.alive_slots() if source is None else self.candidates(source)
            slots, leaves, reference, total = self._draw_from(candidates, batch_size)
        else:
            raise ValueError("cannot sample from an empty memory")
        weights = reference / leaves  # (N P)**-beta over its largest is (smallest P / P)**beta
        weights **= self.importance_sampling_exponent
        leaves /= total
        return slots, ring.ids_of(slots), weights, leaves

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything as plain arrays: goes through ``numpy.savez`` and back without pickle."""
        settings = {name: np.array(getattr(self, name)) for name in _SETTINGS}
        state = super().state_dict() | settings | {"priorities": self.priorities}
        if self._ranking:  # ranks are those of the last ranking
            state |= self._ranking.state_dict() | {"leaves": self.tree.leaves[self.ring.alive_slots()]}
        return state

    def _take_over(self, state: dict[str, np.ndarray]) -> None:
        super()._take_over(state)
        self._exponent = check_fraction("saved priority_exponent", saved_number(state, "priority_exponent"))
        for name in ("initial_importance_sampling_exponent", "num_annealing_steps"):
            setattr(self, name, saved_number(state, name))
        self._epsilon = check_epsilon("saved priority_epsilon", saved_number(state, "priority_epsilon"))
        self._stratified = bool(saved_array(state, "stratified", (), np.dtype(np.bool_)))
        self._weight_norm = saved_choice(state, "weight_norm", WEIGHT_NORMS)
        self._prioritization = saved_choice(state, "prioritization", PRIORITIZATIONS)
        self.num_samples = saved_integer(state, "num_samples", 0)
        raw = saved_array(state, "priorities", (len(self),), np.dtype(np.float64))
        self._set_priorities(check_priorities("saved priorities", raw, len(self), self._limit()))
        if self._ranking:
            self._ranking.load_state_dict(state)
            leaves = saved_array(state, "leaves", (len(self),), np.dtype(np.float64))
            check_priorities("saved leaves", leaves, len(self), math.nextafter(1.0, 2.0))
            self.tree.set_checked(self.ring.alive_slots(), leaves)

    def _leaves(self, raw: np.ndarray) -> np.ndarray:
        """Unnormalized probabilities of rows with these raw priorities: the one place of alpha and epsilon."""
        if self._ranking:
            return self._ranking.rank(raw) ** -self._exponent
        leaves = raw + self._added
        leaves **= self._power
        return leaves

    def _write(self, slots: np.ndarray, raw: np.ndarray) -> None:
        self._raw[slots] = raw
        self.tree.set_checked(slots, self._leaves(raw))
        for extreme in self._extremes:
            extreme.touch(slots)

    def _write_newest(self, raw: np.ndarray) -> None:
        """Priorities of the newest rows."""
        slots = self.ring.slots_from(self.ring.inserted - len(raw), len(raw))
        if type(slots) is not slice:
            self._write(slots, raw)
            return
        self._raw[slots] = raw
        self.tree.set_range(slots.start, self._leaves(raw))
        for extreme in self._extremes:
            extreme.touch_range(slots.start, slots.stop)

    def _largest_present(self) -> float:
        """The largest raw priority, 1 in an empty memory."""
        if not len(self.ring):
            return 1.0
        if self._largest is None:
            self._largest = Extreme(self.capacity)
            self._extremes.append(self._largest)
        return self._largest.get(self._raw)

    def _refresh_ranks(self) -> None:
        if self._ranking and self._ranking.outdated(len(self.ring)):
            self._set_priorities(self.priorities)

    def _limit(self) -> float:
        """Raw priorities below this one keep all sums finite."""
        return sys.float_info.max / (4 * self.capacity) - self._epsilon

    def _set_priorities(self, raw: np.ndarray) -> None:
        """Start priorities and tree anew from the raw priorities of all rows, oldest first."""
        slots = self.ring.alive_slots()
        # as arrays without axes they cost NumPy less than as numbers
        self._added, self._power = np.array(self._epsilon), np.array(self._exponent)
        self._raw, self.tree = np.zeros(self.capacity), SumTree(self.capacity)
        self._ranking = Ranking() if self._prioritization == "rank" else None
        self._largest_priority = self._limit()
        self._largest = None  # until somebody asks for it
        self._smallest = Extreme(self.capacity, smallest=True) if self._weight_norm == "memory" else None
        self._extremes = [self._smallest] if self._smallest else []
        self._raw[slots] = raw
        ranks = self._ranking.rank_all(raw) if self._ranking else None
        self.tree.set_checked(slots, self._leaves(raw) if ranks is None else ranks**-self._exponent)

    def _draw_from(self, candidates: np.ndarray, batch_size: int) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Slots (k,) drawn from these alone, their leaves (k,), the leaf whose weight is 1, and the sum of them all."""
        leaves = self.tree.leaves[candidates]
        if not leaves.any():
            leaves = np.ones(len(leaves))
        drawn, total = random_places(self.rng, leaves, batch_size, self._stratified)
        values = leaves[drawn]
        if self._weight_norm == "batch":
            reference = values.min()
        else:
            reference = leaves[leaves > 0].min() if self._smallest else total / len(leaves)
        return candidates[drawn], values, reference, total


_SETTINGS = (
    "priority_exponent", "initial_importance_sampling_exponent", "num_annealing_steps", "priority_epsilon",
    "stratified", "weight_norm", "prioritization", "num_samples",
)  # fmt: skip
