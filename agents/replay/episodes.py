"""Which rows of a ring make up finished episodes, so that any later row of the same episode is at hand."""

from __future__ import annotations

import numpy as np

from agents.replay.ring import Ring


class EpisodeIndex:
    """Finished episodes of a ring of Experiences.

    When an episode ends, the ids of its rows are written down side by side in a log (a ring of twice the capacity:
    an alive row's entry cannot be overwritten, since fewer than that many rows can end after it). Rows whose episode
    is still open, or was broken off without an end, are in no episode.

    Args:
        ring: Whose rows are indexed. ``update`` takes in what was appended since.
    """

    def __init__(self, ring: Ring):
        self.ring = ring
        self._log = np.zeros(2 * ring.capacity, np.int64)  # ids
        self._num_logged = 0
        self._seen = 0  # ids below this one have been taken in
        self._first = np.full(ring.capacity, -1)  # per slot, in the log's count: the episode's first row, -1 for none
        self._last = np.full(ring.capacity, -1)  # its last row
        self._place = np.full(ring.capacity, -1)  # the row itself
        self._next_start: dict[int, int] = {}  # per source: id from which the open episode's rows may be

    def update(self) -> None:
        """Take in the rows that were appended since the last time."""
        ids = np.arange(max(self._seen, self.ring.oldest), self.ring.inserted)
        self._seen = self.ring.inserted
        if not ids.size:
            return
        slots = ids % self.ring.capacity
        self._last[slots] = -1
        ended = self.ring.columns["terminated"][slots] | self.ring.columns["truncated"][slots]
        for end in ids[ended]:  # once an episode, not once a row
            self._take_in(int(end))

    def in_episode(self, slots: np.ndarray) -> np.ndarray:
        """Whether the rows in these slots (k,) belong to finished episodes."""
        return self._last[slots] >= 0

    def final(self, slots: np.ndarray) -> np.ndarray:
        """Slots of the last rows of these rows' episodes."""
        return self._slots_at(self._last[slots])

    def future(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Slots of random rows of the same episodes, from the rows themselves on."""
        return self._slots_at(rng.integers(self._place[slots], self._last[slots], endpoint=True))

    def any(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Slots of random rows of the same episodes, among those that the ring still holds."""
        return self._slots_at(rng.integers(self._first_alive(slots), self._last[slots], endpoint=True))

    def _slots_at(self, places: np.ndarray) -> np.ndarray:
        return self._log[places % len(self._log)] % self.ring.capacity

    def _first_alive(self, slots: np.ndarray) -> np.ndarray:
        """Places of the first rows of these rows' episodes that are alive, by bisection: ids grow along an episode."""
        low, high = self._first[slots], self._place[slots]
        while (low < high).any():
            middle = (low + high) // 2
            dead = self._log[middle % len(self._log)] < self.ring.oldest
            low, high = np.where(dead, middle + 1, low), np.where(dead, high, middle)
        return low

    def _take_in(self, end: int) -> None:
        ring = self.ring
        source = int(ring.source[end % ring.capacity])
        ids = np.arange(max(self._next_start.get(source, 0), ring.oldest), end + 1)
        ids = ids[ring.source[ids % ring.capacity] == source]
        slots = ids % ring.capacity
        broken = np.flatnonzero(ring.next[slots[:-1]] != slots[1:])
        if broken.size:
            ids, slots = ids[broken[-1] + 1 :], slots[broken[-1] + 1 :]
        places = self._num_logged + np.arange(len(ids))
        self._log[places % len(self._log)] = ids
        self._first[slots], self._place[slots], self._last[slots] = places[0], places, places[-1]
        self._num_logged += len(ids)
        self._next_start[source] = end + 1
