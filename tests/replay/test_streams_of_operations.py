"""Long random streams of operations on the memories beside the plainest memory."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from agents.replay import PrioritizedMemory, UniformMemory
from agents.trees import tree_leaves, tree_map
from agents.types import Experience, Transition

from .naive import NaiveMemory

SPACE = Dict({"time": Box(-1e9, 1e9, (2,), np.float32), "who": Discrete(1000)})


class Actors:
    """Rows of several sources that run through short episodes; now and then a stream is torn."""

    def __init__(self, rng, kind, num_sources):
        self.rng, self.kind = rng, kind
        self.now = rng.integers(0, 1000, num_sources)

    def rows(self, sources):
        rng, time, next_time = self.rng, [], []
        ended = rng.random(len(sources)) < 0.15
        for place, source in enumerate(sources):
            time.append(self.now[source])
            next_time.append(time[-1] + 1)
            torn = ended[place] or rng.random() < 0.05
            self.now[source] = rng.integers(0, 1000) if torn else next_time[-1]
        obs, next_obs = self.observe(time, sources), self.observe(next_time, sources)
        action, reward = rng.integers(0, 3, len(sources)), rng.normal(size=len(sources))
        terminated = ended & (rng.random(len(sources)) < 0.6)
        if self.kind is Transition:
            return Transition(obs, action, reward, np.where(terminated, 0.0, 0.9), next_obs)
        return Experience(
            obs, action, reward, terminated, ended & (rng.random(len(sources)) < 0.7) | ended & ~terminated, next_obs
        )

    def observe(self, time, sources):
        time = np.reshape(np.array(time, np.float32), (-1, 1))
        return {"time": np.hstack([time, -time]), "who": np.array(sources, np.int64).reshape(-1)}


class Stream:
    """Random operations on a real and a naive memory."""

    def __init__(self, seed, kind, prioritized):
        self.rng = np.random.default_rng(seed)
        self.kind, self.prioritized = kind, prioritized
        self.actors = Actors(self.rng, kind, 5)
        self.naive = NaiveMemory(int(self.rng.choice([1, 7, 40, 150])), 0.6 if prioritized else 0.0, 0.01)
        self.real = self.make(self.naive.capacity)
        self.old_ids = np.zeros(0, np.int64)

    def make(self, capacity):
        if self.prioritized:
            return PrioritizedMemory(
                SPACE, Discrete(3), capacity, priority_epsilon=0.01, seed=int(self.rng.integers(99))
            )
        return UniformMemory(SPACE, Discrete(3), capacity, seed=int(self.rng.integers(99)))

    def run(self, count):
        names = ["append"] * 8 + ["sample"] * 6 + ["update"] * 4 + ["resize", "reload", "alpha", "check"]
        for _ in range(count):
            getattr(self, str(self.rng.choice(names)))()
            if self.rng.random() < 0.005:
                self.reset()
            assert (self.real.oldest, self.real.inserted) == (self.naive.oldest, self.naive.inserted)
        self.check()

    def append(self):
        count = int(self.rng.choice([0, 1, 3, 10, 60]))
        one_source = self.rng.random() < 0.4
        sources = np.full(count, self.rng.integers(5)) if one_source else self.rng.integers(0, 5, count)
        rows = self.actors.rows(sources)
        priorities = self.rng.random(count) * 3 if self.rng.random() < 0.6 else None
        first = self.naive.inserted
        ids = self.real.append(rows, priorities, int(sources[0]) if one_source and count else sources)
        np.testing.assert_array_equal(ids, np.arange(first, first + count))
        self.naive.append(rows, priorities, sources)
        self.old_ids = np.append(self.old_ids, ids)[-400:]
        tree_map(lambda leaf: leaf.fill(0), rows)  # the memory must have its own copies

    def sample(self):
        if not self.naive.rows:
            with pytest.raises(ValueError, match="empty"):
                self.real.sample(4)
            return
        sources = {row["source"] for row in self.naive.rows}
        source = int(self.rng.choice(sorted(sources))) if self.rng.random() < 0.3 else None
        size = int(self.rng.choice([1, 5, 32]))
        n_step, length = (
            (1, 1) if self.kind is Transition else (int(self.rng.integers(1, 5)), int(self.rng.integers(1, 4)))
        )
        arguments = {} if self.kind is Transition else {"n_step": n_step, "discount": 0.8, "sequence_length": length}
        batch = self.real.sample(size, source=source, **arguments)
        assert batch.ids.shape == batch.weights.shape == batch.probabilities.shape == (size,)
        probabilities = self.naive.probabilities(source)
        np.testing.assert_allclose(batch.probabilities, [probabilities[i] for i in batch.ids], rtol=1e-9)
        self.check_weights(batch, len(probabilities))
        for place, row_id in enumerate(batch.ids):
            if self.kind is Transition:
                self.same(batch.transition, place, self.naive.row(row_id))
            elif length == 1:
                self.same_window(batch.transition, place, row_id, n_step)
            else:
                self.same_sequence(batch, place, row_id, n_step, length)

    def check_weights(self, batch, num_rows):
        beta = self.real.importance_sampling_exponent if self.prioritized else 0.0
        weights = (num_rows * batch.probabilities) ** -beta
        # the exponent has moved on by one sample of a million
        np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-4)

    def same(self, record, place, row, names=None):
        for name in names or record._fields:
            for leaf, expected in zip(tree_leaves(getattr(record, name)), tree_leaves(row[name]), strict=True):
                np.testing.assert_array_equal(leaf[place], expected)
                assert leaf.dtype == expected.dtype

    def same_window(self, transition, place, row_id, n_step):
        reward, discount, last = self.naive.window(row_id, n_step, 0.8)
        self.same(
            transition, place, self.naive.row(row_id) | {"next_obs": last["next_obs"]}, ("obs", "action", "next_obs")
        )
        assert transition.reward[place] == pytest.approx(reward, rel=1e-12)
        assert transition.discount[place] == pytest.approx(discount, rel=1e-12)

    def same_sequence(self, batch, place, row_id, n_step, length):
        steps = self.naive.steps(row_id, length)
        np.testing.assert_array_equal(batch.mask[place], np.arange(length) < len(steps))
        part = type(batch.transition)(*(tree_map(lambda leaf: leaf[place], field) for field in batch.transition))
        for time, step in enumerate(steps):
            self.same_window(part, time, step["id"], n_step)
        assert (part.reward[len(steps) :] == 0).all()
        assert (part.discount[len(steps) :] == 0).all()

    def update(self):
        if not len(self.old_ids):
            return
        ids = self.rng.choice(self.old_ids, int(self.rng.choice([0, 1, 8, 40])))
        errors = self.rng.random(len(ids)) * 5
        stale = self.real.update_priorities(ids, errors)
        assert stale == self.naive.update(ids, errors)

    def resize(self):
        capacity = int(self.rng.choice([1, 3, 20, 50, 200]))
        self.real.resize(capacity)
        self.naive.resize(capacity)

    def reset(self):
        self.real.reset()
        self.naive.reset()

    def reload(self):
        other = self.make(3)
        other.load_state_dict(self.real.state_dict())
        self.real = other
        self.naive.cut()

    def alpha(self):
        if self.prioritized:
            self.naive.alpha = self.real.priority_exponent = float(self.rng.choice([0.0, 0.3, 1.0]))

    def check(self):
        assert len(self.real) == len(self.naive.rows)
        assert self.real.capacity == self.naive.capacity
        record = self.real.all_experiences()
        assert len(record.reward) == len(self.naive.rows)
        for place, row in enumerate(self.naive.rows):
            self.same(record, place, row)
        if self.prioritized:
            np.testing.assert_array_equal(self.real.priorities, [row["raw"] for row in self.naive.rows])
        store = self.real.ring.store
        own = len(store.arrays[0]) - store.capacity
        in_use = sum(1 for row in self.naive.rows if not row["after"])
        assert own - store._num_free == in_use  # no observation is lost or kept twice


CASES = [(kind, prioritized) for kind in (Experience, Transition) for prioritized in (True, False)]


@pytest.mark.parametrize(("kind", "prioritized"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_of_operations_equals_the_plain_memory(seed, kind, prioritized):
    Stream(seed, kind, prioritized).run(300)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("kind", "prioritized"), CASES)
def test_a_long_stream_of_operations_equals_the_plain_memory(kind, prioritized):
    for seed in range(50):
        Stream(100 + seed, kind, prioritized).run(1000)
