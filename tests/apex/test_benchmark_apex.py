"""The benchmark's clock, table and file."""

import math
import time

import benchmark_apex
import pytest
from benchmark_apex import Result, Solved, Stopwatch, append, findings, read, table


def result(algorithm="apex", seed=0, solved=True, seconds=1.0):
    return Result("NumpyCartPole-v1", algorithm, seed, solved, seconds, 5_000, math.nan)


def evaluate(watch, *returns, seconds=0.0):
    for number, mean in enumerate(returns, start=1):
        watch.evaluated(mean, time.monotonic() - seconds, number * 1_000)


def test_two_evaluations_in_a_row_are_asked_for():
    watch = Stopwatch(time.monotonic(), 475.0, whole=False)
    evaluate(watch, 500, 474.9, 475, 100)
    assert watch.solved is None
    with pytest.raises(Solved):
        evaluate(watch, 475, 500)
    assert watch.result("x", "apex", 3, 9_000)[3:6:2] == (True, 2_000)


def test_evaluations_are_outside_the_clock():
    watch = Stopwatch(time.monotonic() - 100, 475.0, whole=False)
    evaluate(watch, 0, 0, seconds=30)
    assert watch.seconds == pytest.approx(40, abs=5)


def test_a_run_that_does_not_get_there_counts_with_its_whole_time_and_is_marked():
    watch = Stopwatch(time.monotonic() - 100, 475.0, whole=False)
    evaluate(watch, 10, 20)
    told = watch.result("x", "dqn", 0, 50_000)
    assert (told.solved, told.env_steps) == (False, 50_000)
    assert told.seconds == pytest.approx(100, abs=5)
    lines = table([told, result("apex", 0, seconds=7)]).splitlines()
    assert lines[0] == "| seed | apex | dqn |"
    assert lines[2].startswith("| 0 | 7.0 | 10")
    assert lines[2].endswith("* |")


def test_a_whole_run_tells_how_much_of_its_best_is_kept():
    watch = Stopwatch(time.monotonic() - 10, 475.0, whole=True)
    evaluate(watch, 500, 500, 400, 400, 400, 400, 400)
    told = watch.result("x", "apex", 0, 50_000)
    assert (told.env_steps, told.last_over_best) == (2_000, 0.8)


def test_the_table_lists_all_times_and_medians():
    rows = [result("apex", seed, seconds=seconds) for seed, seconds in enumerate((1.0, 9.0, 2.0))]
    lines = table([*rows, result("ppo", 1, seconds=4.0)]).splitlines()
    assert lines == [
        "| seed | apex | ppo |",
        "|---|---|---|",
        "| 0 | 1.0 |  |",
        "| 1 | 9.0 | 4.0 |",
        "| 2 | 2.0 |  |",
        "| median | 2.0 | 4.0 |",
    ]


def test_the_findings_count_and_compare():
    kept = [result("apex", seed)._replace(last_over_best=share) for seed, share in enumerate((1.0, 0.95, 0.94))]
    others = [result("dqn", 0, solved=False, seconds=8.0), result("dqn", 1, seconds=2.0)]
    assert findings([*kept, *others]) == [
        "apex: 3 of 3 got there within 100,000 steps",
        "apex: 2 of 3 end with five evaluations of 95% of the best",
        "dqn: 1 of 2 got there within 50,000 steps",
        "median of apex by that of dqn: 0.20",
    ]


def test_results_are_added_to_the_file_and_read_back(tmp_path):
    path = tmp_path / "new" / "table.csv"
    assert read(path) == []
    rows = [result(seed=1), result("dqn", 2, solved=False, seconds=80.25)]
    for row in rows:
        append(path, row)
    assert [row[:6] for row in read(path)] == [row[:6] for row in rows]
    assert path.read_text().startswith("#{")


def test_runs_that_the_file_holds_are_not_repeated(tmp_path, monkeypatch, capsys):
    ran = []

    def run(env_id, algorithm, seed):
        ran.append((algorithm, seed))
        return result(algorithm, seed)

    monkeypatch.setattr(benchmark_apex, "in_own_process", run)
    path = tmp_path / "table.csv"
    append(path, result("ppo", 1))
    command = ["--algorithms", "apex", "ppo", "--seeds", "0", "1", "--out", str(path)]
    assert benchmark_apex.main(command) == benchmark_apex.main(command) == 0
    assert ran == [("apex", 0), ("ppo", 0), ("apex", 1)]
    assert "| median | 1.0 | 1.0 |" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.timeout(900)
@pytest.mark.parametrize("algorithm", ["apex", "ppo"])
def test_a_run_in_its_own_process(algorithm):
    told = benchmark_apex.in_own_process("NumpyCartPole-v0", algorithm, 1)
    assert told.solved
    assert 2_000 <= told.env_steps <= 100_000
    assert told.seconds > 1
