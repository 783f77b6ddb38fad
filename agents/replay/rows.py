"""Batches of rows as they come in: checked against the spaces, ready to be stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.replay.checks import float_bits, largest_bits
from agents.replay.spaces import Layout
from agents.types import Experience, Transition

COLUMNS: dict[type, dict[str, type]] = {
    Experience: {"reward": np.float64, "terminated": np.bool_, "truncated": np.bool_},
    Transition: {"reward": np.float64, "discount": np.float64},
}
"""What each kind of row holds between action and next_obs."""


class Rows(NamedTuple):
    """A checked batch."""

    kind: type
    obs: list[np.ndarray]
    action: list[np.ndarray]
    columns: list[np.ndarray]  # in the order of COLUMNS
    next_obs: list[np.ndarray]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0])

    def since(self, start: int) -> Rows:
        """The rows from ``start`` on."""
        parts = [[array[start:] for array in arrays] for arrays in self[1:]]
        return Rows(self.kind, *parts)


def row_dtype(kind: type, action_layout: Layout) -> np.dtype:
    """One row but for its observations, as a record: so that a row drawn at random costs one place in memory."""
    actions = [(f"action.{place}", leaf.dtype, leaf.shape) for place, leaf in enumerate(action_layout.leaves)]
    return np.dtype([("next", np.int64), *COLUMNS[kind].items(), *actions], align=True)


def check_rows(rows: Any, obs_layout: Layout, action_layout: Layout) -> Rows:
    """The arrays of a record, if it fits the spaces.

    Raises:
        TypeError: If it is no Experience or Transition.
        ValueError: If a shape, dtype or value does not fit.
    """
    kind = type(rows)
    if kind not in COLUMNS:
        raise TypeError(f"rows must be an Experience or a Transition, got {kind.__name__}")
    obs, next_obs = obs_layout.flatten(rows.obs), obs_layout.flatten(rows.next_obs, "next_obs")
    action = action_layout.flatten(rows.action)
    columns = [_column(name, getattr(rows, name), dtype) for name, dtype in COLUMNS[kind].items()]
    counts = [len(array) for array in (obs[0], action[0], next_obs[0], *columns)]
    if counts.count(counts[0]) != len(counts):
        names = ("obs", "action", "next_obs", *COLUMNS[kind])
        name, count = next(pair for pair in zip(names, counts, strict=True) if pair[1] != counts[0])
        raise ValueError(f"{name} has {count} rows, obs has {counts[0]}")
    return Rows(kind, obs, action, columns, next_obs)


def _column(name: str, values: Any, dtype: type) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    if array.dtype.kind not in ("b" if dtype is np.bool_ else "biuf"):
        raise ValueError(f"{name} must hold {np.dtype(dtype)} values, got {array.dtype}")
    array = array.astype(dtype, copy=False)
    if name == "discount" and largest_bits(array) > float_bits(1.0):
        good = (array >= 0) & (array <= 1)
        if not good.all():  # not just a negative zero
            raise ValueError(f"discount must lie in [0, 1], got {array[~good][0]}")
    return array
