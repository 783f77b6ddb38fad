"""The wheel: what it holds, and that the environments run from it in an empty folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
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


def run(*command: str, **options) -> None:
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("setuptools", reason="the wheel is built without a network, so with the setuptools at hand")
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("gym_custom", "agents", "tests", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist"]
    run(sys.executable, "-m", "pip", "wheel", ".", *options, cwd=folder)
    return next((folder / "dist").glob("*.whl"))


def test_the_wheel_holds_the_two_packages_and_nothing_else(wheel):
    names = ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == TOP_LEVEL
    assert {"gym_custom/py.typed", "agents/py.typed"} <= set(names)


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
