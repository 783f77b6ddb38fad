"""From the parts that a world observes to observations of its space, for one environment and for a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_empty_array


class ObservationPacker:
    """Packs the parts of ``World.observe`` into an observation space.

    The leaves of the space are filled in its own order (a Dict sorts its keys), each with as many parts as it takes:
    a part of shape (...) is one number of a leaf, a part of shape (k, ...) is k numbers.
    """

    def __init__(self, space: Any):
        self._space = space
        self._dtype, self._ndim = space.dtype, len(space.shape or ())
        self._plain: bool | None = None  # whether parts are the numbers of the only leaf; known once they were seen
        leaf = isinstance(space, (spaces.Box, spaces.MultiDiscrete))
        self._one_leaf = int(np.prod(space.shape or ())) if leaf else 0  # its numbers, where the space has but one leaf

    def single(self, parts: Sequence[Any]) -> Any:
        """One observation, of its own memory; the parts have no batch axis."""
        if isinstance(parts, np.ndarray):  # all numbers of the only leaf
            observation = parts.astype(self._dtype)
            return observation if self._ndim == 1 else observation.reshape(self._space.shape)
        if self._plain is None:
            self._plain = len(parts) == self._one_leaf and not any(map(np.ndim, parts))
        if self._plain:
            observation = np.array(parts, self._dtype)
            return observation if observation.ndim == self._ndim else observation.reshape(self._space.shape)
        return _single(self._space, iter(parts))

    def fill(self, out: Any, rows: slice, parts: Any, num_envs: int) -> Any:
        """Writes rows of a batch of observations, as `gymnasium.vector.utils.batch_space` describes it.

        Args:
            out: The batch, or None to begin one.
            rows: Which rows.
            parts: Theirs, each (n,) or (k, n), in a list or as the rows of one matrix.
            num_envs: Rows of the batch.

        Returns:
            The batch.
        """
        if self._one_leaf and isinstance(parts, np.ndarray) and parts.shape == (self._one_leaf, num_envs):
            batch = parts.T.astype(self._dtype)  # in Fortran's order, which takes a quarter of the time
            return batch if self._ndim == 1 else batch.reshape(num_envs, *self._space.shape)
        if out is None:
            out = create_empty_array(self._space, num_envs, fn=np.empty)
        _fill(self._space, iter(parts), out, rows)
        return out


def numbers_in(space: Any) -> int:
    """How many numbers an observation of a space holds."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return sum(map(numbers_in, space.values() if isinstance(space, spaces.Dict) else space))
    return int(np.prod(space.shape or ()))


def row_of(space: spaces.Space, batch: Any, row: int) -> Any:
    """The observation of one row of a batch, as the single environment gives it."""
    if isinstance(space, spaces.Dict):
        return {key: row_of(leaf, batch[key], row) for key, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(row_of(leaf, part, row) for leaf, part in zip(space, batch, strict=True))
    return batch[row] if isinstance(space, spaces.Discrete) else batch[row].copy()


def _single(space: Any, parts: Iterator[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _single(leaf, parts) for key, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_single(leaf, parts) for leaf in space)
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(next(parts))
    out = np.empty(space.shape, space.dtype)
    flat, filled = out.reshape(-1), 0
    while filled < len(flat):
        part = next(parts)
        width = 1 if np.ndim(part) == 0 else len(part)
        flat[filled : filled + width] = part
        filled += width
    return out


def _fill(space: Any, parts: Iterator[Any], out: Any, rows: slice) -> None:
    if isinstance(space, spaces.Dict):
        for key, leaf in space.items():
            _fill(leaf, parts, out[key], rows)
    elif isinstance(space, spaces.Tuple):
        for leaf, array in zip(space, out, strict=True):
            _fill(leaf, parts, array, rows)
    elif isinstance(space, spaces.Discrete):
        out[rows] = next(parts)
    else:
        flat, filled = out.reshape(len(out), -1)[rows], 0
        while filled < flat.shape[1]:
            part = np.asarray(next(parts))
            width = 1 if part.ndim < 2 else len(part)
            flat[:, filled : filled + width] = part.T if part.ndim == 2 else part[..., None]
            filled += width
