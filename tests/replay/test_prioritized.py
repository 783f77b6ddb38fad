"""Prioritized replay against its formulas, worked out by hand where numbers stand."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from agents.replay import PrioritizedMemory
from agents.types import Transition

OBS = Box(-1e9, 1e9, (1,), np.float64)


def rows(count, first=0):
    obs = np.arange(first, first + count, dtype=float)[:, None]
    return Transition(obs, np.zeros(count, int), obs[:, 0], np.ones(count), obs)


def memory_with(priorities, **kwargs):
    arguments = {"capacity": max(1, len(priorities)), "priority_epsilon": 0.0, "seed": 0} | kwargs
    memory = PrioritizedMemory(OBS, Discrete(2), **arguments)
    memory.append(rows(len(priorities)), priorities)
    return memory


def weights_of(memory, *wanted):
    """Weights of a batch that holds just these ids, once each."""
    for _ in range(10_000):
        batch = memory.peek(len(wanted))
        if sorted(batch.ids) == sorted(wanted):
            return [float(batch.weights[list(batch.ids).index(i)]) for i in wanted]
        memory.rng.random()
    raise AssertionError("never drawn")


def test_epsilon_stands_inside_the_power():
    memory = memory_with([0.0], priority_epsilon=0.01, priority_exponent=0.5)
    assert memory.tree.get([0]) == pytest.approx(0.1)


def test_new_rows_get_the_largest_raw_priority_and_one_power():
    memory = memory_with([4.0], capacity=4, priority_epsilon=0.01, priority_exponent=0.6)
    memory.append(rows(1))
    assert memory.tree.get([1]) == pytest.approx(2.30084, rel=1e-5)
    np.testing.assert_array_equal(memory.priorities, [4, 4])


def test_the_first_row_of_an_empty_memory_gets_one():
    memory = PrioritizedMemory(OBS, Discrete(2), capacity=4)
    memory.append(rows(2))
    np.testing.assert_array_equal(memory.priorities, [1, 1])


def test_an_outlier_that_is_gone_no_longer_counts():
    memory = memory_with([1000.0], capacity=4)
    memory.append(rows(4))
    memory.update_priorities(np.arange(1, 5), np.full(4, 0.25))
    memory.append(rows(1))
    assert memory.priorities[-1] == 0.25


def test_the_largest_priority_is_known_after_any_history():
    rng = np.random.default_rng(0)
    memory = memory_with(rng.random(2000), capacity=2000)
    for _ in range(300):
        ids = rng.integers(memory.oldest, memory.inserted, 20)
        memory.update_priorities(ids, rng.random(20) * rng.choice([0.1, 10]))
        for count in (3, 1, 2500)[: rng.integers(1, 4)]:  # with and without an update between, also more than fits
            largest = memory.priorities.max()
            memory.append(rows(count))
            np.testing.assert_array_equal(memory.priorities[-count:], largest)
            if rng.random() < 0.3:
                memory.append(rows(count), rng.random(count) * rng.choice([0.1, 20]))


def test_three_norms_of_the_weights():
    for norm, expected in (("none", [1.25, 0.625]), ("memory", [0.5, 0.25]), ("batch", [1.0, 0.5])):
        memory = memory_with(
            [1.0, 2, 4, 3],
            priority_exponent=1,
            initial_importance_sampling_exponent=1,
            weight_norm=norm,
            stratified=False,
        )
        assert weights_of(memory, 1, 2) == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["none", "memory", "batch"])
def test_exponent_zero_is_uniform_with_weights_of_exactly_one(norm):
    memory = memory_with([0.0, 1, 5], priority_exponent=0, weight_norm=norm)
    batch = memory.sample(64)
    np.testing.assert_allclose(batch.probabilities, 1 / 3)
    assert (batch.weights == 1).all()


def test_all_priorities_zero_draw_uniformly():
    memory = memory_with([0.0] * 4)
    batch = memory.sample(400)
    assert set(batch.ids) == {0, 1, 2, 3}
    assert (batch.weights == 1).all()
    assert (batch.probabilities == 0.25).all()


def test_a_row_of_priority_zero_is_never_drawn_and_scales_no_weight():
    memory = memory_with([0.0, 1, 1, 0], weight_norm="memory")
    batch = memory.sample(1000)
    assert set(batch.ids) == {1, 2}
    np.testing.assert_allclose(batch.weights, 1)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_frequencies_follow_the_formula(stratified, alpha):
    rng = np.random.default_rng(1)
    raw = rng.random(40) * 10
    memory = memory_with(raw, priority_exponent=alpha, stratified=stratified, priority_epsilon=0.1)
    expected = (raw + 0.1) ** alpha / ((raw + 0.1) ** alpha).sum()
    counts = np.zeros(40)
    for _ in range(200):
        batch = memory.sample(500)
        np.testing.assert_allclose(batch.probabilities, expected[batch.ids], rtol=1e-12)
        counts += np.bincount(batch.ids, minlength=40)
    assert (np.abs(counts - expected * 1e5) < 5 * np.sqrt(expected * 1e5)).all()


def test_stratified_draws_take_one_row_from_each_equal_share():
    memory = memory_with(np.ones(64), priority_exponent=1)
    for _ in range(20):
        np.testing.assert_array_equal(np.sort(memory.sample(64).ids), np.arange(64))


def test_frequencies_of_one_source_follow_the_formula():
    memory = PrioritizedMemory(OBS, Discrete(2), capacity=6, priority_exponent=1, priority_epsilon=0, seed=0)
    memory.append(rows(6), [1.0, 10, 3, 10, 4, 10], [0, 1, 0, 1, 0, 1])
    batch = memory.sample(8000, source=0)
    np.testing.assert_allclose(np.bincount(batch.ids, minlength=6)[[0, 2, 4]] / 1000, [1, 3, 4], atol=0.01)
    np.testing.assert_allclose(batch.probabilities, np.array([1, 0, 3, 0, 4])[batch.ids] / 8)


def test_the_last_of_equal_ids_wins():
    memory = memory_with(np.ones(5), priority_exponent=1)
    memory.update_priorities([3, 3], [1.0, 9.0])
    assert memory.priorities[3] == 9
    assert memory.tree.total == memory.tree.leaves.sum() == 13


def test_annealing_counts_training_samples_only():
    memory = memory_with(np.ones(4), num_annealing_steps=10)
    for done, beta in ((0, 0.4), (1, 0.46), (10, 1.0), (11, 1.0)):
        while memory.num_samples < done:
            memory.sample(2)
        memory.peek(2)
        assert memory.importance_sampling_exponent == pytest.approx(beta)


def test_weights_use_the_exponent_of_their_own_sample():
    memory = memory_with(
        [1.0, 4.0], priority_exponent=1, initial_importance_sampling_exponent=0.5, num_annealing_steps=1
    )
    for beta in (0.5, 1.0):
        batch = memory.sample(50)
        np.testing.assert_allclose(batch.weights, np.where(batch.ids == 0, 1, 4**-beta))


def test_exponents_may_change_on_the_live_object():
    memory = memory_with([1.0, 3.0], priority_exponent=1)
    memory.priority_exponent = 0.5
    np.testing.assert_allclose(memory.tree.leaves, [1, np.sqrt(3)])
    memory.initial_importance_sampling_exponent, memory.num_annealing_steps = 0.5, 1e4
    assert memory.importance_sampling_exponent == 0.5
    assert memory.num_annealing_steps == 10_000
    with pytest.raises(AttributeError):
        memory.importance_sampling_exponent = 1.0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("priority_exponent", [-0.1, 1.1, np.nan, None, "a", True, np.array([0.5])]),
        ("initial_importance_sampling_exponent", [-0.1, 1.1, np.nan, None, np.array([0.5])]),
        ("num_annealing_steps", [0, -1, 2.5, None, np.inf]),
        ("capacity", [0, -1, 2.5, None, np.nan]),
        ("priority_epsilon", [-1e-9, np.nan, np.inf, np.array([0.5])]),
        ("stratified", ["no", None, 2]),
        ("weight_norm", ["max", None]),
        ("prioritization", ["rankish", None]),
    ],
)
def test_values_out_of_range_are_refused(name, values):
    memory = memory_with([1.0, 3.0])
    for value in values:
        with pytest.raises(ValueError, match=name):
            PrioritizedMemory(OBS, Discrete(2), **{name: value})
        if name in ("priority_exponent", "initial_importance_sampling_exponent", "num_annealing_steps"):
            with pytest.raises(ValueError, match=name):
                setattr(memory, name, value)
    assert memory.priority_exponent == 0.6


@pytest.mark.parametrize("name", ["priority_epsilon", "stratified", "weight_norm", "prioritization"])
def test_settings_that_shape_the_memory_are_read_only(name):
    memory = memory_with([1.0, 3.0])
    with pytest.raises(AttributeError):
        setattr(memory, name, getattr(memory, name))


def test_priorities_so_large_that_sums_overflow_are_refused():
    memory = memory_with([1.0, 1.0], priority_exponent=1)
    with pytest.raises(ValueError, match="less than"):
        memory.update_priorities([0, 1], [1e308, 1e308])
    assert memory.tree.total == 2


def test_ids_must_be_integers_and_priorities_as_many():
    memory = memory_with([1.0, 1.0])
    with pytest.raises(TypeError, match="float64"):
        memory.update_priorities([0.5], [1.0])
    with pytest.raises(ValueError, match="one for each row"):
        memory.update_priorities([0, 1], [1.0])
    assert memory.update_priorities([], []) == 0


def test_ranks_set_the_probabilities():
    memory = memory_with([5.0, 1, 9, 5], prioritization="rank", priority_exponent=1)
    expected = 1 / np.array([2, 4, 1, 3])
    batch = memory.sample(1000)
    np.testing.assert_allclose(batch.probabilities, (expected / expected.sum())[batch.ids])
    memory.update_priorities([1], [100.0])
    expected = 1 / np.array([3, 1, 2, 4])
    batch = memory.sample(1000)
    np.testing.assert_allclose(batch.probabilities, (expected / expected.sum())[batch.ids])


def test_ranks_of_a_large_memory_are_nearly_right_between_rankings():
    rng = np.random.default_rng(0)
    raw = rng.random(20_000)
    memory = memory_with(raw, prioritization="rank", priority_exponent=0.7)
    memory.sample(1)
    for _ in range(30):
        ids, new = rng.integers(0, 20_000, 32), rng.random(32)
        memory.update_priorities(ids, new)
        raw[ids] = new
    expected = (np.argsort(np.argsort(-raw)) + 1.0) ** -0.7
    batch = memory.sample(4000)
    assert np.median(np.abs(batch.probabilities / (expected / expected.sum())[batch.ids] - 1)) < 0.02


def test_a_large_ranked_memory_resumes_between_two_rankings():
    rng = np.random.default_rng(0)
    memory, other = (memory_with(rng.random(5000), prioritization="rank") for _ in range(2))
    for _ in range(30):
        memory.update_priorities(memory.sample(32).ids, rng.random(32))
    other.load_state_dict(memory.state_dict() | {"inserted": np.array(5000), "oldest": np.array(0)})
    for _ in range(30):
        first, second = memory.sample(32), other.sample(32)
        np.testing.assert_array_equal(first.ids % 5000, second.ids % 5000)
        np.testing.assert_array_equal(first.probabilities, second.probabilities)
        errors = rng.random(32)
        memory.update_priorities(first.ids, errors)
        other.update_priorities(second.ids, errors)


@pytest.mark.parametrize("norm", ["memory", "batch"])
def test_the_smallest_leaf_is_known_after_any_history(norm):
    rng = np.random.default_rng(0)
    memory = memory_with(rng.random(2000) + 0.01, weight_norm=norm, initial_importance_sampling_exponent=1)
    for _ in range(100):
        batch = memory.sample(50)
        smallest = memory.tree.leaves.min() if norm == "memory" else memory.tree.get(batch.ids % 2000).min()
        beta = memory._first_beta
        np.testing.assert_allclose(batch.weights, (smallest / memory.tree.get(batch.ids % 2000)) ** beta)
        memory.update_priorities(batch.ids, rng.random(50) + rng.choice([0.001, 1]))


def test_ranking_cares_for_order_alone():
    first, second = (memory_with(raw, prioritization="rank") for raw in ([1.0, 2, 3], [1e-9, 5, 1e9]))
    np.testing.assert_array_equal(first.sample(50).ids, second.sample(50).ids)
