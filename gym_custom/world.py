"""What a world must provide, once, so that the drivers can make every kind of environment of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

Array = Any
"""A float, a NumPy array or a JAX array: the rules do not care."""


class Outcome(NamedTuple):
    """What one step earned."""

    reward: Array  # (...)
    terminated: Array  # (...), bool


@dataclass(frozen=True)
class World:
    """The rules of one world: pure functions over an array namespace ``xp``, and their settings.

    States are ``NamedTuple`` records whose leaves have the batch as last axis, ``(..., N)``, or no batch at all.
    All randomness enters through ``u``, uniforms in [0, 1) with the draws as first axis, ``(draws, ...)``.
    """

    params: Any
    """NamedTuple of numbers and flat tables; nothing that selects code or shapes."""
    initial_state: Callable[..., Any]
    """``(xp, params, u) -> State``, u of shape (reset_draws, ...)."""
    transition: Callable[..., Any]
    """``(xp, params, state, action, u) -> State``, u of shape (step_draws, ...) or None."""
    outcome: Callable[..., tuple[Array, Array]]
    """``(xp, params, state, action, next_state) -> (reward, terminated)``."""
    observe: Callable[..., tuple[Array, ...]]
    """``(xp, params, state) -> parts``, each (...) or (k, ...); the driver packs them into the space."""
    action_space: spaces.Space
    observation_space: spaces.Space
    reset_draws: int
    step_draws: int = 0
    """Uniforms a step takes as configured: the NumPy drivers draw exactly these."""
    max_step_draws: int | None = None
    """Uniforms a step takes at most; JAX always draws these, since a parameter such as slip may be traced."""
    info: Callable[..., dict[str, Array]] | None = None
    """``(xp, params, state) -> dict`` of numbers; the same keys at reset and at every step."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names for an info entry that is an index, such as ``{"outcome": ("running", "success")}``."""
    reset_with: Callable[..., Any] | None = None
    """``(xp, params, u, options) -> State`` for the NumPy drivers; consumes exactly reset_draws."""
    draw: Callable[..., None] | None = None
    """``(canvas, params, state) -> None``: one picture of one state without batch axis."""
    ansi: Callable[..., str] | None = None
    """``(params, state) -> str``: the same as text."""
    scalar: bool = False
    """Every leaf is (...): the single env runs on Python floats."""
    dtype: Any = np.float64
    """Of the float leaves; a Discrete action arrives in it (in a table world: int)."""
