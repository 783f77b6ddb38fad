"""How the states of many rows lie in memory: all leaves of one dtype as the rows of one matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gym_custom.drivers.trial import first_state
from gym_custom.recording.memory import aligned_zeros
from gym_custom.world import World

Blocks = list[np.ndarray]
"""The states of n rows: for each dtype a matrix of shape (width, n), those leaves apart that no step changes."""


class StateLayout:
    """Where each leaf of a world's State stands in the blocks.

    Args:
        world: The world, whose ``initial_state`` tells shapes and dtypes.
        params: Its plain parameters.
    """

    def __init__(self, world: World, params: Any):
        state = first_state(world, params)
        self.kind = type(state)
        self._shapes = [np.shape(leaf) for leaf in state]
        self.dtypes = [_settled(np.asarray(leaf).dtype, world.dtype) for leaf in state]
        self.widest = max(map(math.prod, self._shapes), default=1)
        self.flat = all(not shape for shape in self._shapes)
        self.hold([False] * len(state))

    def hold(self, held: Sequence[bool]) -> None:
        """Keeps those leaves apart that no step changes; blocks made before are of no use afterwards."""
        kinds = list(zip(self.dtypes, held, strict=True))
        self._kinds = list(dict.fromkeys(kinds))  # of the blocks
        ends = dict.fromkeys(kinds, 0)
        self._places: list[tuple[int, slice]] = []
        for shape, kind in zip(self._shapes, kinds, strict=True):
            begin, ends[kind] = ends[kind], ends[kind] + math.prod(shape)
            self._places.append((self._kinds.index(kind), slice(begin, ends[kind])))
        self._widths = list(ends.values())

    def check(self, state: Any) -> None:
        """Refuses what is no single state of this world.

        Raises:
            TypeError: It is no State of the world's kind.
            ValueError: A leaf has another shape or dtype.
        """
        if type(state) is not self.kind:
            raise TypeError(f"set_state takes a state of the same world, not {state!r}")
        for name, leaf, shape, dtype in zip(self.kind._fields, state, self._shapes, self.dtypes, strict=True):
            found = np.asarray(leaf)
            if found.shape != shape or not np.can_cast(found.dtype, dtype, "same_kind"):
                kind = f"{found.dtype} of shape {found.shape}"
                raise ValueError(f"set_state wants the leaf {name!r} as {dtype} of shape {shape}, not as {kind}")

    def allocate(self, n: int) -> Blocks:
        """Blocks of zeros for n rows."""
        return [aligned_zeros((width, n), dtype) for width, (dtype, _) in zip(self._widths, self._kinds, strict=True)]

    def beside(self, blocks: Blocks) -> Blocks:
        """Blocks for the states after these; what no step changes is in the same memory."""
        return [
            block if held else aligned_zeros(block.shape, dtype)
            for block, (dtype, held) in zip(blocks, self._kinds, strict=True)
        ]

    def state(self, blocks: Sequence[np.ndarray], rows: Any = slice(None)) -> Any:
        """The State of these rows; with a slice its leaves are views of shape (..., n)."""
        return self.kind(*(self._leaf(blocks, i, rows) for i in range(len(self._places))))

    def _leaf(self, blocks: Sequence[np.ndarray], i: int, rows: Any) -> Any:
        block, place = self._places[i]
        part = blocks[block][place, rows]
        return np.reshape(part, (*self._shapes[i], *part.shape[1:]))[()]

    def write(self, state: Any, blocks: Sequence[np.ndarray], rows: slice = slice(None)) -> None:
        """Writes a State into the blocks, cast to their dtypes; a leaf without batch axis is for all rows."""
        for i, leaf in enumerate(state):
            leaf = np.asarray(leaf)
            if leaf.ndim == len(self._shapes[i]):
                leaf = leaf[..., None]
            np.copyto(self._leaf(blocks, i, rows), leaf, casting="unsafe")

    def blocks_of(self, state: Any, n: int) -> Blocks:
        """A State of n rows as blocks of its own, in which the numbers of a row stand side by side."""
        blocks = [np.empty((n, width), dtype).T for width, (dtype, _) in zip(self._widths, self._kinds, strict=True)]
        self.write(state, blocks)
        return blocks

    def specs(self, *batch: int) -> list[tuple[np.dtype, tuple[int, ...]]]:
        """Dtype and shape of each leaf."""
        return [(dtype, (*shape, *batch)) for dtype, shape in zip(self.dtypes, self._shapes, strict=True)]

    def step(self, world: World, xp: Any, params: Any, leaves: Sequence[Any], action: Any, u: Any) -> tuple[Any, ...]:
        """The step of a world as a function of bare leaves, action and uniforms: leaves, reward and terminated."""
        state = self.kind(*leaves)
        next_leaves = (
            leaf if getattr(leaf, "dtype", None) == dtype else xp.astype(leaf, dtype)
            for leaf, dtype in zip(world.transition(xp, params, state, action, u), self.dtypes, strict=True)
        )
        next_state = self.kind(*next_leaves)
        return (*next_state, *world.outcome(xp, params, state, action, next_state))

    def over_rows(self, outputs: Sequence[Any]) -> list[Any]:
        """The outputs of a step of rows; a leaf without batch axis is for all rows."""
        widths = [*map(len, self._shapes), 0, 0]
        return [
            leaf[..., None] if width and np.ndim(leaf) == width else leaf
            for leaf, width in zip(outputs, widths, strict=True)
        ]

    def look(self, world: World, xp: Any, params: Any, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The parts of the observation and the info, from bare leaves."""
        state = self.kind(*leaves)
        return world.observe(xp, params, state), {} if world.info is None else world.info(xp, params, state)


def cast_leaf(leaf: Any, floats: Any) -> Any:
    """A leaf of a state in the dtype that it is kept in, as `_settled` has it."""
    leaf = np.asarray(leaf)
    return leaf.astype(_settled(leaf.dtype, floats))[()]


def _settled(dtype: np.dtype, floats: Any) -> np.dtype:
    """The dtype of a leaf: floats as the world says (float64 in a world of integers), integers int64."""
    if dtype.kind == "f":
        return np.dtype(np.float64 if np.dtype(floats).kind in "iu" else floats)
    return np.dtype(np.bool_ if dtype.kind == "b" else np.int64)
