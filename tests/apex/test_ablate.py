"""The faults of scripts/ablate_apex.py are the ones that they are called, and gone when their time is over."""

import ablate_apex
import numpy as np
import pytest
import torch
from gymnasium import spaces

from agents.apex import actor, inline
from agents.apex.network import make_network
from agents.nstep import NStepAccumulator
from agents.replay import PrioritizedMemory
from agents.types import Transition

GAMMA = 0.9


def windows_of(kind, rewards, terminated):
    """Windows of one episode whose observations are 0, 1, 2, ..., n = 3."""
    steps, accumulator, found = len(rewards), kind(3, GAMMA), []
    for t in range(steps):
        ended = np.array([[terminated and t == steps - 1]])
        cut = np.array([[not terminated and t == steps - 1]])
        obs, after = np.array([[t]]), np.array([[t + 1]])
        step = (obs, np.array([[0]]), np.array([[rewards[t]]], float), ended, cut, after, np.array([[True]]))
        found.append(accumulator.push_steps(*step))
    return [np.concatenate([getattr(w, name) for w in found]) for name in ("obs", "reward", "discount", "next_obs")]


def test_without_an_end_flag_a_fall_is_worth_what_lies_behind_it():
    _, reward, discount, after = windows_of(ablate_apex.NoEnd, [1, 2, 4], True)
    np.testing.assert_allclose(reward, [1 + 1.8 + 3.24, 2 + 3.6, 4])
    np.testing.assert_allclose(discount, [GAMMA**3, GAMMA**2, GAMMA])
    assert after.tolist() == [3, 3, 3]


def test_the_first_reward_comes_twice_and_the_last_not_at_all():
    obs, reward, discount, after = windows_of(ablate_apex.FirstTwice, [1, 2, 4, 8], False)
    np.testing.assert_allclose(reward[0], 1 + 0.9 * 1 + 0.81 * 2)
    assert (obs[0], after[0], discount[0]) == (0, 2, pytest.approx(GAMMA**3))


def test_both_at_once():
    with ablate_apex.faulty(["end", "twice"]):
        _, reward, discount, _ = windows_of(actor.NStepAccumulator, [1, 2], True)
    np.testing.assert_allclose(reward, [1 + 0.9 + 1.62, 2 + 1.8])
    np.testing.assert_allclose(discount, [GAMMA**3, GAMMA**2])


def test_a_converged_value_looks_like_a_surprise_of_twice_its_size():
    q, after = np.array([[50.0, 0.0]]), np.array([[60.0, 49.0 / GAMMA]])
    wrong = ablate_apex.plus_for_minus(q, np.array([0]), np.array([1.0]), np.array([GAMMA]), after, after)
    assert wrong == pytest.approx([1 + 54 + 50])


def test_neighbours_change_a_rows_values():
    network = make_network(spaces.Box(-1.0, 1.0, (3,), np.float32), spaces.Discrete(2), (8, 8), True, 0)
    x = torch.rand(5, 3)
    right = network(x)
    with ablate_apex.faulty(["mean"]):
        alone, together = network(x[:1]), network(x)
    torch.testing.assert_close(alone[0], right[0])  # an actor's batch of one
    assert (together[0] - right[0]).abs().max() > 1e-3
    torch.testing.assert_close(together.argmax(1), right.argmax(1))
    torch.testing.assert_close(network(x), right)


def test_rows_are_drawn_by_bare_errors_without_weights():
    memory = ablate_apex.RawPriorities(spaces.Box(0.0, 9.0, (1,)), spaces.Discrete(2), 8, priority_exponent=0.3, seed=0)
    rows = np.arange(3, dtype=np.float32)[:, None]
    memory.append(Transition(rows, np.zeros(3, int), np.zeros(3), np.zeros(3), rows), [0.0, 1.0, 3.0])
    batch = memory.sample(4_000)
    assert np.bincount(batch.ids) / 4_000 == pytest.approx([0, 0.25, 0.75], abs=0.01)
    assert (batch.weights == 1).all()


def test_weights_wait_in_line():
    line = ablate_apex.Queue()
    for number in range(5):
        line.publish(number)
    assert [line.newer_than(-1), line.newer_than(-1)] == [0, 1]
    line.publish(9)
    assert [line.newer_than(-1), line.newer_than(-1)] == [1, 9]


def test_no_fault_stays():
    with ablate_apex.faulty(ablate_apex.VARIANTS["all"]):
        assert inline.Mailbox is ablate_apex.Queue
    assert actor.NStepAccumulator is NStepAccumulator
    assert inline.Mailbox is not ablate_apex.Queue
    from agents.apex import building

    assert building.PrioritizedMemory is PrioritizedMemory


def test_the_script_writes_results_and_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ablate_apex, "VARIANTS", {"repaired": (), "all": tuple(ablate_apex.FAULTS)})
    results, figure = tmp_path / "r/ablation.csv", tmp_path / "f/ablation.png"
    arguments = ["--steps", "1100", "--seeds", "1", "--results", str(results), "--figure", str(figure)]
    assert ablate_apex.main(arguments) == 0
    assert set(ablate_apex.read(results)) == {"repaired", "all"}
    assert figure.stat().st_size > 1000
    assert "all six together, seed 0: best" in capsys.readouterr().out
