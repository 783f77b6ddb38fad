"""Wheel and source distribution: what they hold, and that the environments run from them in an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOP_LEVEL = {"gym_custom", "agents"}
pytestmark = pytest.mark.serial

PLAY = """
import warnings, gymnasium as gym, gym_custom
assert gym_custom.__file__.startswith({site!r}), gym_custom.__file__
warnings.filterwarnings("ignore", message="(?s).*is out of date")
ids = [i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom")]
assert len(ids) >= 8, ids
for i in ids:
    for mode in gym.make(i).metadata["render_modes"]:
        if mode != "human":
            env = gym.make(i, render_mode=mode)
            env.reset(seed=0)
            env.step(0)
            assert env.render() is not None
    gym.make_vec(i, num_envs=2).reset(seed=0)
"""


NEWEST, OLDEST = 13, 10  # minor versions of Python 3 that are promised


def run(*command: str, **options) -> str:
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of what a clone holds, to build in."""
    pytest.importorskip("setuptools", reason="built without a network, so with the setuptools at hand")
    folder = tmp_path_factory.mktemp("source")
    for name in ("gym_custom", "agents", "tests", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source) -> Path:
    return build_wheel(source)


def build_wheel(folder: Path) -> Path:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist"]
    run(sys.executable, "-m", "pip", "wheel", ".", *options, cwd=folder)
    return next((folder / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def sdist(source) -> Path:
    build = "from setuptools.build_meta import build_sdist; print(build_sdist('dist'))"
    return source / "dist" / run(sys.executable, "-c", build, cwd=source).splitlines()[-1]


def test_the_wheel_holds_the_two_packages_and_nothing_else(wheel):
    names = ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == TOP_LEVEL
    wanted = {"gym_custom/py.typed", "agents/py.typed", "agents/apex/presets/MyEnv-v0.json"}
    assert wanted | {"agents/pretrained/data/NumpyCartPole-v1.npz"} <= set(names)
    assert wheel.stat().st_size < 4 * 1024**2


def test_a_wheel_from_the_source_distribution_is_the_same(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert not {"tests", "scripts", "docs"} & {path.name for path in folder.iterdir()}
    assert set(ZipFile(build_wheel(folder)).namelist()) == set(ZipFile(wheel).namelist())


def test_every_source_and_data_file_is_in_it(wheel):
    held = set(ZipFile(wheel).namelist())
    files = [path for top in TOP_LEVEL for path in (ROOT / top).rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    assert wanted - held == set()


def test_every_id_runs_from_the_wheel_in_an_empty_folder(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    run(sys.executable, "-c", PLAY.format(site=str(site)), cwd=empty, env={"PYTHONPATH": str(site), "PATH": ""})


def test_another_distribution_called_agents_does_no_harm_to_the_worlds(wheel, tmp_path):
    site, other = tmp_path / "site", tmp_path / "other"
    (other / "agents").mkdir(parents=True)
    (other / "agents" / "__init__.py").write_text("raise ImportError('another agents')")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    path = f"{other}:{site}"
    run(sys.executable, "-c", PLAY.format(site=str(site)), cwd=tmp_path, env={"PYTHONPATH": path, "PATH": ""})


def interpreters() -> Iterator[tuple[str, str]]:
    """The promised versions of Python that are at hand, and where."""
    for minor in range(OLDEST, NEWEST + 1):
        found = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
        for command in (sys.executable, f"python3.{minor}", *map(str, found)):
            try:
                shown = subprocess.run([command, "--version"], capture_output=True, text=True)
            except OSError:
                continue
            if shown.stdout.startswith(f"Python 3.{minor}."):
                yield f"3.{minor}", command
                break


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "python"), list(interpreters()), ids=lambda value: value if "." in value[:3] else ""
)
def test_with_the_core_alone_all_worlds_keep_their_contract(version, python, wheel, tmp_path):
    run(python, "-m", "venv", str(tmp_path / "venv"))
    inside, empty = str(tmp_path / "venv" / "bin" / "python"), tmp_path / "empty"
    empty.mkdir()
    try:
        run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    except AssertionError as error:
        if "ConnectionError" in str(error) or "No matching distribution" in str(error):
            pytest.skip(f"the core cannot be installed for Python {version} from here")
        raise
    environment = {"PATH": os.environ["PATH"], "SDL_VIDEODRIVER": "dummy", "HOME": str(tmp_path)}
    checked = run(inside, "-m", "gym_custom", "check", cwd=empty, env=environment)
    assert checked.count("keeps the contract") == checked.count("\n") >= 8
    assert "usage: python -m gym_custom demo" in run(inside, "-m", "gym_custom", "demo", "--help", cwd=empty)
    lacking = subprocess.run([inside, "-m", "agents", "train"], capture_output=True, text=True, cwd=empty)
    assert (lacking.returncode, lacking.stderr.count("\n")) == (2, 1)
    assert "[agents]" in lacking.stderr
    for package, code in (("agents.apex", "from agents.apex import ApeX"), ("agents.sb3", "import agents.sb3")):
        lacking = subprocess.run([inside, "-c", code], capture_output=True, text=True, cwd=empty)
        said = lacking.stderr.splitlines()[-1]
        assert said.startswith(f"ModuleNotFoundError: {package} needs ")
        assert "[agents]" in said
    run(inside, "-c", "from agents.replay import PrioritizedMemory; from agents.tabular import QLearning", cwd=empty)
    run(
        inside, "-c", "from agents import pretrained; pretrained.load('NumpyCartPole-v1').predict([0.0] * 4)", cwd=empty
    )
    assert not list(empty.iterdir())
