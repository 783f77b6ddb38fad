"""Which expressions of a function depend on state values.

A flow-insensitive data-flow pass over one function's syntax tree: parameters that hold state values are tainted, and so
is every name that is ever assigned from a tainted expression. What a constructor settled (arguments bound by
``functools.partial``) and shapes are not tainted, so code may branch on them.
"""

from __future__ import annotations

import ast

STATIC_ATTRIBUTES = {"shape", "ndim", "dtype", "size", "_fields"}
STATIC_CALLS = {"len", "isinstance", "type"}


class Taint:
    """The tainted names of one function.

    Args:
        parameters: names of the parameters that hold state values.

    Attributes:
        locals: every name that the function binds, nested functions' and comprehensions' included.
        literals: names that are only ever assigned literal numbers or lists: ``+=`` onto one changes no array.
    """

    def __init__(self, parameters: set[str]):
        self._names = set(parameters)
        self.locals: set[str] = set()
        self.literals: set[str] = set()

    def follow(self, tree: ast.FunctionDef) -> None:
        """Spread the taint through the function's assignments, loops and nested functions."""
        nodes = list(ast.walk(tree))[1:]
        self.locals = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.locals |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        self.locals |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
        self.literals = _begin_as_literals(nodes)
        before = -1
        while len(self._names) > before:  # taint may run around a loop
            before = len(self._names)
            for node in nodes:
                self._spread(node)

    def _spread(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._bind_loop(node.target, node.iter)
        elif isinstance(node, ast.Lambda):
            self._names |= {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.FunctionDef) and self.reaches(ast.Module(node.body, [])):
            self._names |= {node.name, *(argument.arg for argument in node.args.args)} - {"xp"}

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            for index, part in enumerate(target.elts):
                self._bind(part, value.elts[index] if same else value)  # type: ignore[attr-defined]
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value)
        elif isinstance(target, ast.Name) and self.reaches(value):
            self._names.add(target.id)

    def _bind_loop(self, target: ast.expr, values: ast.expr) -> None:
        """``enumerate`` counts, which is no state value; ``zip`` pairs each target with its own argument."""
        name = values.func.id if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) else ""
        if name == "enumerate" and isinstance(target, ast.Tuple):
            self._bind(target.elts[1], values.args[0])  # type: ignore[attr-defined]
        elif name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(values.args):  # type: ignore[attr-defined]
            for part, value in zip(target.elts, values.args, strict=True):  # type: ignore[attr-defined]
                self._bind(part, value)
        else:
            self._bind(target, values)

    def reaches(self, node: ast.AST) -> bool:
        """Whether the value of an expression depends on state values, other than on their shapes."""
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute) and node.attr in STATIC_ATTRIBUTES:
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in STATIC_CALLS:
            return False
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return False
        return any(self.reaches(child) for child in ast.iter_child_nodes(node))


def _begin_as_literals(nodes: list[ast.AST]) -> set[str]:
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    own = {_targets(node) for node in assignments if _is_literal(node)}
    others = {_targets(node) for node in assignments if not _is_literal(node)}
    return set().union(*own) - set().union(*others)


def _is_literal(assignment: ast.Assign) -> bool:
    names = all(isinstance(target, ast.Name) for target in assignment.targets)
    return names and isinstance(assignment.value, ast.Constant | ast.List | ast.ListComp)


def _targets(assignment: ast.Assign) -> frozenset[str]:
    return frozenset(n.id for target in assignment.targets for n in ast.walk(target) if isinstance(n, ast.Name))
