"""The ring of rows behind every memory: rows by id, each observation stored once where rows follow each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from agents.replay.checks import check_integer
from agents.replay.observations import ObservationStore, same_rows
from agents.replay.rows import COLUMNS, Rows, check_rows, row_dtype
from agents.replay.spaces import Layout
from agents.replay.streams import Streams
from agents.types import Experience, Transition

CHUNK = 65_536
"""Rows that move at once when the ring is resized, so that large rows need little room twice."""


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
        self.inserted = self.oldest = 0
        self._plain = self.obs_layout.plain and self.action_layout.plain
        self.kind: type | None = None
        self._record: type = Experience  # the kind, also of an empty ring
        self.streams = Streams()
        self.store = ObservationStore(self.obs_layout, self.capacity)
        self.source = np.zeros(self.capacity, np.int64)
        self.table = np.zeros(self.capacity, row_dtype(Experience, self.action_layout))

    def __len__(self) -> int:
        return self.inserted - self.oldest

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.store.nbytes + self.table.nbytes + self.source.nbytes

    @property
    def next(self) -> np.ndarray:
        """Where each row's next_obs is stored, (capacity,): a view, as all that follows."""
        return self.table["next"]

    @property
    def actions(self) -> list[np.ndarray]:
        """Actions by slot, one array a leaf."""
        return [self.table[f"action.{place}"] for place in range(len(self.action_layout.leaves))]

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """What the rows hold between action and next_obs, by slot."""
        return {name: self.table[name] for name in COLUMNS[self._record]}

    def open(self, kind: type | None) -> None:
        """Settle the kind of the rows that an empty ring will hold."""
        dtype = row_dtype(kind or Experience, self.action_layout)
        if dtype != self.table.dtype:
            self.table = np.zeros(self.capacity, dtype)
        self.kind, self._record = kind, kind or Experience

    def row_bytes(self) -> int:
        """Bytes of one row at most, that is with an own next_obs."""
        return 2 * self.obs_layout.nbytes + row_dtype(Experience, self.action_layout).itemsize + 8

    def alive_ids(self) -> np.ndarray:
        """Ids of all rows, oldest first."""
        return np.arange(self.oldest, self.inserted)

    def alive_slots(self) -> np.ndarray:
        """Slots of all rows, oldest first."""
        return self.alive_ids() % self.capacity

    def alive(self, ids: np.ndarray) -> np.ndarray:
        """Which of these ids belong to rows that are still here."""
        return (ids >= self.oldest) & (ids < self.inserted)

    def all_alive(self, ids: np.ndarray) -> bool:
        """Whether all of these ids do."""
        if not len(ids):
            return True
        # as unsigned numbers the negative differences are larger than all others
        ages = (ids - self.oldest if self.oldest else ids).view(np.uint64)
        return ages.item(ages.argmax()) < self.inserted - self.oldest

    def slots_of(self, ids: np.ndarray) -> np.ndarray:
        """Slots of the rows with these ids."""
        return ids if self.inserted <= self.capacity else ids % self.capacity

    def runs(self, first_id: int, count: int) -> list[tuple[slice, slice]]:
        """The slots of ``count`` rows in a row from ``first_id`` on, as one or two runs: (slots, row numbers)."""
        start = first_id % self.capacity
        after_end = start + count - self.capacity
        if after_end <= 0:
            return [(slice(start, start + count), slice(0, count))]
        split = count - after_end
        return [(slice(start, self.capacity), slice(0, split)), (slice(0, after_end), slice(split, count))]

    def ids_of(self, slots: np.ndarray) -> np.ndarray:
        """Ids of the rows in these slots."""
        if self.inserted <= self.capacity:
            return slots
        newest = self.inserted - 1
        return newest - (newest - slots) % self.capacity

    def check(self, rows: Any) -> Rows:
        """The arrays of a record, if it fits the spaces and the kind of the rows that are here.

        Raises:
            TypeError: If it is no Experience or Transition, or not of the kind that this ring holds.
            ValueError: If a shape, dtype or value does not fit.
        """
        checked = check_rows(rows, self.obs_layout, self.action_layout)
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
        if not count:
            return ids
        if self.kind is None:
            self.open(rows.kind)
        self.drop_before(max(self.oldest, first + count - self.capacity))
        self.inserted += count
        skipped = max(0, count - self.capacity)
        if skipped:
            rows, source = rows.since(skipped), source if isinstance(source, int) else source[skipped:]
        runs = self.runs(first + skipped, count - skipped)
        self._write(runs, rows, source)
        self._link(runs, ids[skipped:], rows, source)
        return ids

    def drop_before(self, oldest: int) -> None:
        """Evict the rows with ids below ``oldest``."""
        if oldest == self.oldest:
            return
        for slots, _ in self.runs(self.oldest, min(oldest, self.inserted) - self.oldest):
            places = self.next[slots]
            self.store.release(places[places >= self.capacity])
        self.oldest = oldest

    def clear(self) -> None:
        """Evict all rows; the next ones may be of the other kind."""
        self.drop_before(self.inserted)
        self.streams = Streams()
        self.open(None)

    def record(self, slots: np.ndarray) -> Experience | Transition:
        """The rows in these slots as they were given, whatever the shape of ``slots``."""
        rows, stores = self.table.take(slots), self.store.arrays
        columns = [rows[name].copy() for name in COLUMNS[self._record]]
        if self._plain:  # the same as below, in half the time of a small batch
            obs, next_obs = stores[0].take(slots, 0), stores[0].take(rows["next"], 0)
            return self._record(obs, rows["action.0"].copy(), *columns, next_obs)
        obs, next_obs = self.obs_layout.take(stores, slots), self.obs_layout.take(stores, rows["next"])
        actions = [rows[f"action.{place}"].copy() for place in range(len(self.action_layout.leaves))]
        return self._record(obs, self.action_layout.unflatten(actions), *columns, next_obs)

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
        ended = self.table["terminated"][slots] | self.table["truncated"][slots]
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
        for new, old in (*pairs, (self.source, other.source), (self.table, other.table)):
            new[here] = old[there]
        after = other.next[there]
        own = after >= other.capacity
        self.next[here[~own]] = other.ids_of(after[~own]) % self.capacity
        self.next[here[own]] = places = self.store.reserve(int(own.sum()))
        self.store.write(places, other.store.take(after[own]))

    def _write(self, runs: list[tuple[slice, slice]], rows: Rows, source: np.ndarray | int) -> None:
        """Store rows, except for their next observations."""
        stores = [*self.store.arrays, *self.actions, *self.columns.values()]
        arrays = [*rows.obs, *rows.action, *rows.columns]
        for slots, part in runs:
            for store, array in zip(stores, arrays, strict=True):
                store[slots] = array[part]
            self.source[slots] = source if isinstance(source, int) else source[part]

    def _link(self, runs: list[tuple[slice, slice]], ids: np.ndarray, rows: Rows, source: np.ndarray | int) -> None:
        """Find for each next_obs the slot that holds it already, or give it an own place."""
        slots = ids % self.capacity
        split = self.streams.advance(source, ids)
        earlier, later = split.earlier, split.later
        shared, after = np.zeros(len(ids), bool), np.empty(len(ids), np.int64)
        shared[earlier] = same_rows([array[earlier] for array in rows.next_obs], [array[later] for array in rows.obs])
        own = (~shared).nonzero()[0]
        after[earlier] = slots[later]
        after[own] = places = self.store.reserve(len(own))
        self.store.write(places, [array[own] for array in rows.next_obs])
        for part, run in runs:
            self.next[part] = after[run]
        for newest, row in split.joints:
            self._link_newest(newest, int(slots[row]), [array[row] for array in rows.obs])

    def _link_newest(self, newest: int, slot: int, obs: list[np.ndarray]) -> None:
        """Link a source's newest row before the batch, if alive, to its first row in the batch."""
        if newest < self.oldest:
            return
        before = newest % self.capacity
        place = int(self.next[before])
        if all(store[place].tobytes() == leaf.tobytes() for store, leaf in zip(self.store.arrays, obs, strict=True)):
            self.store.release(self.next[before : before + 1])
            self.next[before] = slot
