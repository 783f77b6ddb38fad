"""The ring of rows behind every memory: rows by id, each observation stored once where rows follow each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from agents.replay.checks import check_integer
from agents.replay.observations import ObservationStore, same_rows
from agents.replay.spaces import Layout
from agents.replay.streams import Streams
from agents.types import Experience, Transition

COLUMNS: dict[type, dict[str, type]] = {
    Experience: {"reward": np.float64, "terminated": np.bool_, "truncated": np.bool_},
    Transition: {"reward": np.float64, "discount": np.float64},
}
"""What each kind of row holds between action and next_obs."""
CHUNK = 65_536
"""Rows that move at once when the ring is resized, so that large rows need little room twice."""


class Rows(NamedTuple):
    """A checked batch, ready to be stored."""

    kind: type
    obs: list[np.ndarray]
    action: list[np.ndarray]
    columns: dict[str, np.ndarray]
    next_obs: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.columns["reward"])

    def since(self, start: int) -> Rows:
        """The rows from ``start`` on."""
        return Rows(
            self.kind,
            [array[start:] for array in self.obs],
            [array[start:] for array in self.action],
            {name: column[start:] for name, column in self.columns.items()},
            [array[start:] for array in self.next_obs],
        )


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
        self.kind: type | None = None
        self.streams = Streams()
        self.store = ObservationStore(self.obs_layout, self.capacity)
        self.actions = [np.zeros((self.capacity, *leaf.shape), leaf.dtype) for leaf in self.action_layout.leaves]
        self.next = np.zeros(self.capacity, np.int64)
        self.source = np.zeros(self.capacity, np.int64)
        self.columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return self.inserted - self.oldest

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [*self.actions, self.next, self.source, *self.columns.values()]
        return self.store.nbytes + sum(array.nbytes for array in arrays)

    def row_bytes(self) -> int:
        """Bytes of one row at most, that is with an own next_obs."""
        return 2 * self.obs_layout.nbytes + self.action_layout.nbytes + 4 * 8

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
        before_end = min(count, self.capacity - start)
        runs = [(slice(start, start + before_end), slice(0, before_end))]
        if before_end < count:
            runs.append((slice(0, count - before_end), slice(before_end, count)))
        return runs

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
        kind = type(rows)
        if kind not in COLUMNS:
            raise TypeError(f"rows must be an Experience or a Transition, got {kind.__name__}")
        if self.kind not in (None, kind):
            raise TypeError(f"this memory holds rows of kind {self.kind.__name__}, got {kind.__name__}")
        obs, next_obs = self.obs_layout.flatten(rows.obs), self.obs_layout.flatten(rows.next_obs, "next_obs")
        action = self.action_layout.flatten(rows.action)
        columns = {name: _column(name, getattr(rows, name), dtype) for name, dtype in COLUMNS[kind].items()}
        for name, array in (("action", action[0]), ("next_obs", next_obs[0]), *columns.items()):
            if len(array) != len(obs[0]):
                raise ValueError(f"{name} has {len(array)} rows, obs has {len(obs[0])}")
        return Rows(kind, obs, action, columns, next_obs)

    def append(self, rows: Rows, source: np.ndarray | int) -> np.ndarray:
        """Store checked rows, in order; of more than ``capacity`` the newest ones.

        Returns:
            Ids of all rows given, (N,).
        """
        ids = np.arange(self.inserted, self.inserted + len(rows))
        if not len(rows):
            return ids
        self._open_columns(rows.kind)
        self.drop_before(max(self.oldest, self.inserted + len(rows) - self.capacity))
        self.inserted += len(rows)
        skipped = max(0, len(rows) - self.capacity)
        if skipped:
            rows, source = rows.since(skipped), source if isinstance(source, int) else source[skipped:]
        self._write(rows, source)
        self._link(ids[skipped:], rows, source)
        return ids

    def drop_before(self, oldest: int) -> None:
        """Evict the rows with ids below ``oldest``."""
        if oldest == self.oldest:
            return
        for slots, _ in self.runs(self.oldest, min(oldest, self.inserted) - self.oldest):
            places = self.next[slots]
            self.store.release(places[places >= self.capacity])
            places[:] = 0
        self.oldest = oldest

    def clear(self) -> None:
        """Evict all rows; the next ones may be of the other kind."""
        self.drop_before(self.inserted)
        self.streams, self.kind, self.columns = Streams(), None, {}

    def record(self, slots: np.ndarray) -> Experience | Transition:
        """The rows in these slots as they were given, whatever the shape of ``slots``."""
        kind = self.kind or Experience
        columns = [column.take(slots) for column in (self.columns or _columns(kind, 0)).values()]
        return kind(self.obs(slots), self.action(slots), *columns, self.next_obs(slots))

    def obs(self, slots: np.ndarray) -> Any:
        """Observations of the rows in these slots."""
        return self.obs_layout.take(self.store.arrays, slots)

    def next_obs(self, slots: np.ndarray) -> Any:
        """Next observations of the rows in these slots."""
        return self.obs_layout.take(self.store.arrays, self.next.take(slots))

    def action(self, slots: np.ndarray) -> Any:
        """Actions of the rows in these slots."""
        return self.action_layout.take(self.actions, slots)

    def follows(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the episode goes on in another row after each of these Experiences, and that row's slot."""
        after = self.next.take(slots)
        ended = self.columns["terminated"].take(slots) | self.columns["truncated"].take(slots)
        return (after < self.capacity) & ~ended, after

    def resized(self, capacity: int) -> Ring:
        """A ring of another capacity with the same rows, or the newest of them; ids stay."""
        capacity = check_integer("capacity", capacity, 1)
        ring = Ring(self.obs_layout.space, self.action_layout.space, capacity)
        ring.inserted, ring.oldest = self.inserted, max(self.oldest, self.inserted - capacity)
        ring.kind, ring.streams = self.kind, self.streams
        ring.columns = {name: np.zeros(capacity, column.dtype) for name, column in self.columns.items()}
        for start in range(ring.oldest, ring.inserted, CHUNK):
            ring._take_over(self, np.arange(start, min(start + CHUNK, ring.inserted)))
        return ring

    def _take_over(self, other: Ring, ids: np.ndarray) -> None:
        """Copy rows of another ring into the slots that they have here."""
        here, there = ids % self.capacity, ids % other.capacity
        pairs = [
            *zip(self.store.arrays, other.store.arrays, strict=True),
            *zip(self.actions, other.actions, strict=True),
        ]
        pairs += [(self.source, other.source), *((self.columns[name], other.columns[name]) for name in self.columns)]
        for new, old in pairs:
            new[here] = old[there]
        after = other.next[there]
        own = after >= other.capacity
        self.next[here[~own]] = other.ids_of(after[~own]) % self.capacity
        self.next[here[own]] = places = self.store.reserve(int(own.sum()))
        self.store.write(places, other.store.take(after[own]))

    def _open_columns(self, kind: type) -> None:
        if self.kind is None:
            self.kind = kind
            self.columns = _columns(kind, self.capacity)

    def _write(self, rows: Rows, source: np.ndarray | int) -> None:
        """Store the newest rows, except for their next observations."""
        for slots, part in self.runs(self.inserted - len(rows), len(rows)):
            for store, array in zip(self.store.arrays, rows.obs, strict=True):
                store[slots] = array[part]
            for store, array in zip(self.actions, rows.action, strict=True):
                store[slots] = array[part]
            for name, column in rows.columns.items():
                self.columns[name][slots] = column[part]
            self.source[slots] = source if isinstance(source, int) else source[part]

    def _link(self, ids: np.ndarray, rows: Rows, source: np.ndarray | int) -> None:
        """Find for each next_obs the slot that holds it already, or give it an own place."""
        slots = ids % self.capacity
        split = self.streams.advance(source, ids)
        after = np.full(len(ids), -1)
        same = same_rows([a[split.earlier] for a in rows.next_obs], [a[split.later] for a in rows.obs])
        after[split.earlier] = np.where(same, slots[split.later], -1)
        self._link_newest(split.newest_before, rows, split.first, slots)
        own = np.flatnonzero(after < 0)
        after[own] = places = self.store.reserve(len(own))
        self.store.write(places, [array[own] for array in rows.next_obs])
        for part, run in self.runs(int(ids[0]), len(ids)):
            self.next[part] = after[run]

    def _link_newest(self, newest: np.ndarray, rows: Rows, first: np.ndarray, slots: np.ndarray) -> None:
        """Link each source's newest row before the batch, if alive, to its first row in the batch."""
        alive = newest >= self.oldest
        if not alive.any():
            return
        before, first = newest[alive] % self.capacity, first[alive]
        places = self.next[before]
        same = same_rows(self.store.take(places), [array[first] for array in rows.obs])
        self.store.release(places[same])
        self.next[before[same]] = slots[first[same]]


def _columns(kind: type, size: int) -> dict[str, np.ndarray]:
    return {name: np.zeros(size, dtype) for name, dtype in COLUMNS[kind].items()}


def _column(name: str, values: Any, dtype: type) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    if array.dtype.kind not in ("b" if dtype is np.bool_ else "biuf"):
        raise ValueError(f"{name} must hold {np.dtype(dtype)} values, got {array.dtype}")
    if name == "discount" and len(array) and not 0 <= np.minimum.reduce(array) <= np.maximum.reduce(array) <= 1:
        raise ValueError(f"discount must lie in [0, 1], got {array[~((array >= 0) & (array <= 1))][0]}")
    return array.astype(dtype, copy=False)
