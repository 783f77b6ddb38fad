"""The rules of a world for one environment: compiled to a function of plain numbers where possible, else called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gym_custom.program import record
from gym_custom.scalar_math import scalar_namespace
from gym_custom.state_layout import StateLayout
from gym_custom.world import World, plain_params, recordable_params

Leaves = tuple[Any, ...]
"""A state without its names."""


class SingleRules(NamedTuple):
    """The rules as functions of bare tuples.

    Attributes:
        kind: The world's State.
        params: The parameters as the rules and the pictures want them.
        scalar: Whether all values are Python numbers.
        begin: ``(u, options) -> leaves``.
        step: ``(leaves, action, u) -> (leaves, reward, terminated, parts, infos)``, where infos are bare values.
        look: ``(leaves) -> (parts, infos)``.
        keys: Names of the infos.
    """

    kind: Callable[..., Any]
    params: Any
    scalar: bool
    begin: Callable[..., Leaves]
    step: Callable[..., tuple[Leaves, Any, Any, Sequence[Any], Sequence[Any]]]
    look: Callable[[Leaves], tuple[Sequence[Any], Sequence[Any]]]
    keys: tuple[str, ...]


def single_rules(world: World) -> SingleRules:
    """The fastest form of the rules for one environment of this world."""
    layout = StateLayout(world, plain_params(world.params))
    scalar = world.scalar and np.dtype(world.dtype) != np.float32
    rules = _called(world, layout, scalar)
    return (_compiled(world, layout, rules) or rules) if scalar else rules


def _called(world: World, layout: StateLayout, scalar: bool) -> SingleRules:
    """The rules as they are, on Python numbers or on NumPy arrays without a batch axis."""
    xp = scalar_namespace() if scalar else np
    params = plain_params(world.params, python_numbers if scalar else lambda value: value)
    kind, dtypes = layout.kind, layout.dtypes

    def settled(state: Any) -> Leaves:
        if scalar:
            return tuple(state)
        return tuple(
            leaf if getattr(leaf, "dtype", None) == dtype else np.asarray(leaf).astype(dtype)[()]
            for leaf, dtype in zip(state, dtypes, strict=True)
        )

    def begin(u: Any, options: dict[str, Any] | None) -> Leaves:
        if options and world.reset_with is not None:
            return settled(world.reset_with(xp, params, u, options))
        return settled(world.initial_state(xp, params, u))

    def look(leaves: Leaves) -> tuple[Sequence[Any], Sequence[Any]]:
        state = kind(*leaves)
        infos = () if world.info is None else tuple(world.info(xp, params, state).values())
        return world.observe(xp, params, state), infos

    def step(leaves: Leaves, action: Any, u: Any) -> Any:
        state = kind(*leaves)
        leaves = settled(world.transition(xp, params, state, action, u))
        reward, terminated = world.outcome(xp, params, state, action, kind(*leaves))
        return leaves, reward, terminated, *look(leaves)

    info = {} if world.info is None else world.info(xp, params, kind(*begin(_example(world, scalar), None)))
    return SingleRules(kind, params, scalar, begin, step, look, tuple(info))


def _compiled(world: World, layout: StateLayout, rules: SingleRules) -> SingleRules | None:
    """The same rules, recorded and written out as straight Python, or None where the step cannot be recorded."""
    if not layout.flat or world.action_space.shape != ():
        return None
    params, leaves = recordable_params(world.params), len(layout.dtypes)
    parts = 0

    def step_rule(xp: Any, *inputs: Any) -> Sequence[Any]:
        nonlocal parts
        moved = layout.step(world, xp, params, inputs)
        seen, infos = layout.look(world, xp, params, moved[:leaves])
        parts = len(seen)
        return (*moved, *seen, *infos.values())

    program = record(step_rule, layout.step_dtypes(world))
    if program is None:
        return None
    run = program.compile(scalar_namespace(), [leaves, None, None, parts, len(rules.keys)])
    if world.step_draws:
        return rules._replace(step=lambda leaves, action, u: run(*leaves, action, *u))
    return rules._replace(step=lambda leaves, action, u: run(*leaves, action))


def _example(world: World, scalar: bool) -> Any:
    return [0.5] * world.reset_draws if scalar else np.full(world.reset_draws, 0.5)


def python_numbers(value: Any) -> Any:
    """A number or table of NumPy as Python numbers."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
