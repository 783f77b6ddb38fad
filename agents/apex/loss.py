"""The equations of learning: one temporal-difference error for actors and learner, Huber's loss, exploration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any
"""A NumPy array in actors, which do without torch, and a tensor in the learner."""


def td_error(q: Array, action: Array, reward: Array, discount: Array, q_next: Array, q_next_target: Array) -> Array:
    """Temporal-difference error of n-step double Q-learning, target minus estimate.

    ``reward + discount * q_next_target[argmax q_next] - q[action]``: van Hasselt et al. 2016 (arXiv 1509.06461), eq. 4,
    with the n-step return of Horgan et al. 2018 (arXiv 1803.00933), section 3. ``discount`` is 0 after termination and
    gamma**k after a window of k steps, so that one formula serves every kind of window.

    Args:
        q: online values of the window's first observation, (N, A).
        action: index of the action taken there, (N,), int64.
        reward: discounted sum of the window's rewards, (N,).
        discount: factor of the value after the window, (N,), in [0, 1].
        q_next: online values of the observation after the window, (N, A); they choose. Minus infinity where an
            action is illegal.
        q_next_target: target network's values of the same observation, (N, A); they are used.

    Returns:
        The signed errors, (N,); without gradient through the target.
    """
    target = reward + discount * _pick(_constant(q_next_target), q_next.argmax(1))
    return target - _pick(q, action)


def _constant(values: Array) -> Array:
    """The same without gradient."""
    return values if isinstance(values, np.ndarray) else values.detach()


def _pick(q: Array, action: Array) -> Array:
    """The value of one action a row, (N,)."""
    if isinstance(q, np.ndarray):
        return q[np.arange(len(q)), action]
    return q.gather(1, action.unsqueeze(1)).squeeze(1)


def weighted_huber(error: Array, weights: Array) -> Array:
    """Mean over the batch of weight times Huber's function with threshold 1.

    The weight multiplies the loss, not the error within it (Schaul et al. 2016, arXiv 1511.05952, section 3.4).

    Args:
        error: signed errors, (N,).
        weights: importance weights, (N,).

    Returns:
        A scalar.
    """
    size = abs(error)
    small = size.clip(max=1.0)
    return (weights * small * (size - 0.5 * small)).mean()


def row_epsilons(max_epsilon: float, alpha: float, num_rows: int) -> np.ndarray:
    """Fixed exploration of each env row: ``max_epsilon ** (1 + alpha * i / (num_rows - 1))``.

    Horgan et al. 2018, section 4.1. A single row explores with ``max_epsilon`` itself.

    Args:
        max_epsilon: epsilon of row 0, in [0, 1].
        alpha: the last row has ``max_epsilon ** (1 + alpha)``.
        num_rows: rows of all actors together.

    Returns:
        Epsilons, (num_rows,), float64.
    """
    return max_epsilon ** (1 + alpha * np.arange(num_rows) / max(num_rows - 1, 1))


class Exploration(NamedTuple):
    """The random numbers of exploration, drawn ahead: for many steps at once that is far cheaper than for each."""

    chance: np.ndarray  # (..., N), in [0, 1)
    choice: np.ndarray  # (..., N), in [0, 1)


def draw_exploration(generator: np.random.Generator, shape: tuple[int, ...]) -> Exploration:
    """Draw for each choice of an action whether it explores, and what picks the action then."""
    return Exploration(*generator.random((2, *shape)))


def epsilon_greedy(q: np.ndarray, epsilons: np.ndarray, chance: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """Choose the best action, or with each row's epsilon any legal action with equal chance.

    Args:
        q: action values, (N, A); minus infinity where an action is illegal.
        epsilons: chance of a random action, (N,).
        chance: uniform numbers in [0, 1), (N,).
        choice: uniform numbers in [0, 1), (N,), of the random action.

    Returns:
        Action indices, (N,), int64.
    """
    return np.where(chance < epsilons, _any_legal(q, choice), q.argmax(axis=1))


def _any_legal(q: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """A legal action of each row, all with equal chance, (N,)."""
    legal = q > -np.inf
    if legal.all():
        return (choice * q.shape[1]).astype(np.int64)
    rank = (choice * legal.sum(axis=1)).astype(np.int64)
    return (legal.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
