"""The equations, each once by hand."""

import numpy as np
import pytest
import torch

from agents.apex.loss import draw_exploration, epsilon_greedy, row_epsilons, td_error, weighted_huber


def t(*values):
    return torch.tensor(values)


def error(q=((0.0, 0.0),), action=(0,), reward=(0.0,), discount=(1.0,), q_next=((0.0, 0.0),), target=((0.0, 0.0),)):
    return td_error(t(*q), t(*action), t(*reward), t(*discount), t(*q_next), t(*target))


def test_the_online_values_choose_and_the_target_values_rate():
    assert error(q_next=((1.0, 3.0),), target=((9.0, 2.0),)).tolist() == [2.0]


def test_the_error_is_target_minus_estimate():
    # 1 + 0.9 + 0.81 * 50 - 40: with a plus in place of the minus it would be 82.4
    got = error(
        q=((7.0, 40.0),), action=(1,), reward=(1.9,), discount=(0.81,), q_next=((50.0, 1.0),), target=((50.0, 0.0),)
    )
    assert got.tolist() == pytest.approx([2.4], abs=1e-5)


def test_converged_values_of_fifty_leave_no_error():
    got = error(q=((50.0, 50.0),), reward=(0.5,), discount=(0.99,), q_next=((50.0, 50.0),), target=((50.0, 50.0),))
    assert got.tolist() == pytest.approx([0.0], abs=1e-5)


def test_nothing_is_bootstrapped_where_the_discount_is_zero():
    assert error(reward=(1.0,), discount=(0.0,), q_next=((99.0, 99.0),), target=((99.0, 99.0),)).tolist() == [1.0]


def test_each_row_has_its_own_discount():
    ones = ((1.0, 1.0),) * 3
    got = error(ones, (0, 1, 0), (0.0, 0.0, 0.0), (0.0, 0.5, 1.0), ones, ((10.0, 10.0),) * 3)
    assert got.tolist() == [-1.0, 4.0, 9.0]


def test_gradient_flows_through_the_estimate_alone():
    q, q_next, target = (torch.ones(1, 2, requires_grad=True) for _ in range(3))
    td_error(q, t(1), t(0.0), t(1.0), q_next, target).sum().backward()
    assert q.grad.tolist() == [[0.0, -1.0]]
    assert q_next.grad is None
    assert target.grad is None


def test_the_loss_is_the_weight_times_hubers_function():
    # |0.5|: 0.125; |3|: 3 - 0.5 = 2.5
    assert weighted_huber(t(0.5, -3.0), t(1.0, 0.2)).item() == pytest.approx((0.125 + 0.5) / 2)
    expected = torch.nn.functional.huber_loss(t(0.5, -3.0), t(0.0, 0.0))
    torch.testing.assert_close(weighted_huber(t(0.5, -3.0), t(1.0, 1.0)), expected)


def test_a_row_without_weight_has_no_gradient():
    delta = torch.tensor([2.0, 0.3], requires_grad=True)
    weighted_huber(delta, t(0.0, 0.5)).backward()
    assert delta.grad.tolist() == pytest.approx([0.0, 0.075])


def test_epsilons_of_the_paper():
    np.testing.assert_allclose(row_epsilons(0.4, 7.0, 3), [0.4, 0.016191, 0.000655], atol=5e-7)
    np.testing.assert_allclose(row_epsilons(0.4, 7.0, 8)[:4], [0.4, 0.16, 0.064, 0.0256])


def test_a_single_row_explores():
    assert row_epsilons(0.4, 7.0, 1).tolist() == [0.4]


def test_exploration_has_the_frequencies_that_epsilon_says():
    rows = 100_000
    numbers = draw_exploration(np.random.default_rng(0), (rows,))
    actions = epsilon_greedy(np.tile([0.0, 1.0, 0.5], (rows, 1)), np.full(rows, 0.3), *numbers)
    np.testing.assert_allclose(np.bincount(actions) / rows, [0.1, 0.8, 0.1], atol=0.005)
