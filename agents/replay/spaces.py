"""Batches of a Gymnasium space as flat lists of arrays, one array for each Box, Discrete, ... in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from agents.replay.checks import as_array


class Leaf(NamedTuple):
    """A space that is stored as one array."""

    name: str  # where in the whole space, for messages
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of one element of the space."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class Layout:
    """How batches of a space's elements are laid out as arrays.

    Args:
        space: Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of such, nested as one likes.
        name: What the space is for, for messages.

    Raises:
        TypeError: For any other space, or one without entries.
    """

    def __init__(self, space: spaces.Space, name: str):
        self.space, self.name = space, name
        self.leaves: list[Leaf] = []
        self._collect(space, name)
        if not self.leaves:
            raise TypeError(f"{name}: a space without entries cannot be stored, got {space}")
        self.plain = not isinstance(space, (spaces.Dict, spaces.Tuple))

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return sum(leaf.nbytes for leaf in self.leaves)

    def _collect(self, space: spaces.Space, name: str) -> None:
        if isinstance(space, spaces.Dict):
            for key, part in space.items():
                self._collect(part, f"{name}[{key!r}]")
        elif isinstance(space, spaces.Tuple):
            for place, part in enumerate(space):
                self._collect(part, f"{name}[{place}]")
        elif isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
            self.leaves.append(Leaf(name, tuple(space.shape or ()), np.dtype(space.dtype)))
        else:
            raise TypeError(
                f"{name}: only Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple can be stored, got {space}"
            )

    def flatten(self, batch: Any, name: str | None = None) -> tuple[list[np.ndarray], int]:
        """The arrays of a batch, one a leaf: (N, ...), C-contiguous, of the leaf's dtype; and the number of rows N.

        Args:
            batch: Arrays with the batch first, structured as the space.
            name: What the batch is, for messages; default the layout's own name.

        Raises:
            ValueError: If a shape, a key or a number of rows does not fit, or if a value would change in the space's
                dtype (a float may be rounded to a narrower one).
        """
        if self.plain:
            array = _fit(batch, self.leaves[0], name)
            return [array], len(array)
        parts: list[Any] = []
        _walk(self.space, batch, name or self.name, parts)
        arrays = [_fit(part, leaf) for part, leaf in zip(parts, self.leaves, strict=True)]
        for array, leaf in zip(arrays[1:], self.leaves[1:], strict=True):
            if len(array) != len(arrays[0]):
                raise ValueError(f"{leaf.name} has {len(array)} rows, {self.leaves[0].name} has {len(arrays[0])}")
        return arrays, len(arrays[0])

    def take(self, stores: list[np.ndarray], index: np.ndarray) -> Any:
        """The batch of the elements that lie at ``index`` in arrays such as ``flatten`` gives."""
        if self.plain:
            return stores[0].take(index, 0)
        return self.unflatten([store.take(index, 0) for store in stores])

    def unflatten(self, arrays: list[np.ndarray]) -> Any:
        """The inverse of ``flatten``."""
        return arrays[0] if self.plain else _build(self.space, iter(arrays))


def _walk(space: spaces.Space, batch: Any, name: str, parts: list[Any]) -> None:
    if isinstance(space, spaces.Dict):
        if not isinstance(batch, dict) or batch.keys() != space.keys():
            got = sorted(map(str, batch)) if isinstance(batch, dict) else type(batch).__name__
            raise ValueError(f"{name} must be a dict with the keys {sorted(map(str, space))}, got {got}")
        for key, part in space.items():
            _walk(part, batch[key], f"{name}[{key!r}]", parts)
    elif isinstance(space, spaces.Tuple):
        if not isinstance(batch, (tuple, list)) or len(batch) != len(space):
            raise ValueError(f"{name} must be a tuple of {len(space)} batches, got {type(batch).__name__}")
        for place, part in enumerate(space):
            _walk(part, batch[place], f"{name}[{place}]", parts)
    else:
        parts.append(batch)


def _fit(part: Any, leaf: Leaf, name: str | None = None) -> np.ndarray:
    array = as_array(name or leaf.name, part)
    if array.ndim == 0 or array.shape[1:] != leaf.shape:
        shape = ", ".join(["N", *map(str, leaf.shape)])
        raise ValueError(f"{name or leaf.name} must have shape ({shape}), got {array.shape}")
    if array.dtype != leaf.dtype:
        array = _cast(array, leaf)
    return np.ascontiguousarray(array)


def _cast(array: np.ndarray, leaf: Leaf) -> np.ndarray:
    floats = array.dtype.kind == "f" and leaf.dtype.kind == "f"
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{leaf.name} must hold numbers of {leaf.dtype}, got {array.dtype}")
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(leaf.dtype)
        if floats:
            exact = np.array_equal(np.isinf(cast), np.isinf(array))  # rounded, that is, but no number is lost
        else:
            exact = np.array_equal(cast, array) and np.array_equal(cast.astype(array.dtype), array)
        if not exact:
            raise ValueError(f"{leaf.name} is stored as {leaf.dtype}, which cannot hold the given {array.dtype} values")
    return cast


def _build(space: spaces.Space, arrays: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _build(part, arrays) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_build(part, arrays) for part in space)
    return next(arrays)
