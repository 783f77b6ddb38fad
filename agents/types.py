"""The records that agents hand to each other: NamedTuples of NumPy arrays with the batch first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Observation = Any
"""An array (N, ...), or a dict or tuple of such arrays for composite spaces."""


class Experience(NamedTuple):
    """Single steps as they happened."""

    obs: Observation  # (N, ...)
    action: np.ndarray  # (N, ...)
    reward: np.ndarray  # (N,)
    terminated: np.ndarray  # (N,), bool
    truncated: np.ndarray  # (N,), bool
    next_obs: Observation  # (N, ...), the true last observation at an episode's end


class Transition(NamedTuple):
    """Windows of one or more steps, ready for learning: target = reward + discount * value(next_obs)."""

    obs: Observation  # (N, ...)
    action: np.ndarray  # (N, ...)
    reward: np.ndarray  # (N,), discounted sum over the window
    discount: np.ndarray  # (N,), 0 after termination, gamma**k otherwise
    next_obs: Observation  # (N, ...)


class Batch(NamedTuple):
    """What a memory's ``sample`` returns."""

    transition: Transition
    ids: np.ndarray  # (N,), int64, names of the rows for update_priorities
    weights: np.ndarray  # (N,), importance weights
    probabilities: np.ndarray  # (N,), with which each row was drawn
    mask: np.ndarray | None = None  # (N, T), False for padded steps; only for sequences


class Weights(NamedTuple):
    """A network's parameters on their way from the learner to the actors."""

    version: int  # counts the learner's updates
    arrays: dict[str, np.ndarray]
