"""What comes of many agents."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any


class Curve(NamedTuple):
    """A learning curve: ``returns / episodes`` is the mean return of the episodes that ended around each point."""

    steps: Array  # (points,), int32, steps of each agent at the end of a point's stretch
    returns: Array  # (points, N), sum over the episodes that ended
    episodes: Array  # (points, N), int32, number of episodes that ended


class History(NamedTuple):
    """Every step of a short run; this, and only this, grows with the number of steps."""

    observations: Array  # (T, N, ...), that the actions were chosen on
    actions: Array  # (T, N), int32
    rewards: Array  # (T, N)
    terminated: Array  # (T, N), bool
    truncated: Array  # (T, N), bool
    q_values: Array  # (T // history_every, N, *sizes, A), after each history_every-th step


class QResult(NamedTuple):
    """What came of N agents."""

    q_values: Array  # (N, *sizes, A), float32
    reward_sum: Array  # (N,), of all rewards
    episodes: Array  # (N,), int32, episodes that ended
    curve: Curve
    history: History | None = None
