"""What callers may ask of a batch: how many rows, which seeds, which rows to reset, and with what options."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import Error
from gymnasium.vector import AutoresetMode

MOST_ROWS = 1 << 24
"""Rows of a batch; each has a generator and a state of its own."""


def legal_seeds(seed: Any, num_envs: int) -> list[int | None]:
    """One seed a row.

    Args:
        seed: None for no seeds; an integer for ``seed + row``; or one a row, each an integer or None.
        num_envs: Number of rows.

    Raises:
        gymnasium.error.Error: A seed is no integer, or negative.
        ValueError: There is not one a row.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return list(range(_legal_seed(seed), int(seed) + num_envs))
    if np.ndim(seed) != 1 if isinstance(seed, np.ndarray) else not isinstance(seed, (list, tuple, range)):
        raise Error(f"seed must be an integer, None, or a list of them, one a row, not {seed!r}")
    if len(seed) != num_envs:
        raise ValueError(f"seeds must be one a row, {num_envs}, not {len(seed)}")
    return [None if one is None else _legal_seed(one) for one in seed]


def _legal_seed(seed: Any) -> int:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise Error(f"seed must be an integer or None, not {seed!r}")
    if seed < 0:
        raise Error(f"seed must be at least 0, not {seed}")
    return int(seed)


def legal_options(options: Any) -> dict[str, Any]:
    """The options of a reset as a dict of one's own.

    Raises:
        TypeError: They are no dict.
    """
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options must be a dict or None, not {options!r}")
    return dict(options or {})


def legal_rows(mask: Any, num_envs: int) -> np.ndarray:
    """The rows of a reset mask; without one, all.

    Raises:
        TypeError: It is no array of booleans.
        ValueError: It has another shape, or no row is chosen.
    """
    if mask is None:
        return np.arange(num_envs)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a NumPy array of booleans, not {mask!r}")
    if mask.shape != (num_envs,):
        raise ValueError(f"options['reset_mask'] must have shape ({num_envs},), not {mask.shape}")
    if not mask.any():
        raise ValueError("options['reset_mask'] must choose at least one row")
    return np.flatnonzero(mask)


def legal_autoreset_mode(mode: Any) -> AutoresetMode:
    """The mode, given as such or as its value.

    Raises:
        ValueError: It is neither.
    """
    try:
        return AutoresetMode(mode)
    except ValueError:
        legal = ", ".join(repr(one.value) for one in AutoresetMode)
        raise ValueError(f"autoreset_mode must be one of {legal}, not {mode!r}") from None


def legal_count(name: str, value: Any, most: int | None = None) -> int:
    """A positive integer.

    Raises:
        TypeError: It is no integer.
        ValueError: It is below 1, or above the most.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most:,}, not {value}")
    return int(value)
