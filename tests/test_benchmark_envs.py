"""The benchmark script, in-process and with tiny budgets."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import benchmark_envs
from benchmarks import environments


def test_it_prints_a_table_and_writes_csv_and_plot(tmp_path, capsys):
    folder = tmp_path / "speed"
    assert (
        benchmark_envs.main(["--num-envs", "3", "1", "--repeats", "2", "--seconds", "0.001", "--output", str(folder)])
        == 0
    )
    printed = capsys.readouterr().out
    with (folder / "benchmark_envs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ours = [row for row in rows if row["name"] == "NumpyCartPole-v1" and row["num_envs"] == "3"]
    assert [row["repeat"] for row in ours] == ["0", "1"]
    assert all(float(row["transitions_per_second"]) > 0 for row in rows)
    first = [row for row in rows if row["name"] == "Gymnasium CartPoleVectorEnv"]
    assert all(float(row["ratio_to_first"]) == 1.0 for row in first)
    assert {row["num_envs"] for row in rows if "single" in row["group"]} == {"1"}
    assert "Gymnasium FrozenLake-v1" in printed
    assert (folder / "benchmark_envs.png").stat().st_size > 10_000


def test_rates_are_transitions_over_time_and_ratios_within_a_repeat(monkeypatch):
    clock = iter(np.arange(0.0, 1_000.0, 0.5))
    monkeypatch.setattr(benchmark_envs.time, "perf_counter", lambda: next(clock))

    def contestant(name: str, each: int) -> environments.Contestant:
        return environments.Contestant("g", name, lambda num_envs: lambda steps: steps * num_envs * each)

    found = benchmark_envs.measure([contestant("a", 1), contestant("b", 3)], num_envs=4, repeats=3, seconds=0.5)
    assert [m.rates for m in found] == [[8.0] * 3, [24.0] * 3]
    assert [m.ratios for m in found] == [[1.0] * 3, [3.0] * 3]


def test_rows_that_begin_anew_are_not_counted():
    """Limited to four steps, every fifth step of a row is none."""
    play = environments.vector("GridWorld-v0", max_episode_steps=4, layout=["S...........G"])(10)
    assert play(100) == pytest.approx(100 * 10 * 0.8, rel=0.01)


@pytest.mark.parametrize("argument", [["--num-envs", "0"], ["--seconds", "0"], ["--repeats", "x"], ["--nothing"]])
def test_senseless_arguments_get_one_sentence(argument, capsys):
    assert benchmark_envs.main(argument) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_missing_peers_are_named(monkeypatch, capsys):
    monkeypatch.setattr(environments.importlib.util, "find_spec", lambda name: None)
    assert environments.installed_peers() == []
    assert "EnvPool CartPole-v1: envpool is not installed" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("make", [environments.jax_step, environments.jax_rollout])
def test_what_runs_in_jax_counts_its_steps(make):
    pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
    length = environments.scan_length(16_000)
    assert make("GridWorld-v0")(16_000)(2 * length) == 2 * length * 16_000
