"""The sum tree against a plain array of leaves."""

import numpy as np
import pytest

from agents.replay import SumTree
from agents.replay import sum_tree as module

CAPACITIES = (1, 2, 3, 5, 7, 16, 17, 100, 300, 5000)


def small_root(monkeypatch):
    """Few nodes on top, so that small trees have many levels too."""
    monkeypatch.setattr(module, "ROOT_SIZE", 4)


@pytest.fixture(params=["flat", "deep"])
def shape(request, monkeypatch):
    if request.param == "deep":
        small_root(monkeypatch)


@pytest.mark.usefixtures("shape")
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_leaves_are_found_from_left_to_right(capacity):
    tree = SumTree(capacity)
    tree.set(np.arange(capacity), np.ones(capacity))
    np.testing.assert_array_equal(tree.find(np.arange(capacity) + 0.5), np.arange(capacity))
    np.testing.assert_array_equal(tree.find(np.arange(capacity) + 0.0), np.arange(capacity))
    assert tree.total == capacity


def test_zero_leaves_are_never_found():
    tree = SumTree(8)
    tree.set([0, 3, 5], [0.0, 2.0, 1.0])
    assert tree.find(0.0) == 3
    assert tree.find(np.nextafter(tree.total, 0)) == 5
    assert set(tree.find(np.random.default_rng(0).random(10**5) * tree.total)) == {3, 5}


@pytest.mark.usefixtures("shape")
@pytest.mark.parametrize("batch", [7, 1000])
def test_zero_leaves_are_never_found_over_many_decades(batch):
    rng = np.random.default_rng(1)
    for _ in range(200):
        tree = SumTree(int(rng.integers(1, 700)))
        values = 10.0 ** rng.uniform(-300, 3, tree.capacity) * (rng.random(tree.capacity) < 0.3)
        tree.set(np.arange(tree.capacity), values)
        if tree.total:
            edges = np.cumsum(values)
            masses = np.concatenate([rng.random(batch) * tree.total, edges, np.nextafter(edges, 0), [0.0]])
            masses = masses[masses < tree.total]
            assert (tree.get(tree.find(masses)) > 0).all()


@pytest.mark.parametrize("mass", [-1e-9, np.nan, 3.0, np.inf])
def test_masses_outside_are_refused(mass):
    tree = SumTree(4)
    tree.set([0, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="masses must lie in"):
        tree.find([0.5, mass])


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e308])
def test_bad_values_are_refused_by_row_and_nothing_is_written(value):
    tree = SumTree(4)
    tree.set([0, 1], [1.0, 2.0])
    before = tree.leaves.copy()
    with pytest.raises(ValueError, match="index 1"):
        tree.set([0, 2], [5.0, value])
    np.testing.assert_array_equal(tree.leaves, before)
    assert tree.total == 3


def test_bad_indices_and_capacities_are_refused():
    tree = SumTree(4)
    for bad in (-1, 4):
        with pytest.raises(ValueError, match=str(bad)):
            tree.set([bad], [1.0])
    with pytest.raises(TypeError, match="float64"):
        tree.get([0.5])
    for bad in (0, -3, 2.5, None):
        with pytest.raises(ValueError, match="capacity"):
            SumTree(bad)


def test_values_and_masses_must_be_numbers_and_as_many_as_indices():
    tree = SumTree(4)
    tree.set([0, 1], 2.0)
    for bad in (["a", "b"], [1.0, 2.0, 3.0], [[1.0], [1.0, 2.0]], [[1.0, 2.0]], [1j, 1j]):
        with pytest.raises(ValueError, match=r"^values must"):
            tree.set([0, 1], bad)
    for bad in ("a", [None], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"^masses must"):
            tree.find(bad)
    assert tree.total == 4
    assert tree.find([]).shape == tree.get([]).shape == (0,)


def test_leaves_cannot_be_written_from_outside():
    with pytest.raises(ValueError, match="read-only"):
        SumTree(4).leaves[0] = 1


def test_the_last_of_equal_indices_wins():
    tree = SumTree(8)
    tree.set([3, 3], [1.0, 9.0])
    assert tree.get([3]) == 9
    assert tree.total == tree.leaves.sum() == 9


@pytest.mark.usefixtures("shape")
def test_history_leaves_no_trace():
    rng = np.random.default_rng(2)
    busy, fresh = SumTree(3000), SumTree(3000)
    for size in (1, 5, 300, 1500, 3000):
        busy.set(rng.integers(0, 3000, size), rng.random(size) * 10.0 ** rng.integers(-9, 9))
    fresh.set(np.arange(3000), busy.leaves)
    assert fresh.total == busy.total
    masses = rng.random(500) * busy.total
    np.testing.assert_array_equal(fresh.find(masses), busy.find(masses))


def run_stream(rng, num_operations):
    """Random sets, gets and finds beside a plain array; many sizes of tree and batch."""
    done = 0
    while done < num_operations:
        capacity = int(rng.choice([1, 3, 16, 50, 257, 2000]))
        tree, leaves = SumTree(capacity), np.zeros(capacity)
        for _ in range(200):
            size = int(rng.choice([1, 4, 32, 250, 600]))
            indices = rng.integers(0, capacity, size)
            # multiples of 1/8 add up exactly, so that the right leaf is known to the last bit
            values = rng.integers(0, 50, size) / 8 * (rng.random(size) < 0.7)
            if rng.random() < 0.2:
                start = int(rng.integers(0, capacity))
                indices = np.arange(start, min(capacity, start + size))
                values = values[: len(indices)]
                tree.set_range(start, values)
            else:
                tree.set(indices, values)
            leaves[indices] = values
            np.testing.assert_array_equal(tree.get(indices), leaves[indices])
            assert tree.total == leaves.sum()
            if tree.total:
                masses = rng.integers(0, int(tree.total * 64), size) / 64
                np.testing.assert_array_equal(
                    tree.find(masses), np.searchsorted(np.cumsum(leaves), masses, side="right")
                )
            done += 4


@pytest.mark.usefixtures("shape")
def test_a_stream_of_operations_equals_the_plain_array():
    run_stream(np.random.default_rng(3), 3000)


@pytest.mark.slow
@pytest.mark.usefixtures("shape")
def test_a_long_stream_of_operations_equals_the_plain_array():
    run_stream(np.random.default_rng(4), 10**5)


@pytest.mark.parametrize("num_sets", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_a_million_sets_over_twelve_decades_leave_no_drift(num_sets):
    rng = np.random.default_rng(5)
    tree = SumTree(1000)
    for _ in range(num_sets // 50):
        tree.set(rng.integers(0, 1000, 50), 10.0 ** rng.uniform(-6, 6, 50))
    tree.set(np.arange(1000), np.full(1000, 1e-6))
    assert tree.total == pytest.approx(1e-3, rel=1e-13)


def test_draws_follow_the_leaves():
    rng = np.random.default_rng(6)
    tree = SumTree(50)
    tree.set(np.arange(50), values := rng.random(50) * (rng.random(50) < 0.8))
    counts = np.bincount(tree.find(rng.random(10**5) * tree.total), minlength=50)
    expected = values / values.sum() * 10**5
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected) + 1e-9).all()
