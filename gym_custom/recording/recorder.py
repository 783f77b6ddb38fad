"""Records what a rule computes, so that it can be replayed without the rule.

A rule is called once with symbols instead of arrays; each operation on a symbol writes down an instruction, which
`gym_custom.recording.binding` then performs. What only values can tell (a branch, an index) cannot be recorded, nor
what sums up in an order of NumPy's own; such a rule is simply called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gym_custom.recording.symbols import Call, Instruction, NotRecordable, Shape, Symbol

_REDUCTIONS = {"min": "minimum", "max": "maximum", "any": "logical_or", "all": "logical_and"}
_CALLS = {"argmin", "argmax", "argsort", "sort", "take_along_axis"}
"""Functions that allocate their results."""
_VIEWS = {"reshape", "moveaxis", "swapaxes", "transpose", "expand_dims", "squeeze", "flip", "broadcast_to"}
_JOINS = {"concatenate", "stack"}


class Recorder:
    """The array namespace ``xp`` that writes down what is asked of it."""

    pi, inf = math.pi, math.inf

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._known: dict[Any, Symbol] = {}

    def symbol(self, dtype: Any, shape: Shape = ()) -> Symbol:
        """A new input."""
        return Symbol(self, np.dtype(dtype), shape)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(np, name, None)
        if function is None:
            raise NotRecordable(f"NumPy has no {name}")
        return lambda *arguments, **keywords: self._ask(name, function, arguments, keywords)

    def _ask(self, name: str, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A function by its name; on constants alone it is worked out at once."""
        if not _symbolic((*arguments, *keywords.values())):
            return function(*arguments, **keywords)
        if isinstance(function, np.ufunc) and not keywords:
            return self.apply(name, *arguments)
        if name in _REDUCTIONS:
            return self._reduce(_REDUCTIONS[name], *arguments, **keywords)
        if name in _VIEWS:
            return self.view(Call(name, arguments[1:], tuple(keywords.items())), arguments[0])
        if name in _JOINS:
            return self._join(name, *arguments, **keywords)
        if name in _CALLS:
            return self._call(name, arguments, keywords)
        raise NotRecordable(f"{name} is not recorded")

    def apply(self, name: str, *operands: Any) -> Any:
        """Writes down an elementwise function; on constants alone it is worked out at once."""
        ufunc = getattr(np, name)
        if not _symbolic(operands):
            return ufunc(*operands)
        if ufunc.nout != 1 or len(operands) != ufunc.nin:
            raise NotRecordable(f"{name} with {len(operands)} operands")
        dtypes = ufunc.resolve_dtypes((*map(_kind, operands), None))
        fixed = tuple(
            operand if isinstance(operand, Symbol) else np.asarray(operand, dtype)
            for operand, dtype in zip(operands, dtypes, strict=False)
        )
        return self.write(name, fixed, dtypes[-1], np.broadcast_shapes(*(operand.shape for operand in fixed)))

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """``numpy.where``; where the condition is a constant it is what that chooses, of two equal constants that."""
        if not isinstance(condition, Symbol):
            return self._choose(condition, a, b)
        if not isinstance(a, Symbol) and not isinstance(b, Symbol) and np.ndim(a) == 0 and _identical(a, b):
            return np.where(np.True_, a, b)[()]
        example = np.where(_example(condition), _example(a), _example(b))
        fixed = (operand if isinstance(operand, Symbol) else np.asarray(operand, example.dtype) for operand in (a, b))
        return self.write("where", (condition, *fixed), example.dtype, example.shape)

    def _choose(self, condition: Any, a: Any, b: Any) -> Any:
        """``numpy.where`` on a constant: what is not chosen need not be computed."""
        example = np.where(condition, _example(a), _example(b))
        if np.ndim(condition) or np.shape(chosen := a if condition else b) != example.shape:
            raise NotRecordable("where on constants that differ")
        return self.astype(chosen, example.dtype)

    def astype(self, x: Any, dtype: Any) -> Any:
        """The same value in another dtype."""
        if not isinstance(x, Symbol):
            return np.asarray(x, dtype)[()]
        return x if x.dtype == np.dtype(dtype) else self.write("astype", (x,), np.dtype(dtype), x.shape)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """``numpy.clip``."""
        return self.minimum(self.maximum(x, low), high)

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        """The same value as an array."""
        if isinstance(x, Symbol):
            return x if dtype is None else self.astype(x, dtype)
        return np.asarray(x, dtype)

    def view(self, call: Call, x: Symbol) -> Symbol:
        """Other indices for the same memory."""
        return self.write("view", (x, call), x.dtype, _tried(call, x).shape)

    def _reduce(self, name: str, x: Symbol, axis: int) -> Symbol:
        """The least, largest, any or all along one axis: no order of the terms matters."""
        if x.ndim == 0:
            raise NotRecordable(f"{name} over a number")
        example = _tried(getattr(np, name).reduce, x, axis=axis)
        return self.write("reduce", (x, Call(name, (axis,))), example.dtype, np.shape(example))

    def _join(self, name: str, arrays: Sequence[Any], axis: int = 0) -> Symbol:
        """Arrays one after the other along an axis, which is new if they are stacked."""
        example = _tried(getattr(np, name), arrays, axis=axis)
        axis = range(example.ndim)[axis]
        fixed = [array if isinstance(array, Symbol) else np.asarray(array, example.dtype) for array in arrays]
        if name == "stack":
            expand = Call("expand_dims", (axis,))
            fixed = [self.view(expand, x) if isinstance(x, Symbol) else expand(x) for x in fixed]
        return self.write("join", (*fixed, Call("concatenate", (axis,))), example.dtype, example.shape)

    def _call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Symbol:
        symbols = [argument for argument in arguments if isinstance(argument, Symbol)]
        call = Call(name, arguments[len(symbols) :], tuple(keywords.items()))
        if _symbolic(arguments[len(symbols) :]) or _symbolic(keywords.values()):
            raise NotRecordable(f"{name} with such arguments")
        example = _tried(call, *symbols)
        return self.write("call", (*symbols, call), example.dtype, np.shape(example))

    def write(self, name: str, operands: tuple[Any, ...], dtype: Any, shape: Shape = ()) -> Symbol:
        """Writes down an instruction, unless the same one stands there already."""
        key = (name, np.dtype(dtype), shape, *map(_identity, operands))
        if key not in self._known:
            self._known[key] = result = self.symbol(dtype, shape)
            self.instructions.append(Instruction(name, operands, result))
        return self._known[key]


def _symbolic(arguments: Any) -> bool:
    """Whether a symbol is among the arguments or the items of a list or tuple among them."""
    return any(isinstance(x, Symbol) or (isinstance(x, (list, tuple)) and _symbolic(x)) for x in arguments)


def _tried(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """What a function gives for zeros instead of symbols."""
    try:
        return np.asarray(function(*map(_example, arguments), **keywords))
    except (IndexError, ValueError, np.exceptions.AxisError) as error:
        raise NotRecordable(str(error)) from error


def _example(operand: Any) -> Any:
    if isinstance(operand, Symbol):
        return np.zeros(operand.shape, operand.dtype)
    return [_example(part) for part in operand] if isinstance(operand, (list, tuple)) else operand


def _kind(operand: Any) -> Any:
    """How NumPy promotes an operand: Python's numbers are weak, all else has a dtype."""
    if type(operand) in (int, float):
        return type(operand)
    return operand.dtype if isinstance(operand, Symbol) else np.asarray(operand).dtype


def _identical(a: Any, b: Any) -> bool:
    return type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _identity(operand: Any) -> Any:
    if isinstance(operand, np.ndarray):
        return (operand.dtype.str, operand.shape, operand.tobytes())
    return repr(operand) if isinstance(operand, Call) else id(operand)
