"""What stands for numbers and arrays while a rule is recorded, and the instructions that this writes down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gym_custom.recording.recorder import Recorder

Shape = tuple[int, ...]
_REDUCTIONS = ("min", "max", "any", "all")


class NotRecordable(TypeError):
    """A rule asks for what a recording cannot know."""


class Instruction(NamedTuple):
    """One operation; an operand is a register (`Symbol`), a constant, or a `Call` that says how."""

    name: str
    operands: tuple[Any, ...]
    result: Symbol


class Call(NamedTuple):
    """A function of NumPy and its arguments after the first; ``getitem`` is an index."""

    name: str
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *arrays: Any) -> Any:
        """The result for these arrays."""
        if self.name == "getitem":
            return arrays[0][(*self.arguments, ...) if ... not in self.arguments else self.arguments]
        return getattr(np, self.name)(*arrays, *self.arguments, **dict(self.keywords))


class Symbol:
    """A number or array that is not there yet.

    Args:
        recorder: Where operations are written down.
        dtype: Of the values to come.
        shape: Of the array to come.
    """

    __array_ufunc__ = None  # NumPy's numbers leave the operation to the symbol
    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, dtype: np.dtype, shape: Shape = ()):
        self.recorder, self.dtype, self.shape, self.ndim = recorder, dtype, shape, len(shape)

    def __neg__(self) -> Any:
        return self.recorder.apply("negative", self)

    def __abs__(self) -> Any:
        return self.recorder.apply("absolute", self)

    def __invert__(self) -> Any:
        return self.recorder.apply("invert", self)

    def __bool__(self) -> bool:
        raise NotRecordable("a rule branches on a value")

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if not all(part is None or part is ... or isinstance(part, (int, slice)) for part in index):
            raise NotRecordable("a rule chooses by a value")
        if [part for part in index if part != slice(None)] == [None]:
            return self.recorder.view(Call("expand_dims", (index.index(None),)), self)
        return self.recorder.view(Call("getitem", index), self)

    def __len__(self) -> int:
        if not self.shape:
            raise NotRecordable("a number has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def astype(self, dtype: Any) -> Any:
        """The same value in another dtype."""
        return self.recorder.astype(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        """The same values in another shape."""
        return self.recorder.reshape(self, shape[0] if isinstance(shape[0], tuple) else shape)

    def _unknown(self, *_: Any) -> Any:
        raise NotRecordable("a rule looks into a value")

    __float__ = __int__ = __index__ = __array__ = _unknown


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
for _name, _method in {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}.items():
    setattr(Symbol, f"__{_method}__", _operator(_name, swapped=False))
for _name in _REDUCTIONS:
    setattr(Symbol, _name, (lambda name: lambda self, axis: getattr(self.recorder, name)(self, axis=axis))(_name))


class Table(np.ndarray):
    """A flat table among the parameters, which may be indexed with a symbol."""

    def __new__(cls, values: Any) -> Table:
        """The values as a table."""
        return np.asarray(values).view(cls)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Symbol):
            return index.recorder.write("take", (np.asarray(self), index), self.dtype, index.shape)
        return np.asarray(self)[index]
