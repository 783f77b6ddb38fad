"""One gradient step, looked at from all sides."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from agents.apex.config import ApeXConfig
from agents.apex.learner import Learner, train
from agents.apex.network import make_network
from agents.apex.ratio import SamplesPerInsert
from agents.replay import PrioritizedMemory, UniformMemory
from agents.types import Batch, Transition

from .helpers import block

OBS, ACT = spaces.Box(-1, 1, (1,), np.float32), spaces.Discrete(2)


def make_learner(memory=None, **settings):
    config = ApeXConfig(**{"hidden_sizes": (8,), "batch_size": 16, **settings})
    memory = memory or PrioritizedMemory(OBS, ACT, 1000, seed=0)
    return Learner(make_network(OBS, ACT, config.hidden_sizes, config.layer_norm, 0), OBS, memory, config)


def rows(number=100, seed=0):
    rng = np.random.default_rng(seed)
    obs, after = (rng.uniform(-1, 1, (number, 1)).astype(np.float32) for _ in range(2))
    return Transition(obs, rng.integers(2, size=number), rng.random(number), np.full(number, 0.9), after)


def vector(network):
    return torch.cat([p.detach().reshape(-1) for p in network.parameters()]).clone()


class Script:
    """A memory that gives one fixed batch and remembers what it is told."""

    def __init__(self, transition, weights):
        self.batch = Batch(transition, np.arange(len(weights)), weights, weights)
        self.told = []

    def sample(self, batch_size):
        return self.batch

    def update_priorities(self, ids, errors):
        self.told.append((ids, errors))


def test_the_target_is_copied_every_so_many_updates_and_shares_no_memory():
    learner = make_learner(target_update_interval=3, target_update_rate=1.0)
    learner.memory.append(rows())
    hashes = [vector(learner.target)]
    for _ in range(9):
        learner.update(0)
        hashes.append(vector(learner.target))
    changed = [i for i in range(1, 10) if not torch.equal(hashes[i], hashes[i - 1])]
    assert changed == [3, 6, 9]
    assert torch.equal(vector(learner.target), vector(learner.network))
    assert not {p.data_ptr() for p in learner.network.parameters()} & {
        p.data_ptr() for p in learner.target.parameters()
    }


def test_a_soft_target_moves_its_share_of_the_way():
    learner = make_learner(target_update_rate=0.25)
    learner.memory.append(rows())
    before = vector(learner.target)
    learner.update(0)
    torch.testing.assert_close(vector(learner.target), before + 0.25 * (vector(learner.network) - before))


def test_priorities_are_the_unweighted_errors_before_the_update():
    transition, weights = rows(4), np.array([1.0, 0.1, 0.5, 0.01])
    learner = make_learner(Script(transition, weights))
    with torch.no_grad():
        q = learner.network(torch.from_numpy(transition.obs))[torch.arange(4), torch.from_numpy(transition.action)]
        after = learner.network(torch.from_numpy(transition.next_obs)).max(1).values
    expected = np.abs(transition.reward + 0.9 * after.numpy() - q.numpy())
    learner.update(0)
    np.testing.assert_allclose(learner.memory.told[0][1], expected, rtol=1e-4, atol=1e-5)


def test_importance_weights_reach_the_gradient():
    learners = [make_learner(Script(rows(4), np.array(w))) for w in ([0.0] * 4, [1.0] * 4)]
    before = [vector(learner.network) for learner in learners]
    for learner in learners:
        learner.update(0)
    assert torch.equal(vector(learners[0].network), before[0])
    assert not torch.equal(vector(learners[1].network), before[1])


def test_long_gradients_are_cut_to_the_norm(monkeypatch):
    learner = make_learner(Script(rows(4)._replace(reward=np.full(4, 1e6)), np.full(4, 1e6)), max_gradient_norm=0.5)
    norms = []
    monkeypatch.setattr(learner.optimizer, "step", lambda rate: norms.append(float(learner.gradient.norm())))
    learner.update(0)
    assert norms == pytest.approx([0.5], rel=1e-4)


def test_the_step_size_falls_on_a_line():
    learner = make_learner(learning_rate=1.0, final_learning_rate=0.2, annealing_steps=100)
    assert [learner.learning_rate(k) for k in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_a_step_agrees_with_torchs_own_loop():
    transition, weights = rows(8), np.linspace(0.1, 1.0, 8)
    learner = make_learner(Script(transition, weights), max_gradient_norm=0.1, learning_rate=0.01)
    plain = make_network(OBS, ACT, (8,), True, 0)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01, eps=learner.config.adam_epsilon)
    x, action = torch.from_numpy(transition.obs), torch.from_numpy(transition.action)
    for _ in range(3):
        with torch.no_grad():
            after = torch.from_numpy(transition.next_obs)
            value = learner.target(after).gather(1, plain(after).argmax(1, keepdim=True))[:, 0]
            target = torch.from_numpy(transition.reward).float() + 0.9 * value
        q = plain(x).gather(1, action[:, None])[:, 0]
        huber = torch.nn.functional.huber_loss(q, target, reduction="none")
        optimizer.zero_grad()
        (torch.from_numpy(weights).float() * huber).mean().backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
        optimizer.step()
        learner.update(0)
    torch.testing.assert_close(vector(learner.network), vector(plain), rtol=1e-5, atol=1e-6)


class Source:
    """A cluster that gives blocks of two rows for ever."""

    def __init__(self):
        self.published = []
        self.given = 0

    def receive(self, timeout):
        self.given += 1
        return block(self.given % 2)

    def publish(self, weights):
        self.published.append(weights.version)

    def check(self):
        raise AssertionError("blocks never fail to come")


@pytest.mark.parametrize("memory", [PrioritizedMemory, UniformMemory])
def test_the_loop_keeps_the_ratio_publishes_the_newest_and_stops(memory):
    learner = make_learner(memory(OBS, ACT, 1000), batch_size=16)
    ratio, source = SamplesPerInsert(8.0, 20, 16), Source()
    events = list(train(learner, source, ratio, 100))
    assert source.given == 50
    assert ratio.inserted == 100
    assert learner.updates == (100 - 20) * 8 / 16 == len(events) - 50
    assert source.published == sorted(set(source.published))
    assert source.published[-1] == learner.updates - 1  # before the last block
