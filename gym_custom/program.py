"""Performs what was recorded of a rule, in one of two ways.

`Program.bind` makes straight calls of NumPy functions into buffers that are there already; `Program.compile` writes a
Python function on plain numbers. Both perform the rule's own operations in the rule's own order, so the bits are the
rule's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from gym_custom.recording import Instruction, Recorder, Symbol, Table

Plan = list[tuple[Callable[..., Any], tuple[Any, ...]]]
"""Calls to be made one after the other."""

_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}


class Program(NamedTuple):
    """A recorded rule.

    Attributes:
        inputs: The symbols that the rule was called with.
        outputs: The symbols and constants that it returned.
        instructions: What lies between, in order.
    """

    inputs: tuple[Symbol, ...]
    outputs: tuple[Any, ...]
    instructions: list[Instruction]

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], scratch: Scratch) -> Plan:
        """The calls that compute ``outputs`` from ``inputs``, arrays of one length that do not overlap.

        Constant outputs are filled in here, once.
        """
        places: dict[Symbol, np.ndarray] = dict(zip(self.inputs, inputs, strict=True))
        plan: Plan = []
        for output, array in zip(self.outputs, outputs, strict=True):
            if not isinstance(output, Symbol):
                array[...] = output
            elif output not in places and output.dtype == array.dtype:
                places[output] = array  # computed where it is wanted
        last_use = self._last_uses()
        scratch.begin(inputs[0].shape[0])
        for at, instruction in enumerate(self.instructions):
            _bind(instruction, places, scratch, dying=last_use.get(at, ()), plan=plan)
        for output, array in zip(self.outputs, outputs, strict=True):
            if isinstance(output, Symbol) and places[output] is not array:
                plan.append((_astype, (places[output], array)))
        return plan

    def _last_uses(self) -> dict[int, list[Symbol]]:
        """For each instruction the registers that nobody reads after it."""
        last = {
            operand: at
            for at, instruction in enumerate(self.instructions)
            for operand in instruction.operands
            if isinstance(operand, Symbol)
        }
        kept = {output for output in self.outputs if isinstance(output, Symbol)} | set(self.inputs)
        dying: dict[int, list[Symbol]] = {}
        for symbol, at in last.items():
            if symbol not in kept:
                dying.setdefault(at, []).append(symbol)
        return dying

    def compile(self, namespace: SimpleNamespace, groups: Sequence[int | None]) -> Callable[..., tuple[Any, ...]]:
        """A Python function of one number an input.

        Args:
            namespace: Functions of plain numbers, named as NumPy's.
            groups: How the outputs are returned one after the other: so many as a tuple, or (None) one by itself.
        """
        names = {symbol: f"x{i}" for i, symbol in enumerate(self.inputs)}
        scope: dict[str, Any] = {}
        lines = [f"def run({', '.join(names.values())}):"]
        for i, instruction in enumerate(self.instructions):
            names[instruction.result] = f"t{i}"
            lines.append(f"    t{i} = {_expression(instruction, names, namespace, scope)}")
        outputs = iter([_literal(output, names, scope) for output in self.outputs])
        returned = (
            next(outputs) if count is None else f"({''.join(next(outputs) + ', ' for _ in range(count))})"
            for count in groups
        )
        lines.append(f"    return {', '.join(returned)}")
        exec("\n".join(lines), scope)  # the text is made of the names and numbers above only
        return scope["run"]


class Scratch:
    """Buffers for values on their way, used again as soon as nobody needs them."""

    def __init__(self, size: int):
        self._size, self._length = size, size
        self._all: dict[np.dtype, list[np.ndarray]] = {}
        self._free: dict[np.dtype, list[np.ndarray]] = {}

    def begin(self, length: int) -> None:
        """A new plan begins, on arrays of this length; it shares its buffers with the others."""
        self._length = length
        self._free = {dtype: list(buffers) for dtype, buffers in self._all.items()}

    def take(self, dtype: np.dtype) -> np.ndarray:
        """A buffer that is free."""
        free = self._free.setdefault(dtype, [])
        if not free:
            self._all.setdefault(dtype, []).append(np.empty(self._size, dtype))
            free.append(self._all[dtype][-1])
        return free.pop()[: self._length]

    def give(self, buffer: np.ndarray) -> None:
        """The buffer is free again."""
        whole = buffer if buffer.base is None else buffer.base
        self._free[buffer.dtype].append(whole)


def record(rule: Callable[..., Sequence[Any]], dtypes: Sequence[Any]) -> Program | None:
    """Records ``rule(xp, *inputs)`` for inputs of these dtypes, or gives None where that is not possible."""
    recorder = Recorder()
    inputs = tuple(recorder.symbol(dtype) for dtype in dtypes)
    try:
        outputs = tuple(rule(recorder, *inputs))
    except TypeError:  # NotRecordable, or Python's own refusal to index or to convert with a symbol
        return None
    if any(not isinstance(output, Symbol) and np.ndim(output) for output in outputs):
        return None
    return Program(inputs, outputs, _needed(recorder.instructions, outputs))


def _needed(instructions: list[Instruction], outputs: Sequence[Any]) -> list[Instruction]:
    """The instructions that an output depends on."""
    wanted = {output for output in outputs if isinstance(output, Symbol)}
    kept = []
    for instruction in reversed(instructions):
        if instruction.result in wanted:
            wanted.update(operand for operand in instruction.operands if isinstance(operand, Symbol))
            kept.append(instruction)
    return kept[::-1]


def _bind(
    instruction: Instruction, places: dict[Symbol, np.ndarray], scratch: Scratch, dying: Sequence[Symbol], plan: Plan
) -> None:
    name, operands, result = instruction
    arrays = tuple(places[operand] if isinstance(operand, Symbol) else operand for operand in operands)
    if result not in places:  # never an operand's own buffer: NumPy takes longer to write over what it reads
        places[result] = scratch.take(result.dtype)
    plan.append((_SPECIAL.get(name) or getattr(np, name), (*arrays, places[result])))
    for symbol in dying:
        scratch.give(places[symbol])


def _where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def _astype(x: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, x, casting="unsafe")


def _take(table: Table, index: np.ndarray, out: np.ndarray) -> None:
    table.values.take(index, out=out, mode="wrap")


def _maximum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.maximum(a, b, out=out)  # as a third positional argument NumPy 2.4 would warn


def _minimum(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.minimum(a, b, out=out)


_SPECIAL: dict[str, Callable[..., None]] = {
    "where": _where,
    "astype": _astype,
    "take": _take,
    "maximum": _maximum,
    "minimum": _minimum,
}


def _expression(
    instruction: Instruction, names: dict[Symbol, str], namespace: SimpleNamespace, scope: dict[str, Any]
) -> str:
    name, operands, result = instruction
    texts = [_literal(operand, names, scope) for operand in operands]
    if name in _OPERATORS:
        return f" {_OPERATORS[name]} ".join(texts)
    if name == "where":
        return f"{texts[1]} if {texts[0]} else {texts[2]}"
    if name == "take":
        return f"{texts[0]}[{texts[1]}]"
    if name == "astype":
        return f"{ {'f': 'float', 'b': 'bool'}.get(result.dtype.kind, 'int') }({texts[0]})"
    if name == "negative":
        return f"-{texts[0]}"
    if name == "absolute":
        return f"abs({texts[0]})"
    if name in ("invert", "logical_not"):
        return f"not {texts[0]}" if result.dtype.kind == "b" else f"~{texts[0]}"
    scope[name] = getattr(namespace, name)
    return f"{name}({', '.join(texts)})"


def _literal(operand: Any, names: dict[Symbol, str], scope: dict[str, Any]) -> str:
    """The text of an operand; what has none of its own gets a name."""
    if isinstance(operand, Symbol):
        return names[operand]
    value = operand.values.tolist() if isinstance(operand, Table) else np.asarray(operand).item()
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return f"({value!r})" if value < 0 or str(value)[0] == "-" else repr(value)
    name = f"k{len(scope)}"
    scope[name] = value
    return name
