"""From stored steps to what a learner asks for: n-step windows and sequences, cut where episodes end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.replay.ring import Ring
from agents.trees import tree_map
from agents.types import Transition


class Steps(NamedTuple):
    """Windows of steps, the step first: column j holds the slots of the j-th window's steps."""

    slots: np.ndarray  # (K, N); a window that ends early repeats its last slot
    valid: np.ndarray  # (K, N), bool


def follow(ring: Ring, slots: np.ndarray, num_steps: int) -> Steps:
    """The steps of ``num_steps``-step windows that start at these slots (N,).

    A window ends at its episode's end and at the newest row of its source.
    """
    steps, valid = np.empty((num_steps, len(slots)), np.int64), np.ones((num_steps, len(slots)), bool)
    steps[0] = slots
    for k in range(1, num_steps):
        goes_on, after = ring.follows(steps[k - 1])
        valid[k] = valid[k - 1] & goes_on
        steps[k] = np.where(valid[k], after, steps[k - 1])
    return Steps(steps, valid)


class Returns(NamedTuple):
    """What n-step windows amount to."""

    reward: np.ndarray  # (N,), discounted sums
    discount: np.ndarray  # (N,), 0 after termination, discount**length otherwise
    length: np.ndarray  # (N,), steps used, at least 1


def fold(reward: np.ndarray, terminated: np.ndarray, valid: np.ndarray, discount: float) -> Returns:
    """Sum up windows whose steps lie along the first axis, and cut each at its first termination.

    Args:
        reward: (K, N).
        terminated: (K, N), bool.
        valid: (K, N), bool: true for the first one or more steps of each window.
        discount: Gamma.

    Returns:
        sum of discount**k * reward_k, with the discount that goes with it (Sutton & Barto 2018, eq. 7.1).
    """
    used, dead, total = valid, np.zeros(reward.shape[1:], bool), np.zeros(reward.shape[1:])
    length = np.zeros(reward.shape[1:], np.int64)
    for k in range(len(reward)):
        used = valid[k] & ~dead
        total += np.where(used, discount**k * reward[k], 0.0)
        length += used
        dead |= used & terminated[k]
    return Returns(total, np.where(dead, 0.0, np.power(discount, length)), length)


def transitions(ring: Ring, slots: np.ndarray, n_step: int, discount: float) -> Transition:
    """Windows that start at these slots (N,) of a ring of Experiences."""
    if n_step == 1:
        carried = np.where(ring.columns["terminated"][slots], 0.0, discount)
        reward, last = ring.columns["reward"][slots], slots
    else:
        steps = follow(ring, slots, n_step)
        rewards, terminated = (ring.columns[name][steps.slots] for name in ("reward", "terminated"))
        reward, carried, length = fold(rewards, terminated, steps.valid, discount)
        last = steps.slots[length - 1, np.arange(len(slots))]
    return Transition(ring.obs(slots), ring.action(slots), reward, carried, ring.next_obs(last))


def sequences(
    ring: Ring, slots: np.ndarray, sequence_length: int, n_step: int, discount: float
) -> tuple[Transition, np.ndarray]:
    """Sequences of windows that start at these slots (N,): arrays (N, T, ...), and the mask (N, T).

    After its last row a sequence repeats that row, with reward and discount 0, and the mask is False.
    """
    steps = follow(ring, slots, sequence_length)
    mask = steps.valid.T
    flat = transitions(ring, steps.slots.T.ravel(), n_step, discount)
    rows = tree_map(lambda leaf: leaf.reshape(*mask.shape, *leaf.shape[1:]), tuple(flat))
    rows = Transition(*rows)
    return rows._replace(reward=np.where(mask, rows.reward, 0.0), discount=np.where(mask, rows.discount, 0.0)), mask
