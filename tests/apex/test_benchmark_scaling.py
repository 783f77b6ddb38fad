"""The arithmetic of docs/scaling.md, and a run of the script that measures its terms."""

import benchmark_scaling
import pytest

from agents.apex import ApeXConfig


def test_room_of_the_learner_by_hand():
    config = ApeXConfig(samples_per_insert=8.0, batch_size=32, block_steps=10, envs_per_actor=10)
    figures = {"act": 1e-3, "take": 2e-6, "update": 4e-4, "publish": 1e-4}
    worked_out = benchmark_scaling.model(figures, config)
    seconds = 2e-6 + 8 / 32 * 4e-4 + 1e-4 / 100
    assert worked_out["rows_the_learner"] == pytest.approx(1 / seconds)
    assert worked_out["rows_an_actor"] == pytest.approx(1_000)
    assert worked_out["actors"] == pytest.approx(1e-3 / seconds)


def test_the_script_measures_and_refuses_in_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(benchmark_scaling, "UPDATES", 4)
    monkeypatch.setattr(benchmark_scaling, "BLOCKS", 4)
    assert (
        benchmark_scaling.main(["--env", "CartPole-v1", "--repeats", "1", "--run", "inline:1", "--steps", "600"]) == 0
    )
    output = capsys.readouterr().out
    assert all(name in output for name in ("act ", "take ", "update ", "publish ", "rows_the_learner", "inline:1 "))
    assert benchmark_scaling.main(["--ratio", "-1"]) == 2
    assert "samples_per_insert must be a number above 0" in capsys.readouterr().err
