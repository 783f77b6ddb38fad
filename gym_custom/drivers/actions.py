"""Legal actions: what callers may hand over, and what the rules get."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

_OR = np.bitwise_or.reduce


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


class BatchActions:
    """Checks batches of actions and hands them to the rules.

    Args:
        space: A `Discrete` or a `Box`, of one row.
        num_envs: Number of rows.
    """

    def __init__(self, space: Any, num_envs: int):
        self._space = space
        self._discrete = isinstance(space, spaces.Discrete)
        if self._discrete:
            self._first, self._last = int(space.start), int(space.start + space.n - 1)
        self._shape = (num_envs, *space.shape)
        self._kinds = "iu" if self._discrete else "fiu"

    def put(self, actions: Any, out: np.ndarray) -> None:
        """Writes legal actions into ``out``.

        Args:
            actions: Integers of shape (num_envs,), or numbers of shape (num_envs, *box.shape).
            out: Of shape (num_envs,) or (*box.shape, num_envs), in any dtype.

        Raises:
            TypeError: They are no numbers of the right kind.
            ValueError: They have another shape, or one is outside the space.
        """
        if type(actions) is not np.ndarray:
            actions = _array(actions)
        if actions.shape != self._shape or actions.dtype.kind not in self._kinds:
            self._refuse(actions)
        if not self._discrete:
            self._put_points(actions, out)
            return
        # the bits of all actions together exceed each of them, and are negative if one is: often one look is enough
        if self._first != 0 or not 0 <= int(_OR(actions)) <= self._last:
            legal = (actions >= self._first) & (actions <= self._last)
            if not legal.all():
                self._refuse_rows(legal, actions)
        out[...] = actions

    def _put_points(self, actions: np.ndarray, out: np.ndarray) -> None:
        legal = (actions >= self._space.low) & (actions <= self._space.high)
        if not legal.all():
            self._refuse_rows(legal.reshape(len(legal), -1).all(axis=1), actions)
        np.copyto(out, np.moveaxis(actions, 0, -1), casting="unsafe")

    def _refuse(self, actions: np.ndarray) -> None:
        wanted = f"actions must be {_describe(self._space)}, in an array of shape {self._shape}"
        if actions.dtype.kind not in self._kinds:
            raise TypeError(f"{wanted}, not {actions.tolist()!r} of dtype {actions.dtype}")
        raise ValueError(f"{wanted}, not of shape {actions.shape}")

    def _refuse_rows(self, legal: np.ndarray, actions: np.ndarray) -> None:
        row = int(np.argmin(legal))
        action = actions[row].tolist()
        raise ValueError(f"action {action!r} of row {row} is not legal: it must be {_describe(self._space)}")


def _legal_index(space: spaces.Discrete, action: Any) -> int:
    if type(action) is not int:
        found = _array(action)
        if found.dtype.kind not in "iu" and not isinstance(action, bool):
            raise TypeError(f"action {action!r} is not legal: it must be {_describe(space)}")
        if found.size != 1:
            raise ValueError(f"action {action!r} is not legal: it must be one number, {_describe(space)}")
        action = int(found.item())
    if not space.start <= action < space.start + space.n:
        raise ValueError(f"action {action!r} is not legal: it must be {_describe(space)}")
    return action


def _legal_point(space: Any, action: Any) -> np.ndarray:
    found = _array(action)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"action {action!r} is not legal: it must be {_describe(space)}")
    if found.shape != space.shape or not bool(((found >= space.low) & (found <= space.high)).all()):
        raise ValueError(f"action {action!r} is not legal: it must be {_describe(space)}")
    return found


def _array(action: Any) -> np.ndarray:
    """The action as an array; what has no shape, such as lists of unequal lengths, as an array of one object."""
    try:
        return np.asarray(action)
    except ValueError:
        found = np.empty((), object)
        found[()] = action
        return found


def _describe(space: Any) -> str:
    if isinstance(space, spaces.Discrete):
        return f"an integer from {space.start} to {space.start + space.n - 1}"
    return f"numbers of shape {space.shape} from {space.low.tolist()} to {space.high.tolist()}"
