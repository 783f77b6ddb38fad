"""The rules of a world over many rows, recorded and replayed into buffers that stay in the processor's cache."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom.drivers.state_layout import StateLayout
from gym_custom.recording.binding import Scratch, bind
from gym_custom.recording.calls import Plan
from gym_custom.recording.memory import aligned_zeros
from gym_custom.recording.program import Program, record
from gym_custom.recording.symbols import Symbol
from gym_custom.world import World, recordable_params

_BYTES_AT_ONCE = 32_768  # of a number in a tile of a flat world
_ARRAY_BYTES_AT_ONCE = 1_048_576  # of the largest array in a tile of any other
_BUFFERED = 512  # numbers that NumPy may copy at a time; with more it copies small operands instead of repeating them


class Recorded(NamedTuple):
    """The recorded rules of a world.

    Attributes:
        programs: Step and look for so many rows.
        flat: Whether they are the same for any number of rows.
        rows: That may be computed at once.
        parts: How many outputs of the look are parts of the observation; the others are infos.
        keys: Names of the infos.
        held: For each leaf whether no step changes it.
    """

    programs: Callable[[int], tuple[Program, Program]]
    flat: bool
    rows: int
    parts: int
    keys: tuple[str, ...]
    held: list[bool]


class RecordedRules:
    """Replays the rules of a flat world in place, from one set of blocks to another and back."""

    def __init__(self, world: World, layout: StateLayout, num_envs: int, recorded: Recorded):
        self.blocks = layout.allocate(num_envs)
        self._others = layout.beside(self.blocks)
        self.action, self.u, self.reward, self.terminated = buffers(world, num_envs)
        step, look = recorded.programs(num_envs)
        self._parts, seen, infos = _outputs(world, look, recorded.parts, num_envs)
        self._info = dict(zip(recorded.keys, infos, strict=True))
        itself = not infos and list(map(id, look.outputs)) == list(map(id, look.inputs))
        self._sees_itself = itself and len(self.blocks) == 1
        self._step: Plan = []
        self._step_back: Plan = []  # the same from the other blocks to these
        self._look: Plan = []
        self._look_back: Plan = []
        scratch = Scratch()
        for rows in tiles(num_envs, recorded.rows):
            here, there = layout.state(self.blocks, rows), layout.state(self._others, rows)
            given = (self.action[rows], *self.u[:, rows])
            earned = (self.reward[rows], self.terminated[rows])
            shown = [array[rows] for array in (*seen, *infos)]
            self._step += bind(step, [*here, *given], [*there, *earned], scratch)
            self._step_back += bind(step, [*there, *given], [*here, *earned], scratch)
            self._look += bind(look, there, shown, scratch)
            self._look_back += bind(look, here, shown, scratch)
        self._all_rows = slice(0, num_envs)

    def advance(self) -> None:
        """One step of all rows."""
        for function, operands in self._step:
            function(*operands)
        self.blocks, self._others = self._others, self.blocks
        self._step, self._step_back = self._step_back, self._step
        self._look, self._look_back = self._look_back, self._look

    def look(self) -> Iterable[Any]:
        """What there is to see, in one tile."""
        if self._sees_itself:
            return ((self._all_rows, self.blocks[0], self._info),)
        for function, operands in self._look_back:
            function(*operands)
        return ((self._all_rows, self._parts, self._info),)


class TiledRules:
    """Replays the rules of a world of arrays in tiles, to which some rows are copied at a time."""

    def __init__(self, world: World, layout: StateLayout, num_envs: int, recorded: Recorded):
        self.blocks = layout.allocate(num_envs)
        self.action, self.u, self.reward, self.terminated = buffers(world, num_envs)
        at_once = math.ceil(num_envs / math.ceil(num_envs / recorded.rows))
        at_once += -at_once % 8  # rows of 64 bytes, the processor's widest number
        kinds = {n: _Tile(world, layout, n, recorded) for n in {at_once, num_envs % at_once} - {0}}
        self._tiles = [(rows, kinds[rows.stop - rows.start]) for rows in tiles(num_envs, at_once)]
        _, look = recorded.programs(at_once)
        self._parts, seen, infos = _outputs(world, look, recorded.parts, num_envs, packed=True)
        self._seen = [*seen, *infos]
        self._info = dict(zip(recorded.keys, infos, strict=True))
        self._all_rows = slice(0, num_envs)

    def advance(self) -> None:
        """One step of all rows."""
        for rows, tile in self._tiles:
            tile.bring(self.blocks, rows)
            tile.action[...] = self.action[..., rows]
            tile.u[...] = self.u[:, rows]
            _replay(tile.step)
            for block, old, new in zip(self.blocks, tile.here, tile.there, strict=True):
                if new is not old:
                    block[:, rows] = new
            self.reward[rows], self.terminated[rows] = tile.reward, tile.terminated

    def look(self) -> Iterable[Any]:
        """What there is to see, in one tile."""
        for rows, tile in self._tiles:
            tile.bring(self.blocks, rows)
            _replay(tile.look)
            for array, part in zip(self._seen, tile.seen, strict=True):
                array[..., rows] = part
        return ((self._all_rows, self._parts, self._info),)


class _Tile:
    """Some rows, small enough for the cache: their states before and after a step, and the calls between."""

    def __init__(self, world: World, layout: StateLayout, rows: int, recorded: Recorded):
        step, look = recorded.programs(rows)
        self.here = layout.allocate(rows)
        self.there = layout.beside(self.here)
        self.action, self.u, self.reward, self.terminated = buffers(world, rows)
        _, seen, infos = _outputs(world, look, recorded.parts, rows)
        self.seen = [*seen, *infos]
        given = [self.action, self.u] if world.step_draws else [self.action]
        scratch, here = Scratch(), layout.state(self.here)
        earned = [self.reward, self.terminated]
        self.step = bind(step, [*here, *given], [*layout.state(self.there), *earned], scratch)
        self.look = bind(look, here, self.seen, scratch)

    def bring(self, blocks: Sequence[np.ndarray], rows: slice) -> None:
        """Copies the states of these rows here."""
        for block, mine in zip(blocks, self.here, strict=True):
            mine[...] = block[:, rows]


def _replay(plan: Plan) -> None:
    buffered = np.setbufsize(_BUFFERED)
    try:
        for function, operands in plan:
            function(*operands)
    finally:
        np.setbufsize(buffered)


def recorded_rules(world: World, layout: StateLayout) -> Recorded | None:
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
            return Recorded(lambda n: recorded, True, rows, parts, keys, _held(recorded[0]))  # type: ignore[arg-type, return-value]

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
    return Recorded(programs_of, False, max(64, _ARRAY_BYTES_AT_ONCE // wide), parts, keys, _held(first[0]))  # type: ignore[arg-type]


def _held(step: Program | None) -> list[bool]:
    """Which leaves a step hands on as they are."""
    return [output is leaf for leaf, output in zip(step.inputs, step.outputs[:-2], strict=False)]  # type: ignore[union-attr]


def _outputs(
    world: World, look: Program, count: int, rows: int, packed: bool = False
) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """What is seen of so many rows.

    Returns:
        The parts as the packer takes them: one matrix where they have one dtype and make one box or are numbers, in the
        box's own dtype if they shall be packed; an array for each part; and one for each info.
    """
    parts, space = look.outputs[:count], world.observation_space
    infos = [np.empty(rows, _dtype(output)) for output in look.outputs[count:]]
    dtypes = {_dtype(part) for part in parts}
    shapes = [part.shape if isinstance(part, Symbol) else np.shape(part) for part in parts]
    widths = [shape[0] if len(shape) > 1 else 1 for shape in shapes]
    if len(dtypes) > 1 or (sum(widths) > count and not isinstance(space, spaces.Box)):
        arrays = [np.empty((*shape[:-1], rows), _dtype(part)) for part, shape in zip(parts, shapes, strict=True)]
        return arrays, list(arrays), infos
    matrix = np.empty((sum(widths), rows), space.dtype if packed and isinstance(space, spaces.Box) else dtypes.pop())
    ends = np.cumsum(widths)
    strips = [matrix[end - width : end] for end, width in zip(ends, widths, strict=True)]
    return matrix, [strip if len(shape) > 1 else strip[0] for strip, shape in zip(strips, shapes, strict=True)], infos


def _dtype(output: Any) -> np.dtype:
    return output.dtype if hasattr(output, "dtype") else np.asarray(output).dtype


def buffers(world: World, num_envs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Actions, uniforms, rewards and terminations of so many rows."""
    return (
        aligned_zeros((*(world.action_space.shape or ()), num_envs), world.dtype),
        aligned_zeros((world.step_draws, num_envs), np.float64),
        aligned_zeros((num_envs,), np.float64),
        aligned_zeros((num_envs,), np.bool_),
    )


def tiles(num_envs: int, size: int) -> Iterator[slice]:
    """Slices of at most so many rows."""
    for begin in range(0, num_envs, size):
        yield slice(begin, min(begin + size, num_envs))
