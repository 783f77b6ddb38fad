"""The rules of a world for one environment: compiled to a function of plain numbers where possible, else called."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom.plain_python import compiled
from gym_custom.program import Program, Scratch, record
from gym_custom.recording import Symbol
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
    recorded = _recorded(world, layout, scalar)
    if recorded is None or scalar:
        return _compiled(world, recorded, rules) if recorded is not None and recorded.step.flat else rules
    replay = _Replay(world, layout, recorded)
    return rules._replace(step=replay.step, look=replay.look)


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


class _Recorded(NamedTuple):
    """Recordings for one environment; each program's outputs end with parts and infos."""

    step: Program
    look: Program
    parts: int


def _recorded(world: World, layout: StateLayout, scalar: bool) -> _Recorded | None:
    """The step, with what is seen after it, and the look alone, or None where they cannot be recorded."""
    params, leaves = recordable_params(world.params), len(layout.dtypes)
    parts = 0

    def look(xp: Any, *inputs: Any) -> Sequence[Any]:
        nonlocal parts
        seen, infos = layout.look(world, xp, params, inputs)
        parts = len(seen)
        return (*seen, *infos.values())

    def step(xp: Any, *inputs: Any) -> Sequence[Any]:
        u = inputs[leaves + 1 :] if scalar else inputs[-1]
        moved = layout.step(world, xp, params, inputs[:leaves], inputs[leaves], u if world.step_draws else None)
        return (*moved, *look(xp, *moved[:leaves]))

    action = (np.dtype(world.dtype), world.action_space.shape or ())
    draws = [np.float64] * world.step_draws if scalar else [(np.dtype(np.float64), (world.step_draws,))]
    recorded_step = record(step, [*layout.specs(), action, *draws])
    recorded_look = record(look, layout.specs())
    return _Recorded(recorded_step, recorded_look, parts) if recorded_step and recorded_look else None


def _compiled(world: World, recorded: _Recorded, rules: SingleRules) -> SingleRules:
    """The same rules, written out as straight Python."""
    leaves = len(recorded.look.inputs)
    run = compiled(recorded.step, scalar_namespace(), [leaves, None, None, recorded.parts, len(rules.keys)])
    if world.step_draws:
        return rules._replace(step=lambda leaves, action, u: run(*leaves, action, *u))
    return rules._replace(step=lambda leaves, action, u: run(*leaves, action))


class _Replay:
    """Recorded rules of arrays for one environment.

    The state stands in one of two sets of buffers, and a step goes from the one to the other. A State that the caller
    hands over and that is not there is copied there first.
    """

    def __init__(self, world: World, layout: StateLayout, recorded: _Recorded):
        self._draws = world.step_draws
        self._action = np.zeros(world.action_space.shape or (), world.dtype)
        self._u = np.zeros(world.step_draws)
        self._reward, self._terminated = np.zeros(()), np.zeros((), np.bool_)
        step, look = recorded.step, recorded.look
        one_leaf = isinstance(world.observation_space, (spaces.Box, spaces.MultiDiscrete))
        self._parts, seen = _buffers(look.outputs[: recorded.parts], one_leaf)
        self._infos = [np.zeros((), _dtype(output)) for output in look.outputs[recorded.parts :]]
        seen = [*seen, *self._infos]
        here = [np.zeros(shape, dtype) for dtype, shape in layout.specs()]
        there = [  # what no step changes stands in the same memory
            leaf if output is symbol else np.zeros_like(leaf)
            for leaf, symbol, output in zip(here, step.inputs, step.outputs, strict=False)
        ]
        self._here, self._there = tuple(here), tuple(there)
        given, earned, scratch = [self._action, self._u], [self._reward, self._terminated], Scratch()
        self._step = step.bind([*here, *given], [*there, *earned, *seen], scratch)
        self._step_back = step.bind([*there, *given], [*here, *earned, *seen], scratch)
        self._look = look.bind(here, seen, scratch)
        self._look_back = look.bind(there, seen, scratch)

    def _bring(self, leaves: Leaves) -> None:
        if leaves is not self._here:
            for mine, leaf in zip(self._here, leaves, strict=True):
                mine[...] = leaf

    def step(self, leaves: Leaves, action: Any, u: Any) -> Any:
        """One step."""
        self._bring(leaves)
        self._action[...] = action
        if self._draws:
            self._u[...] = u
        for function, operands in self._step:
            function(*operands)
        self._here, self._there = self._there, self._here
        self._step, self._step_back = self._step_back, self._step
        self._look, self._look_back = self._look_back, self._look
        return self._here, self._reward, self._terminated, self._parts, self._infos

    def look(self, leaves: Leaves) -> Any:
        """What there is to see."""
        self._bring(leaves)
        for function, operands in self._look:
            function(*operands)
        return self._parts, self._infos


def _buffers(parts: Sequence[Any], one_leaf: bool) -> tuple[Any, list[np.ndarray]]:
    """The parts, as one vector where they make one leaf and have one dtype, and an array for each."""
    dtypes = {_dtype(part) for part in parts}
    shapes = [part.shape if isinstance(part, Symbol) else np.shape(part) for part in parts]
    if len(dtypes) > 1 or not one_leaf:
        arrays = [np.zeros(shape, _dtype(part)) for part, shape in zip(parts, shapes, strict=True)]
        return arrays, arrays
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    vector = np.zeros(ends[-1], dtypes.pop())
    arrays = [vector[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]
    return vector, arrays


def _dtype(value: Any) -> np.dtype:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _example(world: World, scalar: bool) -> Any:
    return [0.5] * world.reset_draws if scalar else np.full(world.reset_draws, 0.5)


def python_numbers(value: Any) -> Any:
    """A number or table of NumPy as Python numbers."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
