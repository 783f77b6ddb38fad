"""Checks of arguments, each with one clear sentence for whoever called."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_FLOAT, _INTEGER, BITS = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.uint64)
LIMIT = 2**63
"""Integers from here on have no place in int64."""


def as_array(name: str, values: Any) -> np.ndarray:
    """``values`` as an array; ValueError where they have no common shape."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, got parts of different shapes") from error


def as_numbers(name: str, values: Any) -> np.ndarray:
    """``values`` as an array of real numbers, else ValueError."""
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    return array


def check_integer(name: str, value: Any, least: int = -LIMIT) -> int:
    """``value`` as an int, where it is a whole number (``1e4`` is one) in [least, 2**63); else ValueError."""
    if type(value) is int and least <= value < LIMIT:
        return value
    try:
        whole = int(value)
        good = whole == value and least <= whole < LIMIT and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        bound = "of 64 bits" if least == -LIMIT or _is_huge(value) else f"of at least {least}"
        raise ValueError(f"{name} must be an integer {bound}, got {value!r}")
    return whole


def _is_huge(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= LIMIT


def check_fraction(name: str, value: Any) -> float:
    """``value`` as a float, where it lies in [0, 1]; else ValueError."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return float(value)


def check_epsilon(name: str, value: Any) -> float:
    """``value`` as a float, where it is finite and not negative; else ValueError."""
    if not _is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(value)


def _is_number(value: Any) -> bool:
    """Whether it is one real number, and no truth value."""
    return isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """``value``, where it is one of ``choices``; else ValueError."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_priorities(name: str, values: Any, num_rows: int, largest: float = np.inf) -> np.ndarray:
    """Priorities as float64 (num_rows,) in [0, largest), else ValueError that names the first bad row."""
    if type(values) is not np.ndarray or values.dtype is not _FLOAT:
        values = as_numbers(name, values).astype(np.float64)
    if values.shape != (num_rows,):
        raise ValueError(f"{name} must have shape ({num_rows},), one for each row, got {values.shape}")
    bits = values.view(BITS)
    if num_rows and bits.item(bits.argmax()) >= bits_of(largest):
        good = (values >= 0) & (values < largest)
        if good.all():  # just a negative zero
            return values
        row = int(np.argmin(good))
        what = "finite and not negative" if not 0 <= values[row] < np.inf else f"less than {largest:.3g}"
        raise ValueError(f"{name} must be {what}, got {values[row]} at index {row}")
    return values


def largest_bits(values: np.ndarray) -> int:
    """The largest of the bit patterns of float64 values (k,), at least one, as unsigned numbers.

    One pass tells what else takes several: patterns of negative, infinite and NaN floats are larger than those of all
    others, which are in the order of the numbers. Only a negative zero looks bad and is none.
    """
    bits = values.view(BITS)
    return bits.item(bits.argmax())


@functools.lru_cache(maxsize=64)
def bits_of(value: float) -> int:
    """The bit pattern of a float64 as an unsigned number."""
    return int(np.float64(value).view(BITS))


def check_ids(ids: Any) -> np.ndarray:
    """Ids as int64 (k,), else TypeError or ValueError."""
    if type(ids) is np.ndarray and ids.dtype is _INTEGER and ids.ndim == 1:
        return ids
    ids = as_array("ids", ids)
    if ids.dtype.kind not in "iu" and ids.size:
        raise TypeError(f"ids must be integers, got {ids.dtype}")
    if ids.ndim != 1:
        raise ValueError(f"ids must have shape (k,), got {ids.shape}")
    return ids.astype(np.int64)
