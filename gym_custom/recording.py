"""Records what a rule computes, so that it can be replayed without the rule.

A rule is called once with symbols instead of arrays; each operation on a symbol writes down an instruction, which
`gym_custom.program` then performs. What only shapes or values can tell (a branch, a loop over rows, a reduction)
cannot be recorded, and the rule is simply called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class NotRecordable(TypeError):
    """A rule asks for what a recording cannot know."""


class Instruction(NamedTuple):
    """One operation; an operand is a register (`Symbol`) or a constant."""

    name: str
    operands: tuple[Any, ...]
    result: Symbol


class Symbol:
    """A number or array that is not there yet.

    Args:
        recorder: Where operations are written down.
        dtype: Of the values to come.
    """

    __array_ufunc__ = None  # NumPy's numbers leave the operation to the symbol
    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, dtype: np.dtype):
        self.recorder, self.dtype = recorder, dtype

    def __neg__(self) -> Any:
        return self.recorder.apply("negative", self)

    def __abs__(self) -> Any:
        return self.recorder.apply("absolute", self)

    def __invert__(self) -> Any:
        return self.recorder.apply("invert", self)

    def __bool__(self) -> bool:
        raise NotRecordable("a rule branches on a value")

    def _unknown(self, *_: Any) -> Any:
        raise NotRecordable("a rule looks into a value")

    __iter__ = __len__ = __getitem__ = __float__ = __int__ = __index__ = __array__ = _unknown


def _operator(name: str, swapped: bool) -> Callable[[Symbol, Any], Any]:
    if swapped:
        return lambda self, other: self.recorder.apply(name, other, self)
    return lambda self, other: self.recorder.apply(name, self, other)


for _name, _method in {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, swapped=False))
    setattr(Symbol, f"__r{_method}__", _operator(_name, swapped=True))
for _name, _method in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, swapped=False))
for _name, _method in {"equal": "eq", "not_equal": "ne"}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, swapped=False))


class Table:
    """A flat table among the parameters, which may be indexed with a symbol."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Symbol):
            return index.recorder.write("take", (self, index), self.values.dtype)
        return self.values[index]


class Recorder:
    """The array namespace ``xp`` that writes down what is asked of it."""

    pi, inf = math.pi, math.inf

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._known: dict[Any, Symbol] = {}

    def symbol(self, dtype: Any) -> Symbol:
        """A new input."""
        return Symbol(self, np.dtype(dtype))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not isinstance(getattr(np, name, None), np.ufunc):
            raise NotRecordable(f"{name} is no elementwise function")
        return lambda *operands: self.apply(name, *operands)

    def apply(self, name: str, *operands: Any) -> Any:
        """Writes down an elementwise function; on constants alone it is worked out at once."""
        ufunc = getattr(np, name)
        if not any(isinstance(operand, Symbol) for operand in operands):
            return ufunc(*operands)
        if ufunc.nout != 1 or len(operands) != ufunc.nin:
            raise NotRecordable(f"{name} with {len(operands)} operands")
        dtypes = ufunc.resolve_dtypes((*map(_kind, operands), None))
        fixed = tuple(
            operand if isinstance(operand, Symbol) else np.asarray(operand, dtype)
            for operand, dtype in zip(operands, dtypes, strict=False)
        )
        return self.write(name, fixed, dtypes[-1])

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """``numpy.where``; of two equal constants it is that constant."""
        if not isinstance(condition, Symbol):
            raise NotRecordable("where on a constant")
        if not isinstance(a, Symbol) and not isinstance(b, Symbol) and np.ndim(a) == 0 and _identical(a, b):
            return np.where(np.True_, a, b)[()]
        examples = [np.zeros((), operand.dtype) if isinstance(operand, Symbol) else operand for operand in (a, b)]
        dtype = np.where(np.True_, *examples).dtype
        fixed = (operand if isinstance(operand, Symbol) else np.asarray(operand, dtype) for operand in (a, b))
        return self.write("where", (condition, *fixed), dtype)

    def astype(self, x: Any, dtype: Any) -> Any:
        """The same value in another dtype."""
        return self.write("astype", (x,), np.dtype(dtype)) if isinstance(x, Symbol) else np.asarray(x, dtype)[()]

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """``numpy.clip``."""
        return self.minimum(self.maximum(x, low), high)

    def write(self, name: str, operands: tuple[Any, ...], dtype: Any) -> Symbol:
        """Writes down an instruction, unless the same one stands there already."""
        key = (name, np.dtype(dtype), *map(_identity, operands))
        if key not in self._known:
            self._known[key] = result = self.symbol(dtype)
            self.instructions.append(Instruction(name, operands, result))
        return self._known[key]


def _kind(operand: Any) -> Any:
    """How NumPy promotes an operand: Python's numbers are weak, all else has a dtype."""
    if type(operand) in (int, float):
        return type(operand)
    return operand.dtype if isinstance(operand, Symbol) else np.asarray(operand).dtype


def _identical(a: Any, b: Any) -> bool:
    return type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _identity(operand: Any) -> Any:
    return (operand.dtype.str, operand.tobytes()) if isinstance(operand, np.ndarray) else id(operand)
