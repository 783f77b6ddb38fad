"""Rings and generators as plain arrays and back, and whether a memory will fit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psutil

from agents.replay.checks import check_integer
from agents.replay.ring import Ring
from agents.types import Experience, Transition

FORMAT = 1
"""Version of the saved form."""
_NEEDED = ("capacity", "inserted", "oldest", "kind", "next_row", "source", "own_next_obs.0", "rng")
KINDS: dict[str, type | None] = {"none": None, "experience": Experience, "transition": Transition}


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
        ValueError: If the state is of another format or does not fit the spaces.
    """
    if int(state.get("format", -1)) != FORMAT:
        raise ValueError(f"the saved memory must be of format {FORMAT}, got {state.get('format')}")
    lacking = [name for name in _NEEDED if name not in state]
    if lacking:
        raise ValueError(f"the saved memory lacks {', '.join(lacking)}")
    ring = Ring(old.obs_layout.space, old.action_layout.space, int(state["capacity"]))
    num_rows, num_own = len(state["next_row"]), len(state["own_next_obs.0"])
    laps = -(-(old.inserted - int(state["oldest"])) // ring.capacity) if old.inserted else 0
    shift = max(0, laps) * ring.capacity
    ring.inserted, ring.oldest = int(state["inserted"]) + shift, int(state["oldest"]) + shift
    if str(state["kind"]) not in KINDS:
        raise ValueError(f"saved kind must be one of {', '.join(KINDS)}, got {state['kind']}")
    ring.open(KINDS[str(state["kind"])])
    slots = ring.alive_slots()
    places = ring.store.reserve(num_own)
    for layout, name, stores, index in (
        (ring.obs_layout, "obs", ring.store.arrays, slots),
        (ring.obs_layout, "own_next_obs", ring.store.arrays, places),
        (ring.action_layout, "action", ring.actions, slots),
    ):
        for place, (leaf, store) in enumerate(zip(layout.leaves, stores, strict=True)):
            store[index] = _fitting(state, f"{name}.{place}", (len(index), *leaf.shape), leaf.dtype)
    if ring.kind:
        for name, column in ring.columns.items():
            column[slots] = _fitting(state, name, (num_rows,), column.dtype)
    ring.source[slots] = _fitting(state, "source", (num_rows,), np.dtype(np.int64))
    next_row = _fitting(state, "next_row", (num_rows,), np.dtype(np.int64))
    if num_rows and not 0 <= next_row.min() <= next_row.max() < num_rows + num_own:
        raise ValueError(
            f"saved next_row must lie in [0, {num_rows + num_own}), got {next_row.min()} and {next_row.max()}"
        )
    ring.next[slots] = np.concatenate([slots, places])[next_row]
    return ring


def rng_state(rng: np.random.Generator, name: str = "rng") -> dict[str, np.ndarray]:
    """A generator's state as one string array (its integers have 128 bits)."""
    return {name: np.array(json.dumps(rng.bit_generator.state))}


def rng_from_state(state: dict[str, Any], name: str = "rng") -> np.random.Generator:
    """The generator that ``rng_state`` saved."""
    saved = json.loads(str(state[name]))
    bit_generator = getattr(np.random, saved["bit_generator"])()
    bit_generator.state = saved
    return np.random.Generator(bit_generator)


def check_fits(row_bytes: int, capacity: int) -> None:
    """Raise MemoryError if ``capacity`` rows of ``row_bytes`` exceed the memory that is free."""
    needed, free = row_bytes * check_integer("capacity", capacity, 1), psutil.virtual_memory().available
    if needed > free:
        raise MemoryError(
            f"a capacity of {capacity} rows needs up to {needed / 2**30:.2f} GiB, {free / 2**30:.2f} are free"
        )


def _leaves(name: str, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{name}.{place}": array for place, array in enumerate(arrays)}


def _fitting(state: dict[str, Any], name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if name not in state:
        raise ValueError(f"the saved memory lacks {name}")
    array = np.asarray(state[name])
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"saved {name} must be {dtype} of shape {shape}, got {array.dtype} of shape {array.shape}")
    return array
