"""The arrows between the modules, read from the source: who may import whom, and what `import gym_custom` may load."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from gym_custom import load_world

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gym_custom", "agents")
FILES = sorted(path for folder in (*PACKAGES, "scripts") for path in (ROOT / folder).rglob("*.py"))
PACKAGE_FILES = [path for path in FILES if path.relative_to(ROOT).parts[0] in PACKAGES]
HEAVY = {"pygame", "jax", "torch", "tensorflow", "ray", "stable_baselines3"}

DRIVERS = ("drivers", "functional", "recording")
"""Folders whose modules serve any world."""

RAY_FILES = {"agents/apex/ray_cluster.py"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


JAX_FILES = {
    name
    for name in map(name_of, PACKAGE_FILES)
    if name.startswith(("gym_custom/functional/", "agents/tabular/parallel/"))
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The full name behind ``from .x import y``."""
    if not node.level:
        return node.module or ""
    package = module_of(path).split(".")
    if path.stem != "__init__":
        package = package[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def for_types_only(tree: ast.AST) -> set[ast.AST]:
    """Nodes under ``if TYPE_CHECKING``: read by type checkers, never run."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


def imports(path: Path, eager_only: bool = False) -> set[str]:
    """Full dotted names that a file imports; eager_only leaves out those inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = for_types_only(tree)
    if eager_only:
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
        skipped |= {inner for function in functions for inner in ast.walk(function)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = absolute(path, node)
            found |= {
                base if (ROOT / (base.replace(".", "/") + ".py")).exists() else f"{base}.{a.name}" for a in node.names
            }
    return found


def roots(path: Path, eager_only: bool = False) -> set[str]:
    return {name.split(".")[0] for name in imports(path, eager_only)}


def importers(library: str, files: list[Path]) -> set[str]:
    return {name_of(path) for path in files if library in roots(path)}


def rules_files() -> list[Path]:
    """The modules of every registered world's rules and, from there, whatever modules of the package they import."""
    found = [path for path in PACKAGE_FILES if module_of(path) in rule_modules()]
    for path in found:  # grows while it is read
        found += [p for p in map(file_of, imports(path)) if p is not None and p not in found]
    return found


def rule_modules() -> set[str]:
    """Where the functions of the registered worlds come from."""
    rules = [
        getattr(load_world(env_id)[0], role)
        for env_id in registered()
        for role in ("initial_state", "transition", "outcome", "observe", "info")
    ]
    return {inspect.unwrap(getattr(rule, "func", rule)).__module__ for rule in rules if rule is not None}


def registered() -> list[str]:
    return sorted(i for i, s in gymnasium.registry.items() if str(s.entry_point).startswith("gym_custom"))


def file_of(name: str) -> Path | None:
    """The package's own file behind an imported name, a module's or that of something in a module."""
    candidates = [ROOT / (stem.replace(".", "/") + ".py") for stem in (name, name.rpartition(".")[0])]
    return next((path for path in candidates if path in PACKAGE_FILES), None)


RULES = rules_files()


def test_the_scan_sees_the_packages():
    assert {"gym_custom/__init__.py", "gym_custom/world.py", "agents/types.py"} <= {name_of(p) for p in PACKAGE_FILES}
    assert {path.stem for path in RULES} >= {"dynamics"}
    assert "numpy" in roots(ROOT / "gym_custom/world.py")


def test_the_packages_do_not_know_each_other():
    crossing = [name_of(p) for p in PACKAGE_FILES if {"gym_custom", "agents"} - {name_of(p).split("/")[0]} & roots(p)]
    assert not crossing


def test_the_packages_import_neither_scripts_nor_tests():
    assert not [name_of(p) for p in PACKAGE_FILES if {"scripts", "tests"} & roots(p)]


@pytest.mark.parametrize("path", sorted(RULES), ids=name_of)
def test_rules_import_only_math_typing_functools_and_each_other(path):
    foreign = {n for n in imports(path) if n.split(".")[0] not in ("math", "typing", "functools", "__future__")}
    assert {file_of(name) in RULES and file_of(name).parent == path.parent for name in foreign} <= {True}


@pytest.mark.parametrize("path", [p for p in PACKAGE_FILES if p.stem == "layout"], ids=name_of)
def test_a_layout_needs_numpy_and_nothing_of_the_package_but_its_rules_and_the_words_for_what_is_wrong(path):
    known = {*RULES, ROOT / "gym_custom/arguments.py"}
    assert {file_of(n) for n in imports(path) if n.split(".")[0] == "gym_custom"} <= known
    assert not roots(path) & (HEAVY | {"gymnasium"})


@pytest.mark.parametrize("path", [p for p in PACKAGE_FILES if p.stem == "draw"], ids=name_of)
def test_a_picture_goes_through_the_canvas(path):
    assert not roots(path) & HEAVY, "draw functions know the Canvas, never pygame"
    assert not {n for n in imports(path) if n.startswith(("gym_custom.single", "gym_custom.vector"))}


@pytest.mark.parametrize("path", [p for p in PACKAGE_FILES if p.parent.name in ("gym_custom", *DRIVERS)], ids=name_of)
def test_drivers_know_no_particular_world(path):
    worlds = {p.parent.name for p in PACKAGE_FILES if p.stem == "dynamics"}
    parts = {part for name in imports(path) for part in name.split(".")}
    assert not parts & worlds


def test_each_heavy_library_has_its_one_place():
    assert importers("jax", PACKAGE_FILES) <= JAX_FILES
    assert importers("ray", PACKAGE_FILES) <= RAY_FILES
    pygame = importers("pygame", PACKAGE_FILES)
    assert {"/".join(n.split("/")[:2]) for n in pygame} <= {"gym_custom/window.py"}
    outside = {n for n in importers("stable_baselines3", FILES) if not n.startswith(("agents/sb3/", "scripts/"))}
    assert not outside
    assert not {n for n in importers("torch", PACKAGE_FILES) if n.startswith("gym_custom/")}


@pytest.mark.parametrize("path", [p for p in PACKAGE_FILES if "gym_custom" in name_of(p)], ids=name_of)
def test_gym_custom_loads_heavy_libraries_only_when_used(path):
    eager = roots(path, eager_only=True) & HEAVY
    assert eager <= ({"jax"} if name_of(path) in JAX_FILES else set())


ALLOWED_RANDOM = {"default_rng", "Generator", "SeedSequence", "PCG64", "BitGenerator", "get_state", "getstate"}


def global_draws(path: Path) -> list[str]:
    """Uses such as ``np.random.rand`` or ``random.random``, which draw from the process's own generators."""
    found = []
    owner = r"(np|numpy)\.random" + (r"|random" if "random" in imports(path) else "")  # jax.random takes keys
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr not in ALLOWED_RANDOM:
            full = ast.unparse(node)
            if re.fullmatch(rf"({owner})\.\w+", full):
                found.append(f"{name_of(path)}:{node.lineno} {full}")
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            found.append(f"{name_of(path)}:{node.lineno} from random import ...")
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_randomness_is_an_argument(path):
    assert not global_draws(path)


def test_the_search_for_global_draws_finds_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text("import random\nx = np.random.rand()\ny = random.random()\nok = np.random.default_rng(0)\n")
    assert global_draws(bad) == ["bad.py:2 np.random.rand", "bad.py:3 random.random"]


def run(code: str) -> None:
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd="/")
    assert result.returncode == 0, result.stderr


IMPORT_AND_PLAY = """
import sys, warnings, gymnasium, gym_custom
warnings.filterwarnings("ignore", message="(?s).*is out of date")
for i in {ids}:
    env = gymnasium.make(i)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    gymnasium.make_vec(i, num_envs=2).reset(seed=0)
loaded = {heavy} & set(sys.modules)
assert not loaded, loaded
"""


@pytest.mark.serial
def test_making_and_stepping_every_id_loads_nothing_heavy():
    run(IMPORT_AND_PLAY.format(ids=registered(), heavy=HEAVY))


@pytest.mark.serial
def test_import_agents_loads_nothing_heavy():
    run(f"import sys, agents; assert not {HEAVY} & set(sys.modules)")


WITHOUT_JAX = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "jax": raise ModuleNotFoundError("No module named 'jax'", name="jax")
sys.meta_path.insert(0, Nothing())
import importlib
for name in ("gym_custom.functional", "agents.tabular.parallel"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(error)
"""


@pytest.mark.serial
def test_without_jax_one_sentence_names_the_extra():
    result = subprocess.run([sys.executable, "-c", WITHOUT_JAX], capture_output=True, text=True, check=True)
    names = "gym_custom.functional", "agents.tabular.parallel"
    assert result.stdout == "".join(f"{name} needs JAX: pip install --editable '.[jax]'\n" for name in names)


def config_classes() -> list[type]:
    """Public dataclasses of the agents whose name ends in Config."""
    found = {}
    for path in PACKAGE_FILES:
        if "config" in path.stem:
            module = importlib.import_module(module_of(path))
            found |= {
                c.__name__: c for c in vars(module).values() if dataclasses.is_dataclass(c) and isinstance(c, type)
            }
    return list(found.values())


def attributes_read(paths: list[Path]) -> set[str]:
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in paths]
    return {n.attr for t in trees for n in ast.walk(t) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}


def test_every_config_field_is_read_by_somebody():
    fields = {f"{c.__name__}.{f.name}" for c in config_classes() for f in dataclasses.fields(c)}
    # A check of the value in the config's own file is no use of it.
    used = attributes_read([p for p in PACKAGE_FILES if p.stem != "config"])
    assert not {name for name in fields if name.split(".")[1] not in used}
