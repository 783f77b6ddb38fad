"""Trained rows per collected row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.apex.ratio import SamplesPerInsert


def drain(ratio):
    updates = 0
    while ratio.may_sample():
        ratio.sample()
        updates += 1
    return updates


@given(
    st.floats(0.1, 50), st.integers(1, 300), st.integers(1, 200), st.lists(st.integers(0, 500), min_size=1, max_size=50)
)
def test_trained_rows_are_the_multiple_to_within_one_batch(target, warmup, batch_size, blocks):
    ratio = SamplesPerInsert(target, warmup, batch_size)
    for rows in blocks:
        ratio.insert(rows)
        drain(ratio)
        due = max(ratio.inserted - warmup, 0) * target
        assert due - batch_size < ratio.sampled <= max(due, 0)


def test_nothing_is_trained_in_warmup_and_no_burst_follows_it():
    ratio = SamplesPerInsert(8, 1000, 64)
    ratio.insert(999)
    assert not ratio.may_sample()
    ratio.insert(9)
    assert drain(ratio) == 1


def test_no_burst_after_a_resume():
    ratio = SamplesPerInsert(8, 1000, 50)
    ratio.insert(100_000)
    drain(ratio)
    again = SamplesPerInsert(8, 1000, 50)
    again.load_state_dict(ratio.state_dict())
    again.insert(100)
    assert drain(again) * 50 == pytest.approx(800, abs=50)
