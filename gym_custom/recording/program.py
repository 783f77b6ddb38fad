"""What was recorded of a rule, as a list of instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gym_custom.recording.recorder import Recorder
from gym_custom.recording.symbols import Call, Instruction, Symbol

Spec = Any
"""A dtype, or a dtype and a shape."""


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

    @property
    def flat(self) -> bool:
        """Whether all is elementwise on numbers, so that it holds for arrays of any one shape as well."""
        operands = (operand for instruction in self.instructions for operand in instruction.operands)
        numbers = all(np.shape(x) == () for x in (*self.inputs, *self.outputs) if not isinstance(x, Symbol))
        return (
            numbers
            and all(symbol.shape == () for symbol in self.inputs)
            and all(instruction.result.shape == () for instruction in self.instructions)
            and not any(isinstance(operand, Call) for operand in operands)
        )


def record(rule: Callable[..., Sequence[Any]], specs: Sequence[Spec]) -> Program | None:
    """Records ``rule(xp, *inputs)``, or gives None where that is not possible.

    Args:
        rule: Returns its outputs one after the other.
        specs: For each input its dtype, or a tuple of dtype and shape.
    """
    recorder = Recorder()
    inputs = tuple(recorder.symbol(*(spec if isinstance(spec, tuple) else (spec,))) for spec in specs)
    try:
        outputs = tuple(rule(recorder, *inputs))
    except TypeError:  # NotRecordable, or Python's own refusal to index or to convert with a symbol
        return None
    return Program(inputs, outputs, _needed(recorder.instructions, outputs))


def _needed(instructions: list[Instruction], outputs: Sequence[Any]) -> list[Instruction]:
    """The instructions that an output depends on."""
    wanted = {output for output in outputs if isinstance(output, Symbol)}
    kept = []
    for instruction in reversed(instructions):
        if instruction.result in wanted:
            wanted.update(symbols(instruction.operands))
            kept.append(instruction)
    return kept[::-1]


def symbols(operands: Sequence[Any]) -> Iterator[Symbol]:
    """The registers among some operands."""
    return (operand for operand in operands if isinstance(operand, Symbol))
