"""Every script, as a stranger calls it: help and refusals come at once, in one sentence, whatever is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
HELPERS = {"extras.py", "jax_device.py"}
NAMES = sorted(path.name for path in SCRIPTS.glob("*.py") if path.name not in HELPERS)
HEAVY = ("torch", "jax", "ray", "stable_baselines3", "matplotlib", "scipy", "pygame")
LOADS_TORCH = {"ablate_apex.py", "benchmark_apex_parts.py", "benchmark_scaling.py"}  # replace or measure parts of it
EXTRAS = ("torch", "jax", "ray", "stable_baselines3", "matplotlib", "scipy", "tqdm", "tyro", "psutil", "jinja2", "PIL")
pytestmark = pytest.mark.serial

WATCHED = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("LOADED", *(set({heavy}) & set(sys.modules)))
"""
WITHOUT_EXTRAS = """
import os, runpy, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def call(code: str, name: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, str(SCRIPTS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, stdin=subprocess.DEVNULL)


def script(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(SCRIPTS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LOADS_TORCH])
def test_refusals_wait_for_nothing_heavy(name):
    done = call(WATCHED.format(heavy=HEAVY), name, "--nonsense")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith((f"{name}: ", f"{Path(name).stem}: "))
    assert done.stdout == "LOADED\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_help_waits_for_nothing_heavy(name):
    done = call(WATCHED.format(heavy=HEAVY), name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ")
    loaded = done.stdout.splitlines()[-1].split()[1:]
    assert set(loaded) <= ({"torch"} if name in LOADS_TORCH else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_without_the_extras_there_is_help_or_one_sentence_about_them(name):
    done = call(WITHOUT_EXTRAS.format(extras=EXTRAS), name, "--help")
    if done.returncode:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "pip install --editable '.[" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ablate_apex.py", ["--draw-only", "--results", "taken/x.csv"]),
        ("benchmark_apex.py", ["--out", "taken/x.csv"]),
        ("benchmark_envs.py", ["--output", "taken"]),
        ("benchmark_q_learning.py", ["--output", "taken"]),
        ("benchmark_replay.py", ["--output", "taken"]),
        ("compare_baselines.py", ["--log-folder", "taken"]),
        ("compare_observations.py", ["--output", "taken"]),
        ("demo.py", ["--output", "taken/x.gif"]),
        ("evaluate_robots.py", ["--output", "taken/x.csv"]),
        ("evaluate_robots.py", ["--heat-map", "taken/x.png"]),
        ("make_pretrained.py", ["NumpyCartPole-v1", "--output", "taken"]),
        ("play.py", ["--output", "taken/x.gif"]),
        ("report.py", ["taken"]),
        ("train_apex.py", ["--run-folder", "taken"]),
        ("train_apex.py", ["--save", "taken/x.apex"]),
        ("train_apex.py", ["--resume", "taken"]),
        ("train_q_learning.py", ["--output", "taken"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_file_in_place_of_a_folder_is_named_before_anything_is_worked_out(name, arguments, tmp_path):
    (tmp_path / "taken").write_text("dear diary")
    done = script(name, *arguments, folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "taken" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    assert (tmp_path / "taken").read_text() == "dear diary"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("benchmark_apex.py", ["--env", "Nowhere-v0"]),
        ("benchmark_apex.py", ["--env", "MyEnvHard-v0"]),  # nothing counts as solved there
        ("benchmark_apex_parts.py", ["--env", "Nowhere-v0"]),
        ("benchmark_scaling.py", ["--env", "Nowhere-v0"]),
        ("benchmark_scaling.py", ["--run", "lokal:1"]),
        ("benchmark_scaling.py", ["--run", "local:-1"]),
        ("evaluate_robots.py", ["--env", "GridWorld-v0"]),
        ("evaluate_robots.py", ["--heat-map", "map.txt"]),
        ("compare_observations.py", ["--observations", "sonar"]),
        ("ablate_apex.py", ["--steps", "10"]),
        ("ablate_apex.py", ["--draw-only", "--results", "nowhere.csv"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_senseless_values_get_one_sentence_and_leave_nothing_behind(name, arguments, tmp_path):
    done = script(name, *arguments, folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert not list(tmp_path.iterdir())


PROGRAMS = [[str(SCRIPTS / name)] for name in NAMES]
PROGRAMS += [["-m", "gym_custom"], ["-m", "gym_custom", "demo"], ["-m", "agents"], ["-m", "agents", "train"]]
QUICK = ("train_apex.py", "gym_custom", "agents")  # one of each kind of entrance; the others take their time
ENTRANCES = [
    pytest.param(words, id=" ".join([Path(words[0]).name, *words[1:]]), marks=() if quick else pytest.mark.slow)
    for words in PROGRAMS
    for quick in [words[-1].endswith(QUICK)]
]


@pytest.mark.parametrize("words", ENTRANCES)
def test_a_reader_that_has_gone_ends_a_program_quietly(words):
    command = [sys.executable, *words, "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        program.stdout.close()  # as ``head`` does
        said = program.stderr.read()
    assert said == ""
    assert program.returncode in (0, 141)  # argparse may have noticed first


@pytest.mark.parametrize("words", ENTRANCES)
def test_closed_streams_change_no_exit_code(words):
    for word, code in (("--help", 0), ("--nonsense", 2)):
        command = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, *words, word]
        assert subprocess.run(command, timeout=120).returncode == code


@pytest.mark.parametrize("words", ENTRANCES)
def test_help_fits_narrow_terminals(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    done = subprocess.run([sys.executable, *words, "--help"], capture_output=True, text=True, timeout=120)
    long = [line for line in done.stdout.splitlines() if len(line) > 72]
    assert not [line for line in long if "python" not in line and "--" not in line]  # examples stay whole
