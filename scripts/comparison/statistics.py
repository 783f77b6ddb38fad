"""Statistics over runs and tasks after Agarwal et al. (2021), "Deep RL at the edge of the statistical precipice".

Scores are given as one array of runs per task. Intervals are percentile bootstraps stratified by task: runs are
drawn anew within each task (their section 4.1). The percentile method is taken since bias correction gives NaN where
all runs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

Scores = Sequence[np.ndarray]
"""One array of runs a task, ``[(S1,), (S2,), ...]``."""

NUM_RESAMPLES = 2_000
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A point estimate and its 95 % interval."""

    value: float
    low: float
    high: float


def iqm(scores: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Interquartile mean: the mean of the middle half (section 4.3), that is a mean trimmed by 25 % at each end."""
    return stats.trim_mean(scores, proportiontocut=0.25, axis=axis)


def interquartile_mean(scores: Scores) -> float:
    """IQM over all runs of all tasks together."""
    return float(iqm(np.concatenate(scores)))


def mean(scores: Scores) -> float:
    """Mean over tasks of the mean over runs."""
    return float(np.mean([np.mean(runs) for runs in scores]))


def median(scores: Scores) -> float:
    """Median over tasks of the mean over runs, as in the ALE literature; for one task, over its runs."""
    if len(scores) == 1:
        return float(np.median(scores[0]))
    return float(np.median([np.mean(runs) for runs in scores]))


def estimate(scores: Scores, statistic: Callable[[Scores], float], rng: np.random.Generator) -> Estimate:
    """A statistic of the scores with its stratified bootstrap interval.

    Args:
        scores: one array of runs a task.
        statistic: such as :func:`interquartile_mean`.
        rng: draws the resamples.

    Returns:
        The statistic of the scores themselves and the interval; with a single run a task the interval is NaN.
    """
    low, high = _interval(scores, lambda *resampled: statistic(resampled), rng)
    return Estimate(statistic(scores), low, high)


def _interval(samples: Scores, statistic: Callable[..., float], rng: np.random.Generator) -> tuple[float, float]:
    if min(len(runs) for runs in samples) < 2:
        return float("nan"), float("nan")
    result = stats.bootstrap(
        samples,
        statistic,
        n_resamples=NUM_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=False,
        rng=rng,
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def probability_of_improvement(ours: Scores, theirs: Scores) -> float:
    """How likely a run of ours beats a run of theirs on a task taken at random (section 4.3, equation for P(X > Y)).

    The mean over tasks of the Mann-Whitney U statistic over S_ours * S_theirs pairs; a tie counts one half.
    """
    return float(np.mean([_beats(x, y) for x, y in zip(ours, theirs, strict=True)]))


def _beats(x: np.ndarray, y: np.ndarray) -> float:
    difference = np.subtract.outer(x, y)
    return float(np.mean(difference > 0) + 0.5 * np.mean(difference == 0))


def improvement_estimate(ours: Scores, theirs: Scores, rng: np.random.Generator) -> Estimate:
    """Probability of improvement with its interval; both sides' runs are drawn anew within each task."""
    half = len(ours)
    low, high = _interval([*ours, *theirs], lambda *runs: probability_of_improvement(runs[:half], runs[half:]), rng)
    return Estimate(probability_of_improvement(ours, theirs), low, high)


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Run-score distribution: the share of runs above each threshold, mean over tasks (section 4.2, equation 3).

    Args:
        scores: one array of runs a task.
        thresholds: (T,) scores.

    Returns:
        (T,) shares in [0, 1], falling.
    """
    shares = [np.mean(np.asarray(runs)[:, None] > thresholds, axis=0) for runs in scores]
    return np.mean(shares, axis=0)


class Band(NamedTuple):
    """IQM over runs along a learning curve with its interval, each (G,)."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curve_band(curves: np.ndarray, rng: np.random.Generator) -> Band:
    """IQM and interval at each point of the curves (S, G); with a single run the interval is the run itself."""
    value = iqm(curves, axis=0)
    if len(curves) < 2:
        return Band(value, value, value)
    draws = rng.integers(len(curves), size=(NUM_RESAMPLES, len(curves)))  # (B, S)
    resampled = iqm(np.sort(curves[draws], axis=1), axis=1)  # (B, G)
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return Band(value, low, high)


def first_held(returns: np.ndarray, threshold: float, in_a_row: int = 2) -> int | None:
    """Index of the first of ``in_a_row`` evaluations at the threshold; None where that never happened.

    One evaluation at the threshold may be luck: two in a row are asked for.
    """
    reached = np.asarray(returns) >= threshold
    held = np.convolve(reached, np.ones(in_a_row), mode="valid") == in_a_row
    return int(np.argmax(held)) if held.any() else None
