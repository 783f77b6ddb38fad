"""The rules of a world for one environment: compiled to a function of plain numbers where possible, else called."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom.drivers.scalar_math import scalar_namespace
from gym_custom.drivers.state_layout import StateLayout
from gym_custom.recording.binding import Scratch
from gym_custom.recording.plain_python import compiled, is_number
from gym_custom.recording.program import Program, record
from gym_custom.recording.symbols import Symbol
from gym_custom.world import World, plain_params, recordable_params

Leaves = tuple[Any, ...]
"""A state without its names."""


class SingleRules(NamedTuple):
    """The rules as functions of bare tuples.

    Attributes:
        checked: ``(state) -> parts`` refuses what is no state of the world.
        named: ``(leaves) -> State``, as the rules and the pictures want it.
        params: The parameters as the rules and the pictures want them.
        scalar: Whether all values are Python numbers.
        begin: ``(u, options) -> leaves``.
        step: ``(leaves, action, u) -> (leaves, reward, terminated, parts, infos)``, where infos are bare values.
        look: ``(leaves) -> (parts, infos)``.
        keys: Names of the infos.
    """

    checked: Callable[[Any], Sequence[Any]]
    named: Callable[[Leaves], Any]
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
    return rules._replace(named=replay.named, step=replay.step, look=replay.look)


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

    def checked(state: Any) -> Sequence[Any]:
        layout.check(state)
        return look(settled(state))[0]

    info = {} if world.info is None else world.info(xp, params, kind(*begin(_example(world, scalar), None)))
    return SingleRules(checked, lambda leaves: kind(*leaves), params, scalar, begin, step, look, tuple(info))


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
    """Compiled rules of arrays for one environment.

    Numbers are variables; arrays stand in one of two sets of buffers, and a step goes from the one to the other. A
    State that the caller hands over and that is not there is copied there first.
    """

    def __init__(self, world: World, layout: StateLayout, recorded: _Recorded):
        self._layout = layout
        step, look = recorded.step, recorded.look
        leaves = len(look.inputs)
        action, u = _array(step.inputs[leaves]), np.zeros(world.step_draws)
        self._action, self._u = action, u
        one_leaf = isinstance(world.observation_space, (spaces.Box, spaces.MultiDiscrete))
        parts, infos = look.outputs[: recorded.parts], look.outputs[recorded.parts :]
        self._vector, seen = _buffers(parts, one_leaf)
        shown = [*seen, *map(_array, infos)]
        here = [_array(symbol) for symbol in look.inputs]
        there = [  # what no step changes stands in the same memory
            leaf if output is symbol or leaf is None else np.zeros_like(leaf)
            for leaf, symbol, output in zip(here, step.inputs, step.outputs, strict=False)
        ]
        self._arrays, self._others = here, there
        self._numbers = [i for i, leaf in enumerate(here) if leaf is None]
        given, earned = [action, u], [_array(output) for output in step.outputs[leaves : leaves + 2]]
        groups, xp, scratch = [len(parts), len(infos)], scalar_namespace(), Scratch()
        self._run, self._run_back = (
            compiled(step, xp, [leaves, None, None, *groups], [*a, *given], [*b, *earned, *shown], scratch)
            for a, b in ((here, there), (there, here))
        )
        self._see, self._see_back = (compiled(look, xp, groups, a, shown, scratch) for a in (here, there))
        self._last: Leaves = ()

    def step(self, leaves: Leaves, action: Any, u: Any) -> Any:
        """One step."""
        numbers = self._bring(leaves)
        if self._action is None:
            numbers.append(python_numbers(action))
        else:
            self._action[...] = action
        self._u[...] = u
        self._last, reward, terminated, parts, infos = self._run(*numbers)
        self._arrays, self._others = self._others, self._arrays
        self._run, self._run_back = self._run_back, self._run
        self._see, self._see_back = self._see_back, self._see
        return self._last, reward, terminated, parts if self._vector is None else self._vector, infos

    def look(self, leaves: Leaves) -> Any:
        """What there is to see."""
        parts, infos = self._see(*self._bring(leaves))
        return parts if self._vector is None else self._vector, infos

    def named(self, leaves: Leaves) -> Any:
        """The State; its numbers are NumPy's, as rules of arrays want them."""
        values = (np.asarray(leaf, dtype)[()] for leaf, dtype in zip(leaves, self._layout.dtypes, strict=True))
        return self._layout.kind(*values)

    def _bring(self, leaves: Leaves) -> list[Any]:
        """Sees to it that the arrays of this state are in their buffers; its numbers."""
        if leaves is self._last:
            return [leaves[i] for i in self._numbers]
        for mine, leaf in zip(self._arrays, leaves, strict=True):
            if mine is not None:
                mine[...] = leaf
        return [python_numbers(leaves[i]) for i in self._numbers]


def _array(value: Any) -> np.ndarray | None:
    """A buffer for a value, or None where it is a number."""
    return (
        None
        if is_number(value)
        else np.zeros(np.shape(value) if not isinstance(value, Symbol) else value.shape, _dtype(value))
    )


def _buffers(parts: Sequence[Any], one_leaf: bool) -> tuple[np.ndarray | None, list[np.ndarray | None]]:
    """A vector of all parts where they make one leaf and have one dtype, and a buffer for each part."""
    dtypes = {_dtype(part) for part in parts}
    shapes = [part.shape if isinstance(part, Symbol) else np.shape(part) for part in parts]
    if len(dtypes) > 1 or not one_leaf:
        return None, [_array(part) for part in parts]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    vector = np.zeros(ends[-1], dtypes.pop())
    return vector, [
        vector[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)
    ]


def _dtype(value: Any) -> np.dtype:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _example(world: World, scalar: bool) -> Any:
    return [0.5] * world.reset_draws if scalar else np.full(world.reset_draws, 0.5)


def python_numbers(value: Any) -> Any:
    """A number or table of NumPy as Python numbers."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
