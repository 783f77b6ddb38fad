"""The health figures against counts by hand."""

import csv

import numpy as np
import pytest

from agents.apex.health import Health, effective_sample_size
from agents.types import Batch

from .helpers import agent


def batch(*ids, weights=None):
    return Batch(None, np.array(ids), np.ones(len(ids)) if weights is None else np.array(weights), None)


def test_ages_shares_and_sizes_by_hand():
    health = Health()
    health.inserted(np.arange(5), 8)
    health.drawn(batch(0, 0, 4, weights=[1.0, 1.0, 0.5]))
    figures = health.figures()
    assert figures["row_age"] == pytest.approx(5 - 4 / 3)
    assert figures["effective_sample_size"] == pytest.approx(2.5**2 / 2.25)
    assert figures["never_drawn"] == 3 / 5
    health.inserted(np.arange(5, 12), 8)  # ids 4 to 11 are alive, of which 4 was drawn
    assert health.figures()["never_drawn"] == 7 / 8
    assert np.isnan(health.figures()["row_age"])


def test_equal_weights_count_in_full_and_one_alone_as_one():
    assert effective_sample_size(np.full(64, 0.3)) == pytest.approx(64)
    assert effective_sample_size(np.array([1.0, 0.0, 0.0])) == 1


def test_the_log_has_them(tmp_path):
    ape = agent(tmp_path, log_interval=200).learn(1_000)
    with (ape.run_folder / "progress.csv").open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    for row in rows[2:-1]:
        assert 0 < row["row_age"] < row["memory_rows"]
        assert 1 <= row["effective_sample_size"] <= 32
        assert 0 <= row["never_drawn"] < 1
        assert row["rows_out_per_second"] / row["rows_in_per_second"] == pytest.approx(4.0, rel=0.3)
