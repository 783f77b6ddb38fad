"""The benchmark script runs and writes what it prints."""

import csv
import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmark_replay.py"


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_small_benchmark_writes_table_and_plot(others, tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("benchmark_replay", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    if not others:  # whose import takes longer than all the rest
        script.CONTESTANTS = {"ours": script.CONTESTANTS["ours"]}
    arguments = ["--capacities", "64", "--batches", "8", "--repeats", "1", "--output", str(tmp_path)]
    assert script.main(arguments) == 0
    with (tmp_path / "replay.csv").open() as file:
        lines = list(csv.DictReader(file))
    ours = [line for line in lines if line["contestant"] == "ours"]
    assert [(line["what"], line["capacity"]) for line in ours] == [("round", "64"), ("append", "64"), ("default", "64")]
    assert all(float(line["microseconds"]) > 0 for line in lines)
    assert "round" in capsys.readouterr().out
