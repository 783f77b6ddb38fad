"""The rules of a world over many rows: recorded and replayed where that is possible, else called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from gym_custom.program import Plan, Program, Scratch, record
from gym_custom.state_layout import Blocks, StateLayout
from gym_custom.world import World, recordable_params

_NUMBERS_AT_ONCE = 65_536  # of the widest leaf in a tile of called rules
_BYTES_AT_ONCE = 32_768  # of a leaf in a tile of recorded rules: their buffers stay in the cache


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
    """The fastest form of the rules for this world."""
    recorded = _recordings(world, layout) if layout.flat else None
    if recorded is None:
        return CalledRules(world, params, layout, num_envs)
    return RecordedRules(world, layout, num_envs, *recorded)


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


class RecordedRules:
    """Replays recorded rules on tiles of rows."""

    def __init__(self, world: World, layout: StateLayout, num_envs: int, step: Program, look: Program, keys: list[str]):
        self.blocks, self._others = layout.allocate(num_envs), layout.allocate(num_envs)
        self.action, self.u, self.reward, self.terminated = _buffers(world, num_envs)
        self._parts, self._seen = _outputs(look, len(look.outputs) - len(keys), num_envs)
        self._info = dict(zip(keys, self._seen[len(look.outputs) - len(keys) :], strict=True))
        self._sees_itself = len(self.blocks) == 1 and list(map(id, look.outputs)) == list(map(id, look.inputs))
        size = _BYTES_AT_ONCE // self.blocks[0].itemsize
        scratch = Scratch(min(num_envs, size))
        self._step: Plan = []
        self._step_back: Plan = []  # the same from the other blocks to these
        self._look: Plan = []
        self._look_back: Plan = []
        for rows in _tiles(num_envs, size):
            here, there = layout.state(self.blocks, rows), layout.state(self._others, rows)
            given = (self.action[rows], *self.u[:, rows])
            earned = (self.reward[rows], self.terminated[rows])
            seen = [array[rows] for array in self._seen]
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


def _recordings(world: World, layout: StateLayout) -> tuple[Program, Program, list[str]] | None:
    """The step and the look of a world whose leaves are all of shape (n,), or None."""
    params = recordable_params(world.params)
    keys: list[str] = []

    def step(xp: Any, *inputs: Any) -> Sequence[Any]:
        return layout.step(world, xp, params, inputs)

    def look(xp: Any, *leaves: Any) -> Sequence[Any]:
        parts, info = layout.look(world, xp, params, leaves)
        keys[:] = info
        return (*parts, *info.values())

    if world.action_space.shape != ():
        return None
    recorded_step = record(step, layout.step_dtypes(world))
    recorded_look = record(look, layout.dtypes)
    return (recorded_step, recorded_look, keys) if recorded_step and recorded_look else None


def _outputs(look: Program, parts: int, num_envs: int) -> tuple[Any, list[np.ndarray]]:
    """The parts, as one matrix where they have one dtype, and an array for each output."""
    dtypes = [output.dtype if hasattr(output, "dtype") else np.asarray(output).dtype for output in look.outputs]
    if len(set(dtypes[:parts])) != 1:
        arrays = [np.empty(num_envs, dtype) for dtype in dtypes]
        return arrays[:parts], arrays
    matrix = np.empty((parts, num_envs), dtypes[0])
    infos = [np.empty(num_envs, dtype) for dtype in dtypes[parts:]]
    return matrix, [*(matrix[i] for i in range(parts)), *infos]


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
