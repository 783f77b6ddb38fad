"""What arguments of a world may be, and one sentence in one line for what they may not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

_LONGEST = 80  # letters of a value in a sentence


class WrongType(TypeError, ValueError):
    """An argument of a type that it cannot have; a ValueError too, like every argument that makes no sense."""


def legal_number(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number from low to high.

    Raises:
        WrongType: It is no number.
        ValueError: It is not finite or out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise WrongType(f"{name} must be a number, not {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and low <= number <= high:
        return number
    legal = "finite" if (low, high) == (-math.inf, math.inf) else f"a number from {low:g} to {high:g}"
    raise ValueError(f"{name} must be {legal}, not {shown(value)}")


def legal_integer(name: str, value: Any, low: int, high: int) -> int:
    """An integer from low to high.

    Raises:
        WrongType: It is no integer.
        ValueError: It is out of bounds.
    """
    sentence = f"{name} must be an integer from {low} to {high}, not {shown(value)}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise WrongType(sentence)
    if not low <= value <= high:
        raise ValueError(sentence)
    return int(value)


def legal_flag(name: str, value: Any) -> bool:
    """True or False.

    Raises:
        WrongType: It is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise WrongType(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def legal_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of some names.

    Raises:
        ValueError: It is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}")
    return value


def shown(value: Any) -> str:
    """The value in one line that is not too long."""
    try:
        line = " ".join(repr(value).split())
    except ValueError:  # Python writes no integers of thousands of digits
        return f"an integer of {value.bit_length()} bits"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
