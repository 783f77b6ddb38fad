"""The report's figures as SVG, drawn from the runs' curves."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("svg")
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from comparison.algorithms import ALGORITHMS
from comparison.results import Run, threshold_of
from comparison.statistics import curve_band, performance_profile

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "comparison",
    "axes.edgecolor": "#9aa0a6",
    "axes.labelcolor": "#3c4043",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e8eaed",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": "#5f6368",
    "ytick.color": "#5f6368",
}
SIZE = (5.4, 3.5)
GRID_POINTS = 101


def svg(*draw: Callable[[Axes], None]) -> str:
    """An SVG of axes side by side, each drawn by a function; the same input gives the same text."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(len(draw) * SIZE[0], SIZE[1]), layout="constrained")
        for axes, each in zip(figure.subplots(1, len(draw), squeeze=False)[0], draw, strict=True):
            each(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def learning_curves(groups: dict[str, list[Run]], axis: str) -> str:
    """Greedy return against env steps or seconds: IQM over the seeds, its band, and each run as a thin line.

    Args:
        groups: runs of one env id by algorithm.
        axis: ``"timesteps"`` or ``"seconds"``.
    """
    return svg(_curves(groups, axis))


def overview(groups: dict[str, dict[str, list[Run]]]) -> str:
    """The curves of several ids against env steps, side by side under their names."""

    def titled(env_id: str) -> Callable[[Axes], None]:
        def draw(axes: Axes) -> None:
            _curves(groups[env_id], "timesteps")(axes)
            axes.set_title(env_id, loc="left", fontsize=11, color="#3c4043")

        return draw

    return svg(*map(titled, groups))


def _curves(groups: dict[str, list[Run]], axis: str) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for algo, runs in groups.items():
            curves = [run.curve for run in runs if len(run.curve.timesteps)]
            if curves:
                _draw_algorithm(axes, algo, [(getattr(c, axis), c.mean_returns) for c in curves])
        threshold = threshold_of(next(iter(groups.values()))[0].cell.env_id)
        axes.set_xlabel("environment steps" if axis == "timesteps" else "training seconds")
        axes.set_ylabel("greedy return")
        axes.xaxis.set_major_formatter(EngFormatter(sep="", places=None))
        axes.set_xlim(left=0)
        if axes.lines:
            axes.legend(frameon=False, loc="best", handlelength=1.4)
        if threshold is not None:
            axes.axhline(threshold, color="#80868b", linewidth=1, linestyle=(0, (4, 3)), zorder=1)

    return draw


def _draw_algorithm(axes: Axes, algo: str, curves: list[tuple[np.ndarray, np.ndarray]]) -> None:
    algorithm = ALGORITHMS[algo]
    start, end = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    grid = np.linspace(start, end, GRID_POINTS)
    band = curve_band(np.stack([np.interp(grid, x, y) for x, y in curves]), np.random.default_rng(0))
    axes.fill_between(grid, band.low, band.high, color=algorithm.color, alpha=0.15, linewidth=0)
    for x, y in curves:
        axes.plot(x, y, color=algorithm.color, alpha=0.35, linewidth=0.8)
    axes.plot(grid, band.value, color=algorithm.color, linewidth=2.2, label=algorithm.label)


def profiles(scores: dict[str, list[np.ndarray]]) -> str:
    """Performance profiles: the share of runs above each normalized score, by algorithm."""
    everything = np.concatenate([runs for tasks in scores.values() for runs in tasks])
    thresholds = np.linspace(min(0.0, everything.min()), max(1.0, everything.max()), 201)

    def draw(axes: Axes) -> None:
        for algo, tasks in scores.items():
            shares = performance_profile(tasks, thresholds)
            axes.plot(thresholds, shares, color=ALGORITHMS[algo].color, linewidth=2, label=ALGORITHMS[algo].label)
        axes.set_xlabel("return / reward threshold")
        axes.set_ylabel("share of runs above")
        axes.set_ylim(-0.02, 1.02)
        axes.legend(frameon=False, loc="best")

    return svg(draw)
