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


def iqm(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Interquartile mean: the mean of the middle half (section 4.3), that is a mean trimmed by 25 % at each end."""
    return stats.trim_mean(scores, proportiontocut=0.25, axis=axis)


def interquartile_mean(scores: Scores) -> np.ndarray:
    """IQM over all runs of all tasks together."""
    return iqm(np.concatenate(scores, axis=-1))


def mean(scores: Scores) -> np.ndarray:
    """Mean over tasks of the mean over runs."""
    return np.mean([runs.mean(axis=-1) for runs in scores], axis=0)


def median(scores: Scores) -> np.ndarray:
    """Median over tasks of the mean over runs, as in the literature on Atari; for one task, over its runs."""
    if len(scores) == 1:
        return np.median(scores[0], axis=-1)
    return np.median([runs.mean(axis=-1) for runs in scores], axis=0)


def probability_of_improvement(ours: Scores, theirs: Scores) -> np.ndarray:
    """How likely a run of ours beats a run of theirs on a task taken at random, P(X > Y) of section 4.3.

    The mean over tasks of the Mann-Whitney U statistic over S_ours * S_theirs pairs; a tie counts one half.
    """
    return np.mean([_beats(x, y) for x, y in zip(ours, theirs, strict=True)], axis=0)


def _beats(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    difference = x[..., :, None] - y[..., None, :]  # (..., S_x, S_y)
    return np.mean(np.heaviside(difference, 0.5), axis=(-2, -1))


def estimate(scores: Scores, statistic: Callable[[Scores], np.ndarray], rng: np.random.Generator) -> Estimate:
    """A statistic of the scores with its stratified bootstrap interval.

    Args:
        scores: one array of runs a task.
        statistic: such as :func:`interquartile_mean`; reduces the last axis of each array.
        rng: draws the resamples.

    Returns:
        The statistic of the scores themselves and the interval; with a single run of a task the interval is NaN.
    """
    if min(len(runs) for runs in scores) < 2:
        return Estimate(float(statistic(scores)), float("nan"), float("nan"))
    result = stats.bootstrap(
        scores,
        lambda *resampled, axis: statistic(resampled),
        n_resamples=NUM_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=rng,
    )
    return Estimate(float(statistic(scores)), *map(float, result.confidence_interval))


def improvement_estimate(ours: Scores, theirs: Scores, rng: np.random.Generator) -> Estimate:
    """Probability of improvement with its interval; both sides' runs are drawn anew within each task."""
    num_tasks = len(ours)
    return estimate([*ours, *theirs], lambda runs: probability_of_improvement(runs[:num_tasks], runs[num_tasks:]), rng)


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
    if len(reached) < in_a_row:
        return None
    held = np.lib.stride_tricks.sliding_window_view(reached, in_a_row).all(axis=1)
    return int(np.argmax(held)) if held.any() else None
