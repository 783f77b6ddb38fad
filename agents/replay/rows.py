"""Batches of rows as they come in: checked against the spaces, ready to be stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.replay.checks import as_array, bits_of, largest_bits
from agents.replay.spaces import Layout
from agents.types import Experience, Transition

_FLOAT, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
COLUMNS: dict[type, dict[str, np.dtype]] = {
    Experience: {"reward": _FLOAT, "terminated": _BOOL, "truncated": _BOOL},
    Transition: {"reward": _FLOAT, "discount": _FLOAT},
}
"""What each kind of row holds between action and next_obs."""
_BITS_OF_ONE = bits_of(1.0)


class Rows(NamedTuple):
    """A checked batch."""

    kind: type
    num_rows: int
    obs: list[np.ndarray]
    next_obs: list[np.ndarray]
    others: list[np.ndarray]  # actions and columns, as the Ring's

    def since(self, start: int) -> Rows:
        """The rows from ``start`` on."""
        parts = ([array[start:] for array in arrays] for arrays in self[2:])
        return Rows(self.kind, self.num_rows - start, *parts)


def row_dtype(kind: type, action_layout: Layout) -> np.dtype:
    """One row but for its observations, as a record: so that a row drawn at random costs one place in memory."""
    actions = [(f"action.{place}", leaf.dtype, leaf.shape) for place, leaf in enumerate(action_layout.leaves)]
    return np.dtype([("next", np.int64), *COLUMNS[kind].items(), *actions], align=True)


Fields = list[tuple[np.dtype, tuple[int, ...]]]
"""Dtype and shape of one row of each field of a record, for spaces that are no Dict or Tuple."""


def plain_fields(obs_layout: Layout, action_layout: Layout) -> dict[type, Fields]:
    """The fields of each kind of row, if the spaces are plain."""
    if not (obs_layout.plain and action_layout.plain):
        return {}
    (obs,), (action,) = ([(leaf.dtype, leaf.shape) for leaf in layout.leaves] for layout in (obs_layout, action_layout))
    return {kind: [obs, action, *((dtype, ()) for dtype in COLUMNS[kind].values()), obs] for kind in COLUMNS}


def check_rows(rows: Any, obs_layout: Layout, action_layout: Layout, plain: dict[type, Fields]) -> Rows:
    """The arrays of a record, if it fits the spaces, whose ``plain_fields`` are given.

    Raises:
        TypeError: If it is no Experience or Transition.
        ValueError: If a shape, dtype or value does not fit.
    """
    kind = type(rows)
    if kind not in COLUMNS:
        raise TypeError(f"rows must be an Experience or a Transition, got {kind.__name__}")
    if kind in plain and _as_stored(rows, plain[kind]):
        checked = Rows(kind, len(rows[0]), [rows[0]], [rows[-1]], [*rows[1:-1]])
    else:
        checked = _converted(rows, obs_layout, action_layout)
    if kind is Transition:
        check_discount("discount", checked.others[-1])
    return checked


def _as_stored(rows: Any, fields: Fields) -> bool:
    """Whether all fields are arrays of the very dtypes and shapes that are stored: nothing to convert or to refuse."""
    obs = rows[0]
    if type(obs) is not np.ndarray or not obs.ndim:
        return False
    num_rows = obs.shape[:1]
    for array, (dtype, shape) in zip(rows, fields, strict=True):
        if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != num_rows + shape:
            return False
    return obs.flags.c_contiguous and rows[-1].flags.c_contiguous


def _converted(rows: Any, obs_layout: Layout, action_layout: Layout) -> Rows:
    """A record of any arrays, if it fits."""
    kind = type(rows)
    obs, num_rows = obs_layout.flatten(rows.obs)
    others, num_actions = action_layout.flatten(rows.action)
    next_obs, num_next = obs_layout.flatten(rows.next_obs, "next_obs")
    if num_actions != num_rows or num_next != num_rows:
        name, count = ("action", num_actions) if num_actions != num_rows else ("next_obs", num_next)
        raise ValueError(f"{name} has {count} rows, obs has {num_rows}")
    for (name, dtype), values in zip(COLUMNS[kind].items(), rows[2:-1], strict=False):
        if type(values) is not np.ndarray or values.dtype is not dtype or values.ndim != 1:
            values = _column(name, values, dtype)
        if len(values) != num_rows:
            raise ValueError(f"{name} has {len(values)} rows, obs has {num_rows}")
        others.append(values)
    return Rows(kind, num_rows, obs, next_obs, others)


def _column(name: str, values: Any, dtype: np.dtype) -> np.ndarray:
    array = as_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got {array.shape}")
    if array.dtype.kind not in ("b" if dtype is _BOOL else "biuf"):
        raise ValueError(f"{name} must hold {dtype} values, got {array.dtype}")
    return array.astype(dtype, copy=False)


def check_discount(name: str, discount: np.ndarray) -> None:
    """Raise ValueError where a discount (N,) lies outside [0, 1]."""
    if len(discount) and largest_bits(discount) > _BITS_OF_ONE:
        good = (discount >= 0) & (discount <= 1)
        if not good.all():  # else it is just a negative zero
            raise ValueError(f"{name} must lie in [0, 1], got {discount[~good][0]}")
