"""Writes what was recorded of a rule out as a Python function on plain numbers.

It performs the rule's own operations in the rule's own order, so the bits are the rule's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gym_custom.program import Program
from gym_custom.recording import Instruction, Symbol

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
    program: Program, namespace: SimpleNamespace, groups: Sequence[int | None]
) -> Callable[..., tuple[Any, ...]]:
    """A Python function of one number an input.

    Args:
        program: A flat one.
        namespace: Functions of plain numbers, named as NumPy's.
        groups: How the outputs are returned one after the other: so many as a tuple, or (None) one by itself.
    """
    names = {symbol: f"x{i}" for i, symbol in enumerate(program.inputs)}
    scope: dict[str, Any] = {}
    lines = [f"def run({', '.join(names.values())}):"]
    for i, instruction in enumerate(program.instructions):
        names[instruction.result] = f"t{i}"
        lines.append(f"    t{i} = {_expression(instruction, names, namespace, scope)}")
    outputs = iter([_literal(output, names, scope) for output in program.outputs])
    returned = (
        next(outputs) if count is None else f"({''.join(next(outputs) + ', ' for _ in range(count))})"
        for count in groups
    )
    lines.append(f"    return {', '.join(returned)}")
    exec("\n".join(lines), scope)  # the text is made of the names and numbers above only
    return scope["run"]


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
