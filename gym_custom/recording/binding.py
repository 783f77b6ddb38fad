"""Performs what was recorded of a rule: straight calls of NumPy functions into buffers that are there already.

The calls are the rule's own operations in the rule's own order, so the bits are the rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gym_custom.recording.calls import SPECIAL, Plan, called, copied, put, same
from gym_custom.recording.memory import aligned_zeros
from gym_custom.recording.program import Program, symbols
from gym_custom.recording.symbols import Instruction, Shape, Symbol

_MANY = 512
"""Numbers from which on `where` chooses by bits: masked copies wait for each branch that they guess wrongly."""

_LARGE = 20_000
"""Bytes from which on a value is written over an operand; for small ones NumPy takes longer to do so."""


def bind(program: Program, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], scratch: Scratch) -> Plan:
    """The calls that compute ``outputs`` from ``inputs``, which do not overlap.

    Constant outputs are filled in here, once. An output that is an input may be the very same array.

    Args:
        program: The recorded rule.
        inputs: Arrays of the recorded shapes, or, for a flat program, of any one shape.
        outputs: Likewise.
        scratch: Lends the buffers for all that lies between.
    """
    return Binding(program, inputs, outputs, scratch).plan


class Scratch:
    """Buffers for values on their way, used again as soon as nobody needs them."""

    def __init__(self) -> None:
        self._all: list[np.ndarray] = []
        self._free: list[np.ndarray] = []

    def begin(self) -> None:
        """A new plan begins; it shares its buffers with the others."""
        self._free = list(self._all)

    def take(self, shape: Shape, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """An array, and the buffer that it stands in: the smallest that is large enough, of late the one given last."""
        size = int(np.prod(shape)) * dtype.itemsize
        fitting = [i for i, buffer in enumerate(self._free) if buffer.nbytes >= size]
        if fitting:
            buffer = self._free.pop(min(reversed(fitting), key=lambda i: self._free[i].nbytes))
        else:
            buffer = aligned_zeros((max(size, 1),), np.uint8)
            self._all.append(buffer)
        return buffer[:size].view(dtype).reshape(shape), buffer

    def give(self, buffer: np.ndarray) -> None:
        """The buffer is free again."""
        self._free.append(buffer)


class Binding:
    """One program on its way to a plan.

    A value lives in the buffer of its root: a view in that of what it looks at; a part of a join, or what `where` puts
    other values over, in that of the result, so that it need not be moved there.
    """

    def __init__(self, program: Program, inputs: Sequence[Any], outputs: Sequence[Any], scratch: Scratch):
        self.plan: Plan = []
        self._scratch, self._program = scratch, program
        self._places: dict[Symbol, np.ndarray] = dict(zip(program.inputs, inputs, strict=True))
        self._buffers: dict[Symbol, np.ndarray] = {}  # of roots
        self._made = {instruction.result: instruction for instruction in program.instructions}
        self._looked_at = {i.operands[0] for i in program.instructions if i.name == "view"}
        self._homes: dict[Symbol, tuple[Symbol, Any]] = {}
        # what a flat program gets beyond its numbers
        self._extra = () if inputs[0] is None else inputs[0].shape[len(program.inputs[0].shape) :]
        self._place_outputs(outputs)
        self._last = self._last_uses()
        for at, instruction in enumerate(program.instructions):
            self._find_homes(at, instruction)
        self._run()
        self._deliver(outputs)

    def _place_outputs(self, outputs: Sequence[Any]) -> None:
        """Lets outputs be computed where they are wanted."""
        for output, array in zip(self._program.outputs, outputs, strict=True):
            if not isinstance(output, Symbol):
                array[...] = output
            elif output not in self._places and self._may_stand(output, array):
                self._places[output] = array

    def _deliver(self, outputs: Sequence[Any]) -> None:
        """Copies the other outputs to where they are wanted."""
        for output, array in zip(self._program.outputs, outputs, strict=True):
            if isinstance(output, Symbol) and not same(self._places[output], array):
                self.plan.append((copied, (self._places[output], array)))

    def _may_stand(self, output: Symbol, array: np.ndarray) -> bool:
        shape = output.shape + self._extra
        return self._name(output) != "view" and output.dtype == array.dtype and shape == array.shape

    def _last_uses(self) -> dict[Symbol, int]:
        """For each symbol the last instruction that reads it; never for inputs and outputs."""
        last = {
            operand: at
            for at, instruction in enumerate(self._program.instructions)
            for operand in symbols(instruction.operands)
        }
        return last | dict.fromkeys((*self._program.inputs, *symbols(self._program.outputs)), len(self._made))

    def _find_homes(self, at: int, instruction: Instruction) -> None:
        """Where the parts of a join, and the last operand of a `where`, may be computed."""
        name, operands, result = instruction
        if name == "join":
            for operand, index in _slots(instruction):
                self._settle(operand, result, index)
        elif name == "where" and self._name(operands[2]) not in ("", "join", "view"):
            base = operands[2]
            dies = self._last[base] == at and base not in self._looked_at
            if dies and base.shape == result.shape and not any(base is other for other in operands[:2]):
                self._settle(base, result, ...)

    def _settle(self, operand: Any, owner: Symbol, index: Any) -> None:
        if self._name(operand) == "view":  # the place of what it looks at, if that lacks but one axis of length 1
            base, call = self._made[operand].operands
            if call.name == "expand_dims" and self._name(base) != "view":
                self._settle(base, owner, _without_axis(index, call.arguments[0]))
            return
        free = self._name(operand) and operand not in self._homes and operand not in self._places
        if free and operand.dtype == owner.dtype:
            self._homes[operand] = owner, index

    def _name(self, operand: Any) -> str:
        """How an operand is made; empty for inputs and constants."""
        return self._made[operand].name if isinstance(operand, Symbol) and operand in self._made else ""

    def _run(self) -> None:
        """Writes the plan, instruction by instruction."""
        deaths = self._deaths()
        self._scratch.begin()
        for at, instruction in enumerate(self._program.instructions):
            self._dying = deaths.get(at, [])
            self._write(instruction)
            for root in self._dying:
                if root in self._buffers:
                    self._scratch.give(self._buffers.pop(root))

    def _write(self, instruction: Instruction) -> None:
        arrays = [self._places[x] if isinstance(x, Symbol) else x for x in instruction.operands]
        if instruction.name == "view":
            self._places[instruction.result] = self._look(arrays[1], arrays[0])
        else:
            self._perform(instruction, arrays, self._place(instruction.result))

    def _deaths(self) -> dict[int, list[Symbol]]:
        """For each instruction the roots that nobody needs after it."""
        last: dict[Symbol, int] = {}
        for symbol in (*self._program.inputs, *self._made):
            root = self._root(symbol)
            last[root] = max(last.get(root, 0), self._last[symbol])
        dying: dict[int, list[Symbol]] = {}
        for root, at in last.items():
            dying.setdefault(at, []).append(root)
        return dying

    def _root(self, symbol: Symbol) -> Symbol:
        while symbol in self._homes or self._name(symbol) == "view":
            symbol = self._homes[symbol][0] if symbol in self._homes else self._made[symbol].operands[0]
        return symbol

    def _place(self, symbol: Symbol) -> np.ndarray:
        """Where this value is computed."""
        if symbol not in self._places:
            if symbol in self._homes:
                owner, index = self._homes[symbol]
                self._places[symbol] = self._place(owner)[index]
            elif (heirloom := self._heirloom(symbol)) is not None:
                self._places[symbol], self._buffers[symbol] = self._places[heirloom], self._buffers.pop(heirloom)
            else:
                shape = symbol.shape + self._extra
                self._places[symbol], self._buffers[symbol] = self._scratch.take(shape, symbol.dtype)
        return self._places[symbol]

    def _heirloom(self, symbol: Symbol) -> Symbol | None:
        """A large operand that dies as this value is computed, elementwise, and leaves its buffer: cache is scarce."""
        name, operands, _ = self._made[symbol]
        if isinstance(getattr(np, name, None), np.ufunc) and self._extra == ():
            for operand in symbols(operands):
                alike = operand.shape == symbol.shape and operand.dtype == symbol.dtype
                dies = any(operand is root for root in self._dying) and operand in self._buffers
                if alike and dies and self._places[operand].nbytes >= _LARGE:
                    return operand
        return None

    def _look(self, call: Any, array: np.ndarray) -> np.ndarray:
        found = call(array)
        if found.size == 0 or np.may_share_memory(found, array):
            return found
        copy = np.empty(found.shape, found.dtype)  # memory that is not in order cannot be looked at in this way
        self.plan.append((called, (call, array, copy)))
        return copy

    def _perform(self, instruction: Instruction, arrays: list[Any], out: np.ndarray) -> None:
        name = instruction.name
        if name == "join":
            for (_, index), array in zip(_slots(instruction), arrays, strict=False):
                if not same(array, out[index]):
                    self.plan.append((copied, (array, out[index])))
        elif name == "where" and out.size >= _MANY and _choosable(arrays, out):
            self._choose(arrays[0], arrays[1], arrays[2], out)
        elif name == "where" and same(arrays[2], out):
            self.plan.append((put, (out, arrays[1], arrays[0])))
        elif name == "reduce":
            self.plan.append((getattr(np, arrays[1].name).reduce, (arrays[0], *arrays[1].arguments, None, out)))
        elif name == "call":
            self.plan.append((called, (arrays[-1], *arrays[:-1], out)))
        else:
            self.plan.append((SPECIAL.get(name) or getattr(np, name), (*arrays, out)))

    def _choose(self, condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """`where` without branches: b ^ ((a ^ b) & mask), whose mask has all bits set where the condition holds."""
        kind = np.dtype(f"i{out.itemsize}")
        a, b, out = a.view(kind), b.view(kind), out.view(kind)
        mask, first = self._scratch.take(condition.shape, kind)
        self.plan.append((np.negative, (condition.view(np.int8), mask)))
        if b.ndim == 0 and b == 0:
            self.plan.append((np.bitwise_and, (a, mask, out)))
        else:
            differing, second = self._scratch.take(np.broadcast_shapes(a.shape, b.shape), kind)
            changed, third = self._scratch.take(out.shape, kind)
            self.plan.append((np.bitwise_xor, (a, b, differing)))
            self.plan.append((np.bitwise_and, (differing, mask, changed)))
            self.plan.append((np.bitwise_xor, (changed, b, out)))
            self._scratch.give(second)
            self._scratch.give(third)
        self._scratch.give(first)


def _choosable(arrays: Sequence[np.ndarray], out: np.ndarray) -> bool:
    alike = all(isinstance(array, np.ndarray) and array.dtype == out.dtype for array in arrays[1:])
    return alike and isinstance(arrays[0], np.ndarray) and out.itemsize in (4, 8)


def _slots(instruction: Instruction) -> Iterator[tuple[Any, Any]]:
    """The operands of a join and where they go."""
    (axis,), begin = instruction.operands[-1].arguments, 0
    for operand in instruction.operands[:-1]:
        index = [slice(None)] * operand.ndim
        index[axis] = slice(begin, begin := begin + operand.shape[axis])
        yield operand, tuple(index)


def _without_axis(index: Any, axis: int) -> Any:
    """The same place for an array that lacks this axis of length 1."""
    return (*index[:axis], index[axis].start or 0, *index[axis + 1 :], ...)
