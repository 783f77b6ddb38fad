"""Reads the syntax tree of a world's rules, for faults that play may never reach.

Follows every value that depends on the state, the action, the parameters or the draws through assignments and calls
(see ``taint``), and reports what such a value must not meet: a branch, an in-place write, a sum along objects.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gym_custom.checks.rule_reader import RuleReader

RULES = ("initial_state", "transition", "outcome", "observe", "info")


def source_findings(world: Any, records: Iterable[type] = ()) -> list[str]:
    """Faults in the source of the world's rules, of the functions they call, and of the methods of its records.

    Args:
        world: a ``World``.
        records: classes (``State``, ``Params``) whose methods and properties are read too.

    Returns:
        One sentence a fault, with file and line; empty where nothing was found.
    """
    reader = _Reader(world)
    for role in RULES:
        if (rule := getattr(world, role)) is not None:
            reader.read_rule(role, rule)
    for record in records:
        for method in _own_methods(record):
            reader.read(method, set(inspect.signature(method).parameters) - {"xp"})
    return list(dict.fromkeys(reader.findings))


def _own_methods(record: type) -> list[types.FunctionType]:
    """Functions and properties written in the class body, not those a NamedTuple generates."""
    found = [value.fget if isinstance(value, property) else value for value in vars(record).values()]
    file = getattr(sys.modules.get(record.__module__), "__file__", None)
    return [f for f in found if isinstance(f, types.FunctionType) and f.__code__.co_filename == file]


class _Reader:
    """Reads functions, each once for each set of tainted parameters, and gathers the findings."""

    def __init__(self, world: Any):
        self.findings: list[str] = []
        self._seen: set[tuple[types.CodeType, frozenset[str]]] = set()
        rules = [_unwrap(getattr(world, role)) for role in RULES if getattr(world, role) is not None]
        self._own = {str(rule.__module__) for rule in rules if isinstance(rule, types.FunctionType)}

    def is_own(self, module: str) -> bool:
        """Whether a module is part of the world: of the same package, or beside it in the same folder."""
        return any(_package(module) == _package(own) or _folder(module) == _folder(own) for own in self._own)

    def read_rule(self, role: str, rule: Callable[..., Any]) -> None:
        function = _unwrap(rule)
        if not isinstance(function, types.FunctionType):
            self.findings.append(f"{role} is {rule!r}; a rule is a plain function of a module (or a partial of one)")
            return
        names, defaults = _free_parameters(rule)
        self.read(function, set(names[1:]) - defaults)

    def read(self, function: types.FunctionType, tainted: set[str]) -> None:
        key = (function.__code__, frozenset(tainted))
        if key in self._seen:
            return
        self._seen.add(key)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, TypeError, SyntaxError):
            tree = None
        if not isinstance(tree, ast.FunctionDef):
            self.findings.append(f"the source of {function.__qualname__} cannot be read; write it with def in a file")
            return
        RuleReader(self, function, tainted).read(tree)


def _unwrap(rule: Any) -> Any:
    while isinstance(rule, functools.partial):
        rule = rule.func
    return rule


def _free_parameters(rule: Callable[..., Any]) -> tuple[list[str], set[str]]:
    """Names of the parameters that the driver fills in, and of those that the constructor has bound."""
    bound: set[str] = set()
    positional = 0
    while isinstance(rule, functools.partial):
        bound |= set(rule.keywords)
        positional += len(rule.args)
        rule = rule.func
    parameters = list(inspect.signature(rule).parameters.values())
    bound |= {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    return [p.name for p in parameters[positional:]], bound


def _package(module: str) -> str:
    return module.split(".")[0]


def _folder(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return str(Path(file).parent) if file else module
