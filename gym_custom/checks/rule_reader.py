# ruff: noqa: D102  (visit_X is what ast.NodeVisitor calls for a node X)
"""What the syntax tree of one rule must not contain: a branch on state, a write in place, a sum along objects, ..."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import types
from pathlib import Path
from typing import Any, Protocol

from gym_custom.checks.taint import Taint

MODULES = ("math", "typing", "functools")
REDUCTIONS = re.compile("sum|mean|average|prod|v?dot|inner|matmul|tensordot|einsum|norm|var|std")
DATA_SHAPES = {"nonzero", "flatnonzero", "argwhere", "unique", "compress", "extract"}
WRITERS = {"sort", "fill", "put", "itemset", "resize", "partition", "copyto", "putmask", "place", "setflags"}
LIST_WRITERS = re.compile("append|extend|insert|update|setdefault|pop|popitem|remove|clear|add|discard")
DECIDES = {"bool", "int", "float", "round", "min", "max", "any", "all", "sorted", "sum", "range"}
IMPURE = {"open", "input", "eval", "exec", "__import__", "setattr", "delattr", "next", "id", "hash", "print"}
MISSING: Any = object()

MEMORY_ADVICE = "keeps a memory outside the state ({0}); what must be remembered is State"
SUM_ADVICE = (
    "adds up along objects with {0}: NumPy rounds differently for one env and for a batch from eight terms on; "
    "write the additions out, for example with functools.reduce"
)


class Reader(Protocol):
    """Who asks for the reading: gathers findings and reads the functions that a rule calls."""

    findings: list[str]

    def is_own(self, module: str) -> bool:
        """Whether a module belongs to the world."""

    def read(self, function: types.FunctionType, tainted: set[str]) -> None:
        """Read another function whose parameters in ``tainted`` hold state values."""


class RuleReader(ast.NodeVisitor):
    """Reads one function whose parameters in ``tainted`` hold state values."""

    def __init__(self, reader: Reader, function: types.FunctionType, tainted: set[str]):
        self._reader, self._function = reader, function
        self._taint = Taint(tainted)
        self.tainted = self._taint.reaches
        self._where = Path(function.__code__.co_filename).name
        self._first_line = function.__code__.co_firstlineno

    def read(self, tree: ast.FunctionDef) -> None:
        self._taint.follow(tree)
        for statement in tree.body:
            self.visit(statement)

    def report(self, node: ast.AST, fault: str) -> None:
        line = self._first_line + getattr(node, "lineno", 1) - 1
        self._reader.findings.append(f"{self._where}:{line}: {self._function.__name__} {fault}")

    # --- branches

    def _branch(self, node: ast.AST, test: ast.AST, word: str) -> None:
        if self.tainted(test):
            advice = "use xp.where, &, | and xp.logical_not"
            self.report(node, f"branches on a state value with '{word}' ({ast.unparse(test)}); {advice}")

    def visit_If(self, node: ast.If) -> None:
        self._branch(node, node.test, "if")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._branch(node, node.test, "if")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._branch(node, node.test, "while")
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        self._branch(node, node.test, "assert")
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        self._branch(node, node.subject, "match")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._branch(test, test, "if")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._branch(node, node, "and" if isinstance(node.op, ast.And) else "or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._branch(node, node.operand, "not")
        elif isinstance(node.op, ast.Invert) and self.tainted(node.operand):
            self.report(node, f"uses {ast.unparse(node)}, and ~True is -2 on plain bools; use xp.logical_not")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) > 1:
            self._branch(node, node, "and")
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            self._branch(node, node, "in")
        self.generic_visit(node)

    # --- writes

    def _write(self, target: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._write(part)
        elif isinstance(target, ast.Subscript | ast.Attribute) and (self.tainted(target) or self._is_global(target)):
            self.report(target, f"writes into {ast.unparse(target)} in place; make a new value instead")

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._write(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._write(node.target)
        if isinstance(node.target, ast.Name) and self.tainted(node.target):
            name, operation = node.target.id, ast.unparse(node)
            if name not in self._taint.literals:
                self.report(node, f"writes into {name} in place ({operation}); assign a new value: {name} = {name} ...")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._write(target)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.report(node, MEMORY_ADVICE.format(ast.unparse(node)))

    visit_Nonlocal = visit_Global

    # --- names and calls

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            if name not in MODULES:
                self._foreign(node, name)

    visit_ImportFrom = visit_Import

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and (value := self._resolve(node)) is not MISSING:
            self._judge(node, value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        value = self._resolve(node)
        if value is MISSING:
            self.generic_visit(node)
        elif self._judge_root(node):
            self._judge(node, value)

    def _resolve(self, node: ast.AST) -> Any:
        """The object behind a global name or a dotted path from one, MISSING for locals and their attributes."""
        if isinstance(node, ast.Attribute):
            base = self._resolve(node.value)
            known = isinstance(base, types.ModuleType | type)
            return getattr(base, node.attr, MISSING) if known else MISSING
        if not isinstance(node, ast.Name) or (node.id in self._taint.locals and node.id not in self._free_names()):
            return MISSING
        scopes = (self._free_names(), self._function.__globals__, vars(builtins))
        return next((scope[node.id] for scope in scopes if node.id in scope), MISSING)

    def _free_names(self) -> dict[str, Any]:
        cells = self._function.__closure__ or ()
        return dict(zip(self._function.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True))

    def _is_global(self, node: ast.AST) -> bool:
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        return self._resolve(node) is not MISSING

    def _foreign(self, node: ast.AST, name: str) -> None:
        self.report(node, f"uses {name}; rules may use xp, math, typing, functools and their own modules only")

    def _judge_root(self, node: ast.Attribute) -> bool:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        module = self._resolve(root)
        name = module.__name__ if isinstance(module, types.ModuleType) else MODULES[0]
        if name in MODULES or self._reader.is_own(name):
            return True
        self._foreign(node, ast.unparse(node))
        return False

    def _judge(self, node: ast.expr, value: Any) -> None:
        """Whether a global may be used at all; own functions are read, with every argument a state value."""
        name = ast.unparse(node)
        if isinstance(value, types.FunctionType) and self._reader.is_own(value.__module__):
            self._reader.read(value, set(inspect.signature(value).parameters) - {"xp"})
        elif value is getattr(builtins, name, MISSING):
            if name in IMPURE:
                self.report(node, f"calls {name}, which reaches outside its arguments")
        elif (home := _home(value)) not in ("builtins", "_functools", *MODULES) and not self._reader.is_own(home):
            self._foreign(node, f"{name} (from {home})")

    def visit_Call(self, node: ast.Call) -> None:
        function = self._resolve(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(function, types.FunctionType) and self._reader.is_own(function.__module__):
            self._reader.read(function, self._tainted_parameters(function, node))
        else:
            self.visit(node.func)
        self._check_call(node, function, any(self.tainted(argument) for argument in arguments))
        for argument in arguments:
            self.visit(argument)

    def _tainted_parameters(self, function: types.FunctionType, node: ast.Call) -> set[str]:
        names = list(inspect.signature(function).parameters)
        starred = [a for a in node.args if isinstance(a, ast.Starred)] + [k for k in node.keywords if k.arg is None]
        if starred:
            return set(names) - {"xp"}
        passed = [*zip(names, node.args, strict=False), *((k.arg or "", k.value) for k in node.keywords)]
        return {name for name, value in passed if self.tainted(value)}

    def _check_call(self, node: ast.Call, function: Any, tainted: bool) -> None:
        text = ast.unparse(node.func)
        last = text.rpartition(".")[2]
        method = isinstance(node.func, ast.Attribute) and function is MISSING
        tainted = tainted or (method and self.tainted(node.func))
        if any(keyword.arg == "out" for keyword in node.keywords):
            self.report(node, f"writes into an array in place ({ast.unparse(node)})")
        if isinstance(node.func, ast.Attribute) and LIST_WRITERS.fullmatch(last) and self._is_global(node.func.value):
            self.report(node, MEMORY_ADVICE.format(ast.unparse(node)))
        if ".random." in f".{text}." and method:
            self.report(node, f"draws random numbers itself ({text}); randomness comes through u only")
        if tainted:
            self._check_call_on_state(node, text, last, method)

    def _check_call_on_state(self, node: ast.Call, text: str, last: str, method: bool) -> None:
        if method and (REDUCTIONS.fullmatch(last) or ".linalg." in text):
            self.report(node, SUM_ADVICE.format(text))
        elif method and (last in DATA_SHAPES or (last == "where" and len(node.args) == 1)):
            self.report(node, f"calls {text}, whose result's shape depends on the state; use xp.where")
        elif method and last in WRITERS:
            self.report(node, f"writes into an array in place ({ast.unparse(node)}); make a new value instead")
        elif text in DECIDES and self._resolve(node.func) is getattr(builtins, text):
            self.report(node, f"calls {text}() on a state value, which works for one env only; use xp's functions")
        elif text.startswith("math.") or last in ("item", "tolist"):
            self.report(node, f"calls {text} on a state value, which works for one env only; use xp's functions")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult) and self.tainted(node):
            self.report(node, SUM_ADVICE.format("@"))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _looks_boolean(node.slice) and self.tainted(node.slice):
            self.report(node, f"selects with a mask ({ast.unparse(node)}), so the result's shape depends on the state")
        self.generic_visit(node)


def _looks_boolean(node: ast.expr) -> bool:
    logical = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].startswith(("logical_", "is"))
    operators = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)
    return isinstance(node, ast.Compare) or logical or operators


def _home(value: Any) -> str:
    """The module that an object comes from; a plain number or string has none and counts as built in."""
    owner = getattr(value, "__self__", None)
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if owner is not None and not isinstance(value, type):
        return type(owner).__module__
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, types.FunctionType | type | types.BuiltinFunctionType):
        return value.__module__ or "builtins"
    return type(value).__module__
