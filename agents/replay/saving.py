"""Rings and generators as plain arrays and back, and whether a memory will fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.replay.checks import check_choice, check_integer
from agents.replay.ring import Ring
from agents.replay.rows import check_discount
from agents.types import Experience, Transition

FORMAT = 1
"""Version of the saved form."""
KINDS: dict[str, type | None] = {"none": None, "experience": Experience, "transition": Transition}
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def ring_state(ring: Ring) -> dict[str, np.ndarray]:
    """A ring's rows, oldest first. ``next_row`` counts the own next observations on from the rows."""
    slots = ring.alive_slots()
    after = ring.next[slots]
    own = after >= ring.capacity
    next_row = np.empty(len(slots), np.int64)
    next_row[~own] = ring.ids_of(after[~own]) - ring.oldest
    next_row[own] = len(slots) + np.arange(own.sum())
    kind = next(name for name, kind in KINDS.items() if kind is ring.kind)
    counters = {"format": FORMAT, "capacity": ring.capacity, "inserted": ring.inserted, "oldest": ring.oldest}
    state = {name: np.array(value) for name, value in counters.items()} | {"kind": np.array(kind)}
    state |= _leaves("obs", ring.store.take(slots)) | _leaves("own_next_obs", ring.store.take(after[own]))
    state |= _leaves("action", [store[slots] for store in ring.actions])
    state |= {name: column[slots] for name, column in ring.columns.items() if ring.kind}
    return state | {"next_row": next_row, "source": ring.source[slots]}


def ring_from_state(old: Ring, state: dict[str, Any]) -> Ring:
    """A ring from its saved form, for the spaces of ``old``, with ids beyond all that ``old`` gave.

    Raises:
        ValueError: If an entry is missing, does not fit the spaces or contradicts another one.
        TypeError: If it is no dict.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"a saved memory is a dict of arrays, got {type(state).__name__}")
    if saved_integer(state, "format", 0) != FORMAT:
        raise ValueError(f"saved format must be {FORMAT}, got {state['format']}")
    capacity, oldest = saved_integer(state, "capacity", 1), saved_integer(state, "oldest", 0)
    kind = KINDS[saved_choice(state, "kind", tuple(KINDS))]
    num_rows = saved_integer(state, "inserted", oldest) - oldest
    if num_rows > (capacity if kind else 0):
        raise ValueError(f"saved inserted and oldest mean {num_rows} rows of kind {state['kind']} in {capacity} slots")
    ring = Ring(old.obs_layout.space, old.action_layout.space, capacity)
    ring.open(kind)
    laps = -(-(old.inserted - oldest) // capacity) if old.inserted else 0
    ring.oldest = oldest + max(0, laps) * capacity
    ring.inserted = ring.oldest + num_rows
    slots = ring.alive_slots()
    ring.ids[slots] = ring.alive_ids()
    source = saved_array(state, "source", (num_rows,), np.dtype(np.int64))
    next_row = saved_array(state, "next_row", (num_rows,), np.dtype(np.int64))
    own = next_row >= num_rows
    _check_links(next_row, own, source)
    places = ring.store.reserve(int(own.sum()))
    for layout, name, stores, index in (
        (ring.obs_layout, "obs", ring.store.arrays, slots),
        (ring.obs_layout, "own_next_obs", ring.store.arrays, places),
        (ring.action_layout, "action", ring.actions, slots),
    ):
        for place, (leaf, store) in enumerate(zip(layout.leaves, stores, strict=True)):
            store[index] = saved_array(state, f"{name}.{place}", (len(index), *leaf.shape), leaf.dtype)
    if kind:
        for name, column in ring.columns.items():
            column[slots] = saved_array(state, name, (num_rows,), column.dtype)
    if kind is Transition:
        check_discount("saved discount", ring.columns["discount"])
    ring.source[slots] = source
    ring.next[slots] = np.concatenate([slots, places])[next_row]
    return ring


def _check_links(next_row: np.ndarray, own: np.ndarray, source: np.ndarray) -> None:
    """Raise ValueError unless each row is followed by the next of its source, or by the next own observation."""
    num_rows = len(source)
    expected = np.full(num_rows, -1)
    order = np.argsort(source, kind="stable")
    same = source[order[1:]] == source[order[:-1]]
    expected[order[:-1][same]] = order[1:][same]
    expected[own] = num_rows + np.arange(own.sum())
    wrong = (next_row != expected) | (expected < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"saved next_row must name the next row of the source or an own place, got {next_row[row]}")


def rng_state(rng: np.random.Generator, name: str = "rng") -> dict[str, np.ndarray]:
    """A generator's state as one string array (its integers have 128 bits)."""
    return {name: np.array(json.dumps(rng.bit_generator.state, default=np.ndarray.tolist))}


def rng_from_state(state: dict[str, Any], name: str = "rng") -> np.random.Generator:
    """The generator that ``rng_state`` saved; ValueError if there is none."""
    text = _saved(state, name)
    try:
        saved = json.loads(str(text))
        kind = check_choice("bit_generator", saved["bit_generator"], BIT_GENERATORS)
        bit_generator = getattr(np.random, kind)()
        bit_generator.state = saved
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"saved {name} must be the state of a random generator, got {str(text)[:80]!r}") from error
    return np.random.Generator(bit_generator)


def check_fits(row_bytes: int, capacity: int) -> None:
    """Raise MemoryError if ``capacity`` rows of ``row_bytes`` exceed the memory that is free."""
    import psutil  # only here: all but bringing a memory back from a file does without

    needed, free = row_bytes * check_integer("capacity", capacity, 1), psutil.virtual_memory().available
    if needed > free:
        raise MemoryError(
            f"a capacity of {capacity} rows needs up to {needed / 2**30:.2f} GiB, {free / 2**30:.2f} are free"
        )


def _leaves(name: str, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}.{place}": array for place, array in enumerate(arrays)}


def saved_array(state: dict[str, Any], name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An entry that must have this shape and dtype; else ValueError."""
    array = _saved(state, name)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"saved {name} must be {dtype} of shape {shape}, got {array.dtype} of shape {array.shape}")
    return array


def saved_vector(state: dict[str, Any], name: str, dtype: np.dtype) -> np.ndarray:
    """An entry that must have one axis, of whatever length, and this dtype; else ValueError."""
    return saved_array(state, name, _saved(state, name).shape[:1] or (0,), dtype)


def saved_number(state: dict[str, Any], name: str) -> float:
    """An entry that must be one real number; else ValueError."""
    array = _saved(state, name)
    if array.shape or array.dtype.kind not in "iuf":
        raise ValueError(f"saved {name} must be a number, got {array.dtype} of shape {array.shape}")
    return array.item()


def saved_integer(state: dict[str, Any], name: str, least: int) -> int:
    """An entry that must be one integer of at least ``least`` and of 64 bits; else ValueError."""
    value = check_integer(f"saved {name}", saved_number(state, name), least)
    if value >= 2**62:
        raise ValueError(f"saved {name} must be less than 2**62, got {value}")
    return value


def saved_choice(state: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """An entry that must be one of ``choices``; else ValueError."""
    return check_choice(f"saved {name}", str(_saved(state, name)), choices)


def _saved(state: dict[str, Any], name: str) -> np.ndarray:
    if name not in state:
        raise ValueError(f"the saved memory lacks {name}")
    return np.asarray(state[name])
