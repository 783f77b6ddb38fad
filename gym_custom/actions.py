"""Legal actions: what callers may hand over, and what the rules get."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


def legal_action(space: spaces.Space, action: Any) -> Any:
    """One action, checked.

    Args:
        space: A `Discrete` or a `Box`.
        action: Any integer (also an array of one), or an array of the box's shape.

    Returns:
        An int, or an array of the box's shape.

    Raises:
        TypeError: It is no number of the right kind.
        ValueError: It has another shape, or is outside the space.
    """
    if isinstance(space, spaces.Discrete):
        return _legal_index(space, action)
    return _legal_point(space, action)


def legal_actions(space: spaces.Space, actions: Any, num_envs: int) -> np.ndarray:
    """A batch of actions, checked: integers of shape (num_envs,), or an array of shape (num_envs, *box.shape).

    Raises:
        TypeError: They are no numbers of the right kind.
        ValueError: They have another shape, or one is outside the space.
    """
    found = np.asarray(actions)
    shape = (num_envs,) if isinstance(space, spaces.Discrete) else (num_envs, *space.shape)
    kinds = "iu" if isinstance(space, spaces.Discrete) else "fiu"
    if found.dtype.kind not in kinds:
        raise TypeError(f"actions must be {_describe(space)} in an array of shape {shape}, not {actions!r}")
    if found.shape != shape:
        raise ValueError(f"actions must have shape {shape}, not {found.shape}")
    if isinstance(space, spaces.Discrete):
        legal = (found >= space.start) & (found < space.start + space.n)
    else:
        legal = ((found >= space.low) & (found <= space.high)).reshape(num_envs, -1).all(axis=1)
    if not legal.all():
        row = int(np.argmin(legal))
        raise ValueError(f"action {found[row]!r} of row {row} is not legal: it must be {_describe(space)}")
    return found


def _legal_index(space: spaces.Discrete, action: Any) -> int:
    if type(action) is not int:
        found = np.asarray(action)
        if found.dtype.kind not in "iu" and not isinstance(action, bool):
            raise TypeError(f"action {action!r} is not legal: it must be {_describe(space)}")
        if found.size != 1:
            raise ValueError(f"action {action!r} is not legal: it must be one number, {_describe(space)}")
        action = int(found.item())
    if not space.start <= action < space.start + space.n:
        raise ValueError(f"action {action!r} is not legal: it must be {_describe(space)}")
    return action


def _legal_point(space: spaces.Space, action: Any) -> np.ndarray:
    found = np.asarray(action)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"action {action!r} is not legal: it must be {_describe(space)}")
    if found.shape != space.shape or not bool(((found >= space.low) & (found <= space.high)).all()):
        raise ValueError(f"action {action!r} is not legal: it must be {_describe(space)}")
    return found


def _describe(space: spaces.Space) -> str:
    if isinstance(space, spaces.Discrete):
        return f"an integer from {space.start} to {space.start + space.n - 1}"
    return f"numbers of shape {space.shape} from {space.low.tolist()} to {space.high.tolist()}"
