"""The numbers of the report: one row an algorithm and id, with its interval and how many runs stand behind it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median as middle

import numpy as np

from comparison.algorithms import ALGORITHMS
from comparison.results import Run, by_env, threshold_of
from comparison.statistics import (
    Estimate,
    estimate,
    improvement_estimate,
    interquartile_mean,
    mean,
    median,
)


@dataclass(frozen=True)
class Row:
    """An algorithm on an id, over its finished runs."""

    algo: str
    label: str
    color: str
    num_runs: int
    num_planned: int
    iqm: Estimate
    mean: Estimate
    median: Estimate
    last: Estimate
    num_solved: int
    steps: float | None
    seconds: float | None
    steps_per_second: float


def final_scores(runs: list[Run], which: str = "best") -> np.ndarray:
    """Mean test return of a checkpoint of each finished run, (S,)."""
    return np.array([run.status[f"{which}_return"] for run in runs if run.finished])


def rows(groups: dict[str, list[Run]]) -> list[Row]:
    """The rows of one id; an algorithm without a finished run has none."""
    return [_row(algo, runs) for algo, runs in groups.items() if any(run.finished for run in runs)]


def _row(algo: str, planned: list[Run]) -> Row:
    runs = [run for run in planned if run.finished]
    rng = np.random.default_rng(0)
    best, last = final_scores(runs), final_scores(runs, "last")
    solved = [(run.curve, run.solved_at) for run in runs if run.solved_at is not None]
    return Row(
        algo=algo,
        label=ALGORITHMS[algo].label,
        color=ALGORITHMS[algo].color,
        num_runs=len(runs),
        num_planned=len(planned),
        iqm=estimate([best], interquartile_mean, rng),
        mean=estimate([best], mean, rng),
        median=estimate([best], median, rng),
        last=estimate([last], interquartile_mean, rng),
        num_solved=len(solved),
        steps=middle([curve.timesteps[at] for curve, at in solved]) if solved else None,
        seconds=middle([curve.seconds[at] for curve, at in solved]) if solved else None,
        steps_per_second=middle([run.status["timesteps"] / run.status["training_seconds"] for run in runs]),
    )


@dataclass(frozen=True)
class Improvement:
    """How likely a run of ``ours`` beats a run of ``theirs`` on an id."""

    ours: str
    theirs: str
    probability: Estimate


def improvements(groups: dict[str, list[Run]]) -> list[Improvement]:
    """Each pair of algorithms once, the one that comes first in the order against the other."""
    scores = {algo: final_scores(runs) for algo, runs in groups.items() if any(run.finished for run in runs)}
    names = list(scores)
    return [
        Improvement(
            ALGORITHMS[ours].label,
            ALGORITHMS[theirs].label,
            improvement_estimate([scores[ours]], [scores[theirs]], np.random.default_rng(0)),
        )
        for index, ours in enumerate(names)
        for theirs in names[index + 1 :]
    ]


def normalized_scores(runs: list[Run]) -> dict[str, list[np.ndarray]]:
    """Test returns divided by the id's reward threshold, by algorithm one array a task.

    Only algorithms with a finished run on every id that has a threshold are kept, so that all answer for the same.
    """
    groups = {env_id: group for env_id, group in by_env(runs).items() if threshold_of(env_id)}
    scores: dict[str, list[np.ndarray]] = {}
    for env_id, group in groups.items():
        for algo, of_algo in group.items():
            if len(found := final_scores(of_algo)):
                scores.setdefault(algo, []).append(found / threshold_of(env_id))
    return {algo: tasks for algo, tasks in scores.items() if len(tasks) == len(groups)}


def unfinished(runs: list[Run]) -> list[Run]:
    """Runs that failed, timed out, were interrupted or never ended."""
    return [run for run in runs if not run.finished]
