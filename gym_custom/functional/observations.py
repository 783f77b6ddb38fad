"""Observations in JAX, in the shape of their space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

Array = Any


def pack(space: spaces.Space, parts: Iterable[Array], rows: tuple[int, ...] = ()) -> Any:
    """Observations from their parts, in the space's own order, as ``ObservationPacker`` does in NumPy.

    Args:
        space: of one observation.
        parts: each (*rows) or (k, *rows).
        rows: axes behind the observation's own.
    """
    return _take(space, iter(parts), rows)


def _take(space: spaces.Space, parts: Iterator[Array], rows: tuple[int, ...]) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _take(leaf, parts, rows) for name, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_take(leaf, parts, rows) for leaf in space)
    assert space.shape is not None
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    missing, taken = int(np.prod(space.shape)), []
    while missing > 0:
        part = next(parts)
        taken.append((part if part.ndim > len(rows) else jnp.broadcast_to(part, rows)[None]).astype(dtype))
        missing -= len(taken[-1])
    return jnp.concatenate(taken).reshape(*space.shape, *rows)
