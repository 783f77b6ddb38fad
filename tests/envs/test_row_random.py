"""Generators for many rows at once against `numpy.random`."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_custom.drivers.row_random import RowGenerators
from gym_custom.drivers.row_streams import StreamsAhead, StreamsOnDemand

some_seeds = st.lists(
    st.one_of(st.integers(0, 2**32), st.integers(0, 2**128 - 1), st.integers(2**128, 2**300)), min_size=1, max_size=20
)


def generators(seeds: list[int]) -> RowGenerators:
    rows = RowGenerators(len(seeds))
    rows.seed(np.arange(len(seeds)), seeds)
    return rows


def expected(seeds: list[int], count: int) -> np.ndarray:
    """NumPy's own numbers, (count, rows)."""
    return np.array([np.random.default_rng(seed).random(count) for seed in seeds]).T


@settings(max_examples=100, deadline=None)
@given(seeds=some_seeds, first=st.integers(0, 50), count=st.integers(0, 60))
def test_numbers_and_looking_ahead_are_numpys(seeds, first, count):
    rows = generators(seeds)
    all_rows, numbers = np.arange(len(seeds)), expected(seeds, first + count + 3)
    assert np.array_equal(rows.uniforms(all_rows, first, count), numbers[first : first + count])
    assert np.array_equal(rows.draw(all_rows, first + count)[0], numbers[: first + count])  # looking moved nothing
    assert np.array_equal(rows.uniforms(all_rows, -first, first + 3), numbers[count:])  # and may go back


@settings(max_examples=100, deadline=None)
@given(seeds=some_seeds, data=st.data())
def test_each_row_may_stand_elsewhere(seeds, data):
    moves = np.array(data.draw(st.lists(st.integers(0, 200), min_size=len(seeds), max_size=len(seeds))))
    rows, numbers = generators(seeds), expected(seeds, 205)
    wanted = np.array([numbers[move : move + 5, row] for row, move in enumerate(moves)]).T
    assert np.array_equal(rows.uniforms(np.arange(len(seeds)), moves, 5), wanted)
    for row, move in enumerate(moves):
        rows.draw(np.array([row]), int(move))
    assert np.array_equal(rows.uniforms(np.arange(len(seeds)), 0, 5), wanted)
    for row, move in enumerate(moves):
        assert rows.generator(row).random() == numbers[move, row]
        assert rows.generator(row, ahead=3).random() == numbers[move + 3, row]
        assert rows.generator(row, ahead=-int(move)).random() == numbers[0, row]


def test_a_million_numbers_in_tiles_are_numpys():
    seeds = list(range(1_000))
    found = generators(seeds).draw(np.arange(1_000), 250, 4)  # (draws, items, rows)
    assert np.array_equal(found, expected(seeds, 1_000).reshape(250, 4, 1_000).swapaxes(0, 1))


@settings(max_examples=60, deadline=None)
@given(
    num_envs=st.integers(1, 30),
    draws=st.integers(0, 5),
    takes=st.lists(st.sets(st.integers(0, 29)), max_size=150),
    seed=st.integers(0, 2**64),
    kind=st.sampled_from([StreamsAhead, StreamsOnDemand]),
)
def test_items_come_from_each_rows_own_sequence_whoever_takes(num_envs, draws, takes, seed, kind):
    """An item is its numbers in reverse and a 7; naive generators, one a row, tell what it must be."""
    streams = kind(num_envs, draws, lambda u: [np.concatenate([u[::-1], np.full((1, u.shape[1]), 7.0)])])
    naive = [np.random.default_rng(seed + row) for row in range(num_envs)]
    streams.seed(np.arange(num_envs), [seed + row for row in range(num_envs)])
    for turn, chosen in enumerate(takes):
        rows = np.array(sorted(row for row in chosen if row < num_envs), np.int64)
        wanted = np.array([naive[row].random(draws) for row in rows]).reshape(len(rows), draws)
        if turn % 5 == 4:  # by way of the numbers behind an item
            assert np.array_equal(streams.take_uniforms(rows).T, wanted)
        else:
            assert np.array_equal(streams.take(rows)[0].T, np.c_[wanted[:, ::-1], np.full(len(rows), 7.0)])
        if turn % 11 == 10 and len(rows):  # some rows begin anew
            streams.seed(rows[:1], [turn])
            naive[rows[0]] = np.random.default_rng(turn)
    for row, generator in enumerate(naive):
        assert streams.generator(row).random() == generator.random()


@pytest.mark.parametrize("kind", [functools.partial(StreamsAhead, at_once=7), StreamsOnDemand])
def test_several_items_at_once_come_in_order(kind):
    streams = kind(3, 1, lambda u: [u])
    streams.seed(np.arange(3), [5, 6, 7])
    naive = [np.random.default_rng(seed) for seed in (5, 6, 7)]
    for turn in range(100):
        rows, count = np.array([0, 2] if turn % 3 else [0, 1, 2]), 1 + turn % 7
        found = streams.take_many(rows, count)[0][0]
        assert np.array_equal(found, np.array([naive[row].random(count) for row in rows]).T)


@pytest.mark.parametrize("kind", [StreamsAhead, StreamsOnDemand])
@pytest.mark.parametrize("num_envs", [1, 100])
def test_a_snapshot_brings_the_same_items_back(num_envs, kind):
    streams, rows = kind(num_envs, 2, lambda u: [u]), np.arange(num_envs)
    streams.seed(rows, list(range(num_envs)))
    for _ in range(25):
        streams.take(rows[::2])
    other = kind(num_envs, 2, lambda u: [u])
    other.set_state(streams.get_state())
    for _ in range(200):
        assert np.array_equal(streams.take(rows)[0], other.take(rows)[0])
