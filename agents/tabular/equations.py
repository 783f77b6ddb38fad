"""The equations of Q-learning (Watkins & Dayan 1992), for NumPy, JAX and plain numbers alike."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

Array = Any
"""A number, a NumPy array or a JAX array."""

VISIT_EXPONENT = 0.8
"""omega of the polynomial learning rate 1 / visits^omega (Even-Dar & Mansour 2003, section 4)."""


def epsilon_greedy(q_values: Array, epsilon: Array, u: Array, xp: Any = np) -> Array:
    """Draw actions of the behaviour policy: uniform with probability epsilon, else uniform among the exact maxima.

    One uniform number serves both draws, since ``u / epsilon`` given ``u < epsilon`` is uniform again, and so is
    ``(u - epsilon) / (1 - epsilon)`` given the contrary.

    Args:
        q_values: (..., A), may hold -inf; or a list of A numbers or arrays (...).
        epsilon: in [0, 1], (...) or a number.
        u: uniforms in [0, 1), (...).
        xp: numpy, or jax.numpy inside JAX.

    Returns:
        Action indices in 0 .. A - 1, integers of shape (...).
    """
    columns, explore = _columns(q_values), u < epsilon
    best = reduce(xp.maximum, columns)
    within = xp.where(explore, u, u - epsilon) / xp.where(explore, epsilon, 1 - epsilon)  # uniform again
    counts = list(accumulate(((column == best) | explore) * 1 for column in columns))  # candidates so far
    rank = xp.minimum(within * counts[-1], counts[-1] - 0.5)  # where a division rounds up to 1
    return sum(((count <= rank) * 1 for count in counts[:-1]), explore * 0)


def _columns(q_values: Array) -> list[Array]:
    """One array an action: sums over these are plain element-wise steps, which XLA fuses and NumPy does as fast."""
    if isinstance(q_values, list):
        return q_values
    return [q_values[..., action] for action in range(q_values.shape[-1])]


def q_update(
    q: Array, reward: Array, terminated: Array, next_q: Array, learning_rate: Array, discount: Array, xp: Any = np
) -> Array:
    """Return the new value of a visited pair: q + lr (r + discount max_a next_q[a] - q) (Watkins & Dayan 1992, eq. 1).

    Termination masks the bootstrap by a selection, so that not even a NaN leaks through; truncation does not mask it:
    give the row of the true last observation there.

    Args:
        q: value of the visited pair, (...).
        reward: (...).
        terminated: (...), bool.
        next_q: values of all actions in the next state, (..., A).
        learning_rate: in [0, 1], (...) or a number.
        discount: in [0, 1], a number.
        xp: numpy, or jax.numpy inside JAX.

    Returns:
        The updated value, (...).
    """
    bootstrap = xp.where(terminated, 0.0, reduce(xp.maximum, _columns(next_q)))
    return q + learning_rate * (reward + discount * bootstrap - q)


def visit_rate(visits: Array) -> Array:
    """Learning rate of the visits-th update of a pair, visits >= 1: 1 / visits^0.8 (Even-Dar & Mansour 2003)."""
    return 1.0 / visits**VISIT_EXPONENT
