"""The calls that perform what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gym_custom.recording.symbols import Call

Plan = list[tuple[Callable[..., Any], tuple[Any, ...]]]
"""Calls to be made one after the other."""


def same(a: Any, b: np.ndarray) -> bool:
    """Whether two arrays are the same memory in the same order."""
    if not isinstance(a, np.ndarray) or a.dtype != b.dtype:
        return False
    alike = a.shape == b.shape and a.strides == b.strides
    return alike and a.__array_interface__["data"] == b.__array_interface__["data"]


def _where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def put(out: np.ndarray, a: np.ndarray, condition: np.ndarray) -> None:
    """Overwrites where the condition holds."""
    np.copyto(out, a, where=condition)


def copied(x: np.ndarray, out: np.ndarray) -> None:
    """Copies whatever the dtypes."""
    np.copyto(out, x, casting="unsafe")


def called(call: Call, *arrays: np.ndarray) -> None:
    """Calls a function of all arrays but the last, which gets what it returns."""
    arrays[-1][...] = call(*arrays[:-1])


def _take(table: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    table.take(index, out=out, mode="wrap")


def largest(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``numpy.maximum``."""
    np.maximum(a, b, out=out)  # as a third positional argument NumPy 2.4 would warn


def least(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``numpy.minimum``."""
    np.minimum(a, b, out=out)


SPECIAL: dict[str, Callable[..., None]] = {
    "where": _where,
    "astype": copied,
    "take": _take,
    "maximum": largest,
    "minimum": least,
}
