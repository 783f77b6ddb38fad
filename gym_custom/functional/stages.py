"""Rules over arrays of objects in stages that XLA may not melt into one another.

XLA fuses element-wise operations into one loop. On a CPU it also fuses across slices, broadcasts and concatenations,
and then computes a value anew at each place where it is read: the push of one pedestrian on another for either
component of a velocity, both of these for the speed limit of either, and so on, until a few loops do nearly all the
work of a step. Here each value that is read more than once, or at another place than where it stands, ends a stage: a
call that XLA is told to leave alone. What lies between is fused as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax

try:
    from jax.experimental.xla_metadata import set_xla_metadata
    from jax.extend.core import Literal
except ImportError:  # an older JAX cannot tell XLA
    CAN_TELL = False
else:
    CAN_TELL = True

Array = Any

NESTED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
"""Operations that consist of others, and the parameter that holds these."""
PLACING = frozenset({"broadcast_in_dim", "iota", "reshape", "rev", "slice", "squeeze", "transpose"})
"""They give values another place and compute nothing."""
ALONE = frozenset({"argmax", "argmin", "concatenate", "gather", "reduce_max", "reduce_min", "scatter", "sort"})
"""They are slow within a loop of others and fast alone."""


@dataclass(eq=False)
class _Operation:
    """An equation of a jaxpr; its operands are results of others or arrays."""

    primitive: Any
    settings: dict[str, Any]
    operands: list[Any]
    results: list[_Result]


@dataclass(eq=False)
class _Result:
    """What an operation computes."""

    operation: _Operation
    readers: int = 0
    moved: bool = False  # some reader reads it at another place than where it writes

    @property
    def ends_a_stage(self) -> bool:
        name = self.operation.primitive.name
        return name in ALONE or (name not in PLACING and (self.readers > 1 or self.moved))


def in_stages(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of trees of arrays, compiled in stages where that helps: on CPUs."""
    if not CAN_TELL or jax.default_backend() != "cpu":
        return function

    def staged(*arguments: Any) -> Any:
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        operations: list[_Operation] = []
        results = _collect(jaxpr.jaxpr, jaxpr.consts, jax.tree.leaves(arguments), operations)
        return jax.tree.unflatten(jax.tree.structure(shapes), _run(operations, results))

    return jax.jit(staged)  # made once, so that calls from outside of compiled code do not compile again and again


def _collect(jaxpr: Any, consts: Any, arguments: list[Any], operations: list[_Operation]) -> list[Any]:
    """Appends the operations of a jaxpr and of those within it; returns its results."""
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *arguments), strict=True))

    def read(atoms: Iterable[Any]) -> list[Any]:
        return [atom.val if isinstance(atom, Literal) else values[atom] for atom in atoms]

    for equation in jaxpr.eqns:
        operands = read(equation.invars)
        if equation.primitive.name in NESTED:
            inner = equation.params[NESTED[equation.primitive.name]]
            results = _collect(inner.jaxpr, inner.consts, operands, operations)
        else:
            operation = _Operation(equation.primitive, equation.params, operands, [])
            operation.results = results = [_Result(operation) for _ in equation.outvars]
            operations.append(operation)
        values.update(zip(equation.outvars, results, strict=True))
    return read(jaxpr.outvars)


def _run(operations: list[_Operation], wanted: list[Any]) -> list[Array]:
    """Computes the results stage by stage."""
    for operation in operations:
        for result in _results_among(operation.operands):
            result.readers += 1
            result.moved |= operation.primitive.name in PLACING | ALONE
    known: dict[_Result, Array] = {}
    ends = set(_results_among(wanted))
    for operation in operations:
        if any(result in ends or result.ends_a_stage for result in operation.results):
            known.update(zip(operation.results, _stage(operation, known), strict=True))
    return [known.get(value, value) if isinstance(value, _Result) else value for value in wanted]


def _results_among(values: Iterable[Any]) -> list[_Result]:
    return [value for value in values if isinstance(value, _Result)]


def _stage(operation: _Operation, known: dict[_Result, Array]) -> list[Array]:
    """The results of an operation, and on the way those that no earlier stage has computed, in a call of its own."""
    with set_xla_metadata(inlineable="false"):
        return jax.jit(lambda: _compute(operation, known, {}))()


def _compute(operation: _Operation, known: dict[_Result, Array], here: dict[_Operation, list[Array]]) -> list[Array]:
    if operation not in here:
        operands = [_value(operand, known, here) for operand in operation.operands]
        results = operation.primitive.bind(*operands, **operation.settings)
        here[operation] = list(results) if operation.primitive.multiple_results else [results]
    return here[operation]


def _value(value: Any, known: dict[_Result, Array], here: dict[_Operation, list[Array]]) -> Array:
    if not isinstance(value, _Result):
        return value
    if value in known:
        return known[value]
    return _compute(value.operation, known, here)[value.operation.results.index(value)]
