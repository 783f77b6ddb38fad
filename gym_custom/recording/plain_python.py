"""Writes what was recorded of a rule out as a Python function: plain numbers as variables, arrays in buffers.

It performs the rule's own operations in the rule's own order, so the bits are the rule's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gym_custom.recording.binding import Binding, Scratch
from gym_custom.recording.calls import copied, largest, least, same
from gym_custom.recording.program import Program, symbols
from gym_custom.recording.symbols import Instruction, Symbol

_NUMBERS = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
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


def compiled(
    program: Program,
    namespace: SimpleNamespace,
    groups: Sequence[int | None],
    inputs: Sequence[np.ndarray | None] | None = None,
    outputs: Sequence[np.ndarray | None] | None = None,
    scratch: Scratch | None = None,
) -> Callable[..., tuple[Any, ...]]:
    """A Python function of one argument for each input that is a plain number.

    Args:
        program: Where arrays are none it must be flat.
        namespace: Functions of plain numbers, named as NumPy's.
        groups: How the outputs are returned one after the other: so many as a tuple, or (None) one by itself.
        inputs: For each input the array that it stands in, or None for a number that is handed over.
        outputs: For each output the array that it is written to, or None for a number that is returned.
        scratch: Lends the buffers for arrays between.
    """
    inputs = inputs or [None] * len(program.inputs)
    outputs = outputs or [None] * len(program.outputs)
    return _Writer(program, namespace, inputs, outputs, scratch or Scratch()).function(groups)


def is_number(symbol: Any) -> bool:
    """Whether a value is a plain number where rules are compiled."""
    return np.shape(symbol) == () if not isinstance(symbol, Symbol) else symbol.shape == () and symbol.dtype in _NUMBERS


class _Variable:
    """Where a number stands."""

    def __init__(self, name: str):
        self.name = name


class _Writer(Binding):
    """A program on its way to a Python function: numbers are variables, arrays stand in buffers."""

    def __init__(
        self,
        program: Program,
        namespace: SimpleNamespace,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        scratch: Scratch,
    ):
        self._namespace = namespace
        self._scope: dict[str, Any] = {}
        self._known: dict[int, str] = {}  # names of objects in the scope
        self._lines: list[str] = []
        self._outputs = outputs
        given = [symbol for symbol, array in zip(program.inputs, inputs, strict=True) if array is None]
        self._names = {symbol: f"x{i}" for i, symbol in enumerate(given)}
        self._head = f"def run({', '.join(self._names.values())}):"
        super().__init__(program, inputs, outputs, scratch)

    def function(self, groups: Sequence[int | None]) -> Callable[..., tuple[Any, ...]]:
        """The finished function."""
        texts = iter(
            self._object(array) if array is not None else _literal(output, self._names, self._scope)
            for output, array in zip(self._program.outputs, self._outputs, strict=True)
        )
        returned = (
            next(texts) if count is None else f"({''.join(next(texts) + ', ' for _ in range(count))})"
            for count in groups
        )
        text = "\n    ".join([self._head, *self._lines, f"return {', '.join(returned)}"])
        exec(text, self._scope)  # it is made of the names and numbers above only
        return self._scope["run"]

    def _place_outputs(self, outputs: Sequence[Any]) -> None:
        self._places |= {symbol: _Variable(name) for symbol, name in self._names.items()}  # type: ignore[misc]
        for output, array in zip(self._program.outputs, outputs, strict=True):
            if array is None or is_number(output):
                continue
            if not isinstance(output, Symbol):
                array[...] = output
            elif output not in self._places and self._may_stand(output, array):
                self._places[output] = array

    def _deliver(self, outputs: Sequence[Any]) -> None:
        for output, array in zip(self._program.outputs, outputs, strict=True):
            if array is not None and is_number(output):
                self._lines.append(f"{self._object(array)}.fill({_literal(output, self._names, self._scope)})")
            elif array is not None and isinstance(output, Symbol) and not same(self._places[output], array):
                self._call(copied, (self._places[output], array))

    def _name(self, operand: Any) -> str:
        name = super()._name(operand)
        return "fill" if name == "view" and is_number(self._made[operand].operands[0]) else name

    def _settle(self, operand: Any, owner: Symbol, index: Any) -> None:
        if not is_number(operand):
            super()._settle(operand, owner, index)

    def _write(self, instruction: Instruction) -> None:
        name, operands, result = instruction
        if is_number(result) and name == "view" and is_number(operands[0]):
            self._names[result], self._places[result] = self._names[operands[0]], self._places[operands[0]]
        elif self._name(result) == "fill":
            place = self._place(result)
            self._lines.append(f"{self._object(place)}.fill({self._names[operands[0]]})")
        elif not is_number(result):
            before = len(self.plan)
            super()._write(instruction)
            for function, arguments in self.plan[before:]:
                self._call(function, arguments)
        else:
            text = self._number(name, operands, instruction)
            self._names[result] = variable = f"t{len(self._lines)}"
            self._places[result] = _Variable(variable)  # type: ignore[assignment]
            self._lines.append(f"{variable} = {text}")

    def _number(self, name: str, operands: Sequence[Any], instruction: Instruction) -> str:
        """How a number is computed."""
        if name == "view":
            return f"{self._object(self._look(operands[1], self._places[operands[0]]))}.item()"
        if name == "reduce":
            call = operands[1]
            return f"{self._object(getattr(np, call.name).reduce)}({self._object(self._places[operands[0]])}).item()"
        if name == "call":
            arrays = ", ".join(self._object(self._places[operand]) for operand in operands[:-1])
            return f"{self._object(operands[-1])}({arrays}).item()"
        for operand in symbols(operands):
            if operand not in self._names:
                self._names[operand] = f"{self._object(self._places[operand])}.item()"
        return _expression(instruction, self._names, self._namespace, self._scope)

    def _call(self, function: Any, arguments: Sequence[Any]) -> None:
        texts = [self._object(argument) for argument in arguments]
        if function is copied and getattr(arguments[0], "dtype", None) == arguments[1].dtype:
            self._lines.append(f"{self._object(np.copyto)}({texts[1]}, {texts[0]})")
        elif function in (largest, least):
            name = self._object(np.maximum if function is largest else np.minimum)
            self._lines.append(f"{name}({texts[0]}, {texts[1]}, out={texts[2]})")
        else:
            self._lines.append(f"{self._object(function)}({', '.join(texts)})")

    def _object(self, value: Any) -> str:
        """The name of an object, which the function finds in its scope."""
        if isinstance(value, _Variable):
            return value.name
        if id(value) not in self._known:
            self._known[id(value)] = name = f"o{len(self._known)}"
            self._scope[name] = value
        return self._known[id(value)]


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
    value = np.asarray(operand).tolist()
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return f"({value!r})" if value < 0 or str(value)[0] == "-" else repr(value)
    name = f"k{len(scope)}"
    scope[name] = value
    return name
