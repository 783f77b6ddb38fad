"""The rules of a world over many rows: recorded and replayed where that is possible, else called."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from gym_custom.program import Plan, Program, Scratch, record
from gym_custom.recording import Symbol
from gym_custom.state_layout import Blocks, StateLayout
from gym_custom.world import World, recordable_params

_NUMBERS_AT_ONCE = 65_536  # of the widest leaf in a tile of called rules
_BYTES_AT_ONCE = 32_768  # of a number in a tile of recorded rules: their buffers stay in the cache
_ARRAY_BYTES_AT_ONCE = 262_144  # likewise of their largest array, where rules are made of arrays


Look = tuple[slice, Any, dict[str, Any]]
"""Some rows, the parts of their observations (a list, or a matrix with a part a row), and their info."""


class BatchRules(Protocol):
    """The states of n rows and the rules that move them on.

    Attributes:
        blocks: The present states.
        action: What the next `advance` does, of shape (n,) or (*box.shape, n), to be filled in by the caller.
        u: The next step's uniforms, of shape (step_draws, n), to be filled in by the caller.
        reward: What the last `advance` earned, of shape (n,).
        terminated: Whether it ended the episode, of shape (n,).
    """

    blocks: Blocks
    action: np.ndarray
    u: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray

    def advance(self) -> None:
        """One step of all rows."""

    def look(self) -> Iterable[Look]:
        """What there is to see, tile by tile."""


def batch_rules(world: World, params: Any, layout: StateLayout, num_envs: int) -> BatchRules:
    """The fastest form of the rules for this world; may tell the layout which leaves no step changes."""
    recorded = _recorded(world, layout)
    if recorded is None:
        return CalledRules(world, params, layout, num_envs)
    layout.hold(recorded.held)
    return RecordedRules(world, layout, num_envs, recorded)


class CalledRules:
    """Calls the rules as they are, on tiles of rows."""

    def __init__(self, world: World, params: Any, layout: StateLayout, num_envs: int):
        self._world, self._params, self._layout = world, params, layout
        self.blocks, self._others = layout.allocate(num_envs), layout.allocate(num_envs)
        self.action, self.u, self.reward, self.terminated = _buffers(world, num_envs)
        wide = max(layout.widest, *(np.prod(space.shape, dtype=int) for space in _leaves(world.observation_space)))
        self._tiles = list(_tiles(num_envs, max(64, _NUMBERS_AT_ONCE // int(wide))))

    def advance(self) -> None:
        """One step of all rows."""
        world, params, layout = self._world, self._params, self._layout
        for rows in self._tiles:
            state, action = layout.state(self.blocks, rows), self.action[..., rows]
            u = self.u[:, rows] if world.step_draws else None
            layout.write(world.transition(np, params, state, action, u), self._others, rows)
            next_state = layout.state(self._others, rows)
            self.reward[rows], self.terminated[rows] = world.outcome(np, params, state, action, next_state)
        self.blocks, self._others = self._others, self.blocks

    def look(self) -> Iterable[Look]:
        """What there is to see, tile by tile."""
        for rows in self._tiles:
            yield rows, *self._layout.look(self._world, np, self._params, self._layout.state(self.blocks, rows))


class Recorded(NamedTuple):
    """The recorded rules of a world.

    Attributes:
        programs: Step and look for so many rows.
        rows: That may be computed at once.
        parts: How many outputs of the look are parts of the observation; the others are infos.
        keys: Names of the infos.
        held: For each leaf whether no step changes it.
    """

    programs: Callable[[int], tuple[Program, Program]]
    rows: int
    parts: int
    keys: tuple[str, ...]
    held: list[bool]


class RecordedRules:
    """Replays recorded rules on tiles of rows."""

    def __init__(self, world: World, layout: StateLayout, num_envs: int, recorded: Recorded):
        self.blocks = layout.allocate(num_envs)
        self._others = layout.beside(self.blocks)
        self.action, self.u, self.reward, self.terminated = _buffers(world, num_envs)
        look = recorded.programs(1)[1]
        self._parts, self._seen = _outputs(world, look.outputs[: recorded.parts], num_envs)
        infos = [np.empty(num_envs, _dtype(output)) for output in look.outputs[recorded.parts :]]
        self._seen += infos
        self._info = dict(zip(recorded.keys, infos, strict=True))
        itself = not infos and list(map(id, look.outputs)) == list(map(id, look.inputs))
        self._sees_itself = itself and len(self.blocks) == 1
        self._step: Plan = []
        self._step_back: Plan = []  # the same from the other blocks to these
        self._look: Plan = []
        self._look_back: Plan = []
        scratch = Scratch()
        for rows in _tiles(num_envs, recorded.rows):
            step, look = recorded.programs(rows.stop - rows.start)
            here, there = layout.state(self.blocks, rows), layout.state(self._others, rows)
            given = _given(world, step, self.action[..., rows], self.u[:, rows])
            earned = (self.reward[rows], self.terminated[rows])
            seen = [array[..., rows] for array in self._seen]
            self._step += step.bind([*here, *given], [*there, *earned], scratch)
            self._step_back += step.bind([*there, *given], [*here, *earned], scratch)
            self._look += look.bind(there, seen, scratch)
            self._look_back += look.bind(here, seen, scratch)
        self._all_rows = slice(0, num_envs)

    def advance(self) -> None:
        """One step of all rows."""
        for function, operands in self._step:
            function(*operands)
        self.blocks, self._others = self._others, self.blocks
        self._step, self._step_back = self._step_back, self._step
        self._look, self._look_back = self._look_back, self._look

    def look(self) -> Iterable[Look]:
        """What there is to see, in one tile."""
        if self._sees_itself:
            return ((self._all_rows, self.blocks[0], self._info),)
        for function, operands in self._look_back:
            function(*operands)
        return ((self._all_rows, self._parts, self._info),)


def _recorded(world: World, layout: StateLayout) -> Recorded | None:
    """The rules as recordings, or None where they cannot be recorded."""
    params = recordable_params(world.params)
    keys: tuple[str, ...] = ()
    parts = 0

    def step(xp: Any, *inputs: Any) -> Sequence[Any]:
        leaves, action, u = inputs[: len(layout.dtypes)], inputs[len(layout.dtypes)], inputs[len(layout.dtypes) + 1 :]
        numbers = u[0] if u and u[0].ndim > 1 else u or None
        return layout.over_rows(layout.step(world, xp, params, leaves, action, numbers))

    def look(xp: Any, *leaves: Any) -> Sequence[Any]:
        nonlocal keys, parts
        seen, info = layout.look(world, xp, params, leaves)
        keys, parts = tuple(info), len(seen)
        return (*seen, *info.values())

    def programs(specs: Any) -> tuple[Program | None, Program | None]:
        return record(step, specs), record(look, specs[: len(layout.dtypes)])

    if layout.flat and world.action_space.shape == ():
        recorded = programs([*layout.dtypes, world.dtype, *[np.float64] * world.step_draws])
        if all(program is not None and program.flat for program in recorded):
            rows = _BYTES_AT_ONCE // layout.dtypes[0].itemsize
            return Recorded(lambda n: recorded, rows, parts, keys, _held(recorded[0]))  # type: ignore[arg-type, return-value]

    @functools.cache
    def programs_of(rows: int) -> tuple[Program | None, Program | None]:
        given = [(np.dtype(world.dtype), (*(world.action_space.shape or ()), rows))]
        given += [(np.dtype(np.float64), (world.step_draws, rows))] if world.step_draws else []
        return programs([*layout.specs(rows), *given])

    first = programs_of(1)
    if None in first:
        return None
    symbols = [instruction.result for program in first for instruction in program.instructions]  # type: ignore[union-attr]
    wide = max(math.prod(symbol.shape) * symbol.dtype.itemsize for symbol in symbols)
    return Recorded(programs_of, max(64, _ARRAY_BYTES_AT_ONCE // wide), parts, keys, _held(first[0]))  # type: ignore[arg-type]


def _held(step: Program | None) -> list[bool]:
    """Which leaves a step hands on as they are."""
    return [output is leaf for leaf, output in zip(step.inputs, step.outputs[:-2], strict=False)]  # type: ignore[union-attr]


def _given(world: World, step: Program, action: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
    """Action and uniforms as the step takes them."""
    if not world.step_draws:
        return [action]
    return [action, *u] if step.inputs[-1].ndim == 0 else [action, u]


def _outputs(world: World, parts: Sequence[Any], num_envs: int) -> tuple[Any, list[np.ndarray]]:
    """The parts, as one matrix where they make a box or have one dtype, and an array for each."""
    dtypes = {_dtype(part) for part in parts}
    shapes = [np.shape(part) if not isinstance(part, Symbol) else part.shape for part in parts]
    widths = [shape[0] if len(shape) > 1 else 1 for shape in shapes]
    if max(map(len, shapes)) > 1 and isinstance(world.observation_space, spaces.Box):
        dtypes = {world.observation_space.dtype}
    elif len(dtypes) != 1 or sum(widths) != len(parts):
        arrays = [np.empty((*shape[:-1], num_envs), _dtype(part)) for part, shape in zip(parts, shapes, strict=True)]
        return arrays, list(arrays)
    matrix = np.empty((sum(widths), num_envs), dtypes.pop())
    ends = np.cumsum(widths)
    rows = [matrix[end - width : end] for end, width in zip(ends, widths, strict=True)]
    return matrix, [row if len(shape) > 1 else row[0] for row, shape in zip(rows, shapes, strict=True)]


def _dtype(output: Any) -> np.dtype:
    return output.dtype if hasattr(output, "dtype") else np.asarray(output).dtype


def _buffers(world: World, num_envs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.zeros((*(world.action_space.shape or ()), num_envs), world.dtype),
        np.zeros((world.step_draws, num_envs)),
        np.zeros(num_envs),
        np.zeros(num_envs, np.bool_),
    )


def _tiles(num_envs: int, size: int) -> Iterator[slice]:
    for begin in range(0, num_envs, size):
        yield slice(begin, min(begin + size, num_envs))


def _leaves(space: Any) -> Iterator[Any]:
    inner = getattr(space, "spaces", None)
    if inner is None:
        yield space
    else:
        for leaf in inner.values() if hasattr(inner, "values") else inner:
            yield from _leaves(leaf)
