"""The evaluations of a run as it trains: the same episodes each time, onto the curve, the best one remembered."""

from __future__ import annotations

from comparison.cells import EVALUATION_SEED, Cell
from comparison.curve import CurveWriter
from comparison.evaluation import Predict, greedy_episodes, seed_block


class Judge:
    """Plays a cell's evaluation episodes and says whether a policy is the best so far."""

    def __init__(self, cell: Cell, curve: CurveWriter) -> None:
        self._env_id, self._curve = cell.env_id, curve
        self._seeds = seed_block(EVALUATION_SEED, cell.eval_episodes)
        self._best = -float("inf")

    def is_best(self, predict: Predict, timesteps: int, seconds: float) -> bool:
        """Evaluate the greedy policy after so many env steps and seconds of training."""
        mean = self._curve.write(timesteps, seconds, greedy_episodes(predict, self._env_id, self._seeds))
        if mean <= self._best:
            return False
        self._best = mean
        return True
