"""A first step of a world, before anything is built for it: what does not fit is told in a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.drivers.observations import numbers_in
from gym_custom.world import World

_MORE_DRAWS = 1_000
"""Uniforms that are enough for any rule that asks for too many."""

_TAKEN_FOR_ONE = ("truth value of an array", "arrays can be converted to")
"""From NumPy's messages where an array is branched on, given to ``float`` or ``math``, or indexes a list."""


def first_state(world: World, params: Any) -> Any:
    """An initial state, from which a step was tried.

    Args:
        world: The world.
        params: Its plain parameters.

    Raises:
        TypeError: A rule returns something else than it must, or the action space is none that drivers serve.
        ValueError: A rule asks for more uniforms than the world promises, or fills another space.
    """
    if not isinstance(world.action_space, (spaces.Discrete, spaces.Box)):
        raise TypeError(f"the action space must be a Discrete or a Box, not {world.action_space}")
    state = _drawn("initial_state", "reset_draws", lambda u: world.initial_state(np, params, u), world.reset_draws)
    if not hasattr(state, "_fields"):
        raise TypeError(f"initial_state must return the world's State, a NamedTuple, not {state!r}")
    action = np.zeros(world.action_space.shape or (), world.dtype)[()]
    moved = _drawn(
        "transition", "step_draws", lambda u: world.transition(np, params, state, action, u), world.step_draws
    )
    if not isinstance(moved, tuple) or len(moved) != len(state):
        raise TypeError(f"transition must return the world's {type(state).__name__}, not {moved!r}")
    _see(world, params, state, action, type(state)(*moved))
    return state


@contextlib.contextmanager
def over_rows() -> Iterator[None]:
    """Says what is wrong where a rule takes the values of many rows for one number.

    Raises:
        TypeError: NumPy refused to make one number, or one truth value, of an array.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if not any(words in str(error) for words in _TAKEN_FOR_ONE):
            raise
        advice = "use xp.where, &, |, xp.logical_not and xp.astype; check_world names the line"
        raise TypeError(
            f"a rule branches on, or converts, values that are many in a batch of rows: {advice}"
        ) from error


def _action(world: World) -> Any:
    """A legal action, as the rules get it."""
    space: Any = world.action_space
    if isinstance(space, spaces.Discrete):
        return np.dtype(world.dtype).type(space.start)
    return np.clip(np.zeros(space.shape), space.low, space.high).astype(world.dtype)


def _see(world: World, params: Any, state: Any, action: Any, next_state: Any) -> None:
    earned = world.outcome(np, params, state, action, next_state)
    if not isinstance(earned, tuple) or len(earned) != 2:
        raise TypeError(f"outcome must return two values, reward and terminated, not {earned!r}")
    parts = world.observe(np, params, next_state)
    if not isinstance(parts, (tuple, list)):
        raise TypeError(f"observe must return a tuple of parts, not {parts!r}")
    sizes, wanted = [int(np.size(part)) for part in parts], numbers_in(world.observation_space)
    if sum(sizes) != wanted:
        found = f"parts of sizes {sizes} do not fill {world.observation_space}"
        raise ValueError(f"observe: {found}, which takes {wanted} numbers")
    infos = {} if world.info is None else world.info(np, params, next_state)
    if not isinstance(infos, dict):
        raise TypeError(f"info must return a dict, not {infos!r}")
    if unknown := [key for key in world.labels if key not in infos]:
        raise ValueError(f"labels are for entries of info; it has no {unknown[0]!r}, only {list(infos)}")


def _drawn(role: str, promise: str, rule: Callable[[Any], Any], count: int) -> Any:
    """What a rule makes of so many uniforms."""
    try:
        return rule(np.full(count, 0.5) if count or promise == "reset_draws" else None)
    except (IndexError, TypeError) as error:
        try:
            rule(np.full(count + _MORE_DRAWS, 0.5))
        except Exception:  # whatever is wrong, more numbers do not mend it
            raise error from None
        raise ValueError(f"{role} asks for more uniforms than the world's {promise}={count} promises") from None
