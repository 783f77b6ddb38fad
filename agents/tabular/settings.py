"""What settings of Q-learning may be, and one sentence for what they may not."""

from __future__ import annotations

from typing import Any

import numpy as np


def legal_count(name: str, value: Any) -> int:
    """A positive integer below 2**31.

    Raises:
        TypeError: it is no integer.
        ValueError: it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a positive integer, got {value!r}")
    if not 1 <= value < 2**31:
        raise ValueError(f"{name} must be positive and below 2**31, got {value}")
    return int(value)


def check_settings(learning_rate: Any, discount: float, epsilon: Any, num_agents: int) -> None:
    """Refuse settings outside their range.

    Raises:
        TypeError: a setting is no number.
        ValueError: naming the value and what is legal.
    """
    if isinstance(learning_rate, str) and learning_rate != "visits":
        raise ValueError(f"learning_rate must be a number, an array over agents or 'visits', got {learning_rate!r}")
    named = {"discount": discount, "epsilon": epsilon}
    if not isinstance(learning_rate, str):
        named["learning_rate"] = learning_rate
    for name, value in named.items():
        try:
            numbers = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number or numbers in [0, 1], got {value!r}") from None
        if not np.all((numbers >= 0) & (numbers <= 1)):
            raise ValueError(f"{name} must lie in [0, 1], got {value}")
        shapes = ((),) if name == "discount" else ((), (num_agents,))
        if numbers.shape not in shapes:
            raise ValueError(f"{name} must be a number or one per agent ({num_agents},), got shape {numbers.shape}")
