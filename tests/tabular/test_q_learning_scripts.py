"""The scripts on Q-learning, with tiny budgets."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import benchmark_q_learning
import train_q_learning

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install gym_custom[report]")
pytest.importorskip("tqdm", reason="tqdm is not installed: pip install gym_custom[agents]")
pytest.importorskip("pygame", reason="pygame-ce is not installed")


def test_the_python_loop_counts_episodes_and_draws(tmp_path, capsys):
    arguments = ["--mode", "python", "--num-episodes", "40", "--output", str(tmp_path)]
    assert train_q_learning.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "Total number of steps: " in printed
    assert "Number of steps per second: " in printed
    assert np.load(tmp_path / "python.npy").shape == (5, 5, 4)
    assert (tmp_path / "python.png").stat().st_size > 10_000


def test_a_second_run_leaves_what_the_first_wrote(tmp_path):
    first, second, third = (train_q_learning.new_files(tmp_path, "scan") for _ in range(3))
    assert first == second == third == (tmp_path / "scan.png", tmp_path / "scan.npy")
    first[1].write_text("values")
    assert train_q_learning.new_files(tmp_path, "scan") == (tmp_path / "scan-2.png", tmp_path / "scan-2.npy")
    (tmp_path / "scan-2.png").write_text("picture")
    assert train_q_learning.new_files(tmp_path, "scan") == (tmp_path / "scan-3.png", tmp_path / "scan-3.npy")
    assert train_q_learning.new_files(tmp_path, "parallel")[0] == tmp_path / "parallel.png"


def test_a_missing_matplotlib_is_found_before_any_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        train_q_learning.main(["--mode", "python", "--num-steps", "1000000000", "--output", str(tmp_path / "new")])
    assert "needs matplotlib: pip install --editable '.[report]'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("mode", "steps"), [("scan", "2,000"), ("parallel", "2,000 * 3 = 6,000")])
def test_the_compiled_loops_draw_too(mode, steps, tmp_path, capsys):
    pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
    arguments = ["--mode", mode, "--num-steps", "2000", "--env-kwargs", "size:4", "--output", str(tmp_path)]
    arguments += ["--num-agents", "3"] if mode == "parallel" else []
    assert train_q_learning.main(arguments) == 0
    assert f"Total number of steps: {steps}\n" in capsys.readouterr().out
    assert np.load(tmp_path / f"{mode}.npy").shape == (4, 4, 4)
    assert (tmp_path / f"{mode}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mode", "scan", "--num-episodes", "5"], "--num-episodes"),
        (["--mode", "python", "--num-agents", "5"], "--num-agents"),
        (["--mode", "python", "--discount", "2"], "discount"),
        (["--mode", "python", "--env", "NoSuchWorld-v0"], "NoSuchWorld"),
        (["--num-steps", "0"], "positive"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments, sentence, tmp_path, capsys):
    assert train_q_learning.main([*arguments, "--output", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_benchmark_writes_every_repeat(tmp_path, capsys):
    pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
    arguments = ["--num-agents", "1", "3", "--repeats", "2", "--steps", "20000", "--output", str(tmp_path)]
    assert benchmark_q_learning.main(arguments) == 0
    assert "best of ours" in capsys.readouterr().out
    with (tmp_path / "benchmark_q_learning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["name"], row["agents"]) for row in rows} >= {
        ("recipe", "1"),
        ("recipe", "3"),
        ("ours", "1"),
        ("ours", "3"),
    }
    assert all(float(row["steps_per_second"]) > 0 for row in rows)
