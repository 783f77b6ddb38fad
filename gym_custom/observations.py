"""From the parts that a world observes to observations of its space, for one environment and for a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces


class ObservationPacker:
    """Packs the parts of ``World.observe`` into an observation space.

    The leaves of the space are filled in its own order (a Dict sorts its keys), each with as many parts as it takes:
    a part of shape (...) is one number of a leaf, a part of shape (k, ...) is k numbers.
    """

    def __init__(self, space: spaces.Space):
        self._space = space

    def single(self, parts: Sequence[Any]) -> Any:
        """One observation, of its own memory; the parts have no batch axis."""
        return _pack(self._space, iter(parts), _single_leaf)

    def batch(self, parts: Sequence[Any], num_envs: int) -> Any:
        """A batch of observations, as `gymnasium.vector.utils.batch_space` describes it; the parts are (..., N)."""
        return _pack(self._space, iter(parts), lambda space, parts: _batch_leaf(space, parts, num_envs))


def row_of(space: spaces.Space, batch: Any, row: int) -> Any:
    """The observation of one row of a batch, as the single environment gives it."""
    if isinstance(space, spaces.Dict):
        return {key: row_of(leaf, batch[key], row) for key, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(row_of(leaf, part, row) for leaf, part in zip(space, batch, strict=True))
    return batch[row] if isinstance(space, spaces.Discrete) else batch[row].copy()


def _pack(space: spaces.Space, parts: Iterator[Any], pack_leaf: Callable[[spaces.Space, Iterator[Any]], Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _pack(leaf, parts, pack_leaf) for key, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_pack(leaf, parts, pack_leaf) for leaf in space)
    return pack_leaf(space, parts)


def _single_leaf(space: spaces.Space, parts: Iterator[Any]) -> Any:
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(next(parts))
    out = np.empty(space.shape, space.dtype)
    flat, filled = out.reshape(-1), 0
    while filled < flat.size:
        part = next(parts)
        width = 1 if np.ndim(part) == 0 else len(part)
        flat[filled : filled + width] = part
        filled += width
    return out


def _batch_leaf(space: spaces.Space, parts: Iterator[Any], num_envs: int) -> np.ndarray:
    if isinstance(space, spaces.Discrete):
        return np.broadcast_to(next(parts), (num_envs,)).astype(space.dtype)
    out = np.empty((num_envs, *space.shape), space.dtype)
    flat, filled = out.reshape(num_envs, -1), 0
    while filled < flat.shape[1]:
        part = np.asarray(next(parts))
        width = 1 if part.ndim < 2 else len(part)
        flat[:, filled : filled + width] = np.broadcast_to(part, (width, num_envs)).T
        filled += width
    return out
