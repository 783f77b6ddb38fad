"""The ring of rows behind every memory: rows by id, each observation stored once where rows follow each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from agents.replay.checks import BITS, check_integer
from agents.replay.observations import ObservationStore, torn_rows
from agents.replay.rows import COLUMNS, Rows, check_rows, plain_fields, row_dtype
from agents.replay.spaces import Layout
from agents.replay.streams import Split, Streams
from agents.types import Experience

CHUNK = 65_536
"""Rows that move at once when the ring is resized, so that large rows need little room twice."""


MANY = 256
"""Rows from which on places in memory cost more than calls of NumPy: whole records are gathered, and no ids."""


class Ring:
    """The newest ``capacity`` rows, oldest overwritten first.

    Ids count up for ever; the row with id i is alive iff ``oldest <= i < inserted`` and lies in slot i % capacity.
    ``next`` says where a row's next_obs is stored: in the slot of the next row of the same source, whose obs is the
    same to the last byte, or in an own place (an index from ``capacity`` on).

    Args:
        observation_space: Of the rows' obs and next_obs.
        action_space: Of the rows' actions.
        capacity: Number of slots.
    """

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, capacity: int):
        self.capacity = check_integer("capacity", capacity, 1)
        self.obs_layout, self.action_layout = Layout(observation_space, "obs"), Layout(action_space, "action")
        self._fields = plain_fields(self.obs_layout, self.action_layout)  # none for a Dict or Tuple
        self._size = np.array(self.capacity)  # as an array without axes it costs NumPy less than as a number
        self.inserted = self.oldest = 0
        self.streams = Streams()
        self.store = ObservationStore(self.obs_layout, self.capacity)
        self.source = np.zeros(self.capacity, np.int64)
        self.ids = np.zeros(self.capacity, np.int64)
        self._table: Any = np.zeros(0)
        self.open(None)

    def __len__(self) -> int:
        return self.inserted - self.oldest

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.store.nbytes + self._table.nbytes + self.source.nbytes + self.ids.nbytes

    def open(self, kind: type | None) -> None:
        """Settle the kind of the rows that an empty ring will hold."""
        self.kind = kind
        self._record: Any = kind or Experience  # the kind of a record, also of an empty ring
        dtype = row_dtype(self._record, self.action_layout)
        if dtype != self._table.dtype:
            self._table = np.zeros(self.capacity, dtype)
        self._view()

    def _view(self) -> None:
        """Name the columns of the table, by slot: fancy indexing of such views is NumPy's fastest way to gather."""
        actions = [f"action.{place}" for place in range(len(self.action_layout.leaves))]
        self._names = ["next", *actions, *COLUMNS[self._record]]
        self.next = self._table["next"]  # where each row's next_obs is stored
        self._columns = [self._table[name] for name in self._names[1:]]
        self.actions = self._columns[: len(actions)]
        self.columns = dict(zip(COLUMNS[self._record], self._columns[len(actions) :], strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Without the views, which would become arrays of their own."""
        views = ("next", "actions", "columns", "_columns")
        return {name: value for name, value in self.__dict__.items() if name not in views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same, back."""
        self.__dict__.update(state)
        self._view()

    def row_bytes(self) -> int:
        """Bytes of one row at most, that is with an own next_obs."""
        return 2 * self.obs_layout.nbytes + row_dtype(Experience, self.action_layout).itemsize + 8 + 8

    def alive_ids(self) -> np.ndarray:
        """Ids of all rows, oldest first."""
        return np.arange(self.oldest, self.inserted)

    def alive_slots(self) -> np.ndarray:
        """Slots of all rows, oldest first."""
        return self.alive_ids() % self.capacity

    def alive(self, ids: np.ndarray) -> np.ndarray | None:
        """Which of these ids belong to rows that are still here; None for all."""
        if not len(ids):
            return None
        # as unsigned numbers the negative differences are larger than all others
        ages = (ids - self.oldest if self.oldest else ids).view(BITS)
        num_rows = self.inserted - self.oldest
        return None if ages.item(ages.argmax()) < num_rows else ages < num_rows

    def slots_of(self, ids: np.ndarray) -> np.ndarray:
        """Slots of the rows with these ids."""
        return ids if self.inserted <= self.capacity else ids % self._size

    def slots_from(self, first: int, count: int) -> slice | np.ndarray:
        """Slots of ``count`` rows (at most ``capacity``) from the id ``first`` on: a slice where that will do."""
        start = first % self.capacity
        if start + count <= self.capacity:
            return slice(start, start + count)
        return np.arange(start, start + count) % self.capacity

    def ids_of(self, slots: np.ndarray) -> np.ndarray:
        """Ids of the rows in these slots."""
        if len(slots) < MANY:
            return self.ids[slots]
        newest = self.inserted - 1
        return newest - (newest - slots) % self.capacity

    def check(self, rows: Any) -> Rows:
        """The arrays of a record, if it fits the spaces and the kind of the rows that are here.

        Raises:
            TypeError: If it is no Experience or Transition, or not of the kind that this ring holds.
            ValueError: If a shape, dtype or value does not fit.
        """
        checked = check_rows(rows, self.obs_layout, self.action_layout, self._fields)
        if self.kind not in (None, checked.kind):
            raise TypeError(f"this memory holds rows of kind {self.kind.__name__}, got {checked.kind.__name__}")
        return checked

    def append(self, rows: Rows, source: np.ndarray | int) -> np.ndarray:
        """Store checked rows, in order; of more than ``capacity`` the newest ones.

        Returns:
            Ids of all rows given, (N,).
        """
        first, count = self.inserted, rows.num_rows
        ids = np.arange(first, first + count)
        if count == 0:
            return ids
        if self.kind is None:
            self.open(rows.kind)
        self.inserted = first + count
        if count > self.capacity:
            first, count, skipped = self.inserted - self.capacity, self.capacity, count - self.capacity
            rows, source = rows.since(skipped), source if isinstance(source, int) else source[skipped:]
        self.oldest = max(self.oldest, self.inserted - self.capacity)
        slots = self.slots_from(first, count)
        self._evict(slots)
        self.ids[slots] = ids[-count:]
        self._write(slots, rows, source)
        self._link(slots, self.streams.advance(source, first, count), rows, first)
        return ids

    def clear(self) -> None:
        """Evict all rows; the next ones may be of the other kind."""
        slots = self.slots_from(self.oldest, len(self))
        self._evict(slots)
        self.next[slots] = 0
        self.oldest = self.inserted
        self.streams = Streams()
        self.open(None)

    def record(self, slots: np.ndarray) -> Any:
        """The rows in these slots as they were given, whatever the shape of ``slots``."""
        if slots.size < MANY:
            after, others = self.next[slots], []
            for column in self._columns:  # a comprehension would cost as much as gathering a column
                others.append(column[slots])
        else:
            table = self._table.take(slots)
            after, *others = (table[name].copy() for name in self._names)
        if self._fields:  # the same as below, in less time for a small batch
            store = self.store.arrays[0]
            return self._record._make((store.take(slots, 0), *others, store.take(after, 0)))
        obs, next_obs = (self.obs_layout.take(self.store.arrays, index) for index in (slots, after))
        num_actions = len(self.actions)
        return self._record(obs, self.action_layout.unflatten(others[:num_actions]), *others[num_actions:], next_obs)

    def obs(self, slots: np.ndarray) -> Any:
        """Observations of the rows in these slots."""
        return self.obs_layout.take(self.store.arrays, slots)

    def next_obs(self, slots: np.ndarray) -> Any:
        """Next observations of the rows in these slots."""
        return self.obs_layout.take(self.store.arrays, self.next[slots])

    def action(self, slots: np.ndarray) -> Any:
        """Actions of the rows in these slots."""
        return self.action_layout.unflatten([store[slots] for store in self.actions])

    def follows(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the episode goes on in another row after each of these Experiences, and that row's slot."""
        after = self.next[slots]
        ended = self.columns["terminated"][slots] | self.columns["truncated"][slots]
        return (after < self.capacity) & ~ended, after

    def resized(self, capacity: int) -> Ring:
        """A ring of another capacity with the same rows, or the newest of them; ids stay."""
        capacity = check_integer("capacity", capacity, 1)
        ring = Ring(self.obs_layout.space, self.action_layout.space, capacity)
        ring.inserted, ring.oldest = self.inserted, max(self.oldest, self.inserted - capacity)
        ring.open(self.kind)
        ring.streams = self.streams
        for start in range(ring.oldest, ring.inserted, CHUNK):
            ring._take_over(self, np.arange(start, min(start + CHUNK, ring.inserted)))
        return ring

    def _take_over(self, other: Ring, ids: np.ndarray) -> None:
        """Copy rows of another ring into the slots that they have here."""
        here, there = ids % self.capacity, ids % other.capacity
        pairs = zip(self.store.arrays, other.store.arrays, strict=True)
        for new, old in (*pairs, (self.source, other.source), (self.ids, other.ids), (self._table, other._table)):
            new[here] = old[there]
        after = other.next[there]
        own = after >= other.capacity
        self.next[here[~own]] = other.ids_of(after[~own]) % self.capacity
        self.next[here[own]] = places = self.store.reserve(int(own.sum()))
        self.store.write(places, other.store.take(after[own]))

    def _evict(self, slots: slice | np.ndarray) -> None:
        """Free the own places of the rows in these slots; where there is no row ``next`` says nothing of own places."""
        places = self.next[slots]
        own = places[places >= self._size]
        if len(own):
            self.store.release(own)

    def _write(self, slots: slice | np.ndarray, rows: Rows, source: np.ndarray | int) -> None:
        """Store rows, except for their next observations."""
        for store, array in zip(self.store.arrays, rows.obs, strict=True):
            store[slots] = array
        for column, array in zip(self._columns, rows.others, strict=True):
            column[slots] = array
        self.source[slots] = source

    def _link(self, slots: slice | np.ndarray, split: Split, rows: Rows, first: int) -> None:
        """Find for each next_obs the slot that holds it already, or give it an own place; ``first`` is the first id."""
        earlier, later, newest, joints = split
        if type(slots) is slice and type(earlier) is slice:  # one source, side by side
            after = np.arange(slots.start + 1, slots.stop + 1)
        else:
            numbers = np.arange(slots.start, slots.stop) if type(slots) is slice else slots
            after = np.empty(rows.num_rows, np.int64)
            after[earlier] = numbers[later]
        torn = torn_rows(rows.next_obs, earlier, rows.obs, later)
        own = newest if torn is None else np.append(np.arange(rows.num_rows)[earlier][torn], newest)
        after[own] = self.store.keep(rows.next_obs, own)
        self.next[slots] = after
        for before, row in joints:
            if before >= self.oldest:
                self._link_newest(before % self.capacity, (first + row) % self.capacity, rows.obs, row)

    def _link_newest(self, before: int, slot: int, obs: list[np.ndarray], row: int) -> None:
        """Link a source's newest row before the batch to its first row in the batch, if they fit."""
        place = self.next.item(before)
        for leaf, store in enumerate(self.store.arrays):
            if store[place].tobytes() != obs[leaf][row].tobytes():
                return
        self.store.release(self.next[before : before + 1])
        self.next[before] = slot
