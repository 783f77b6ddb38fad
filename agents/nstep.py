"""Steps in, discounted transitions out: n-step windows of many environments (Sutton & Barto 2018, section 7.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agents.trees import tree_map, tree_take
from agents.types import Observation, Transition


class _Steps(NamedTuple):
    """Single steps, each in whatever environment row."""

    row: np.ndarray  # (M,)
    reward: np.ndarray  # (M,)
    terminated: np.ndarray  # (M,), bool
    ended: np.ndarray  # (M,), bool
    data: tuple[Any, Any, Any]  # trees of (M, ...): obs, action, next_obs

    def take(self, index: np.ndarray) -> _Steps:
        return _Steps(*tree_take(tuple(self), index))

    def followed_by(self, others: _Steps) -> _Steps:
        return _Steps(*tree_map(lambda *leaves: np.concatenate(leaves), tuple(self), tuple(others)))


class NStepAccumulator:
    """Collects the last steps of each environment row into windows of up to ``n`` steps.

    A window that starts at step t ends after n steps, or sooner where its episode does:

        reward = r_t + discount * r_{t+1} + ... + discount**(k-1) * r_{t+k-1}     (k <= n)
        discount = 0 after termination, discount**k otherwise, also after truncation
        next_obs = the observation after the last of the k steps

    Nothing crosses an episode's end, and each step starts exactly one window, so that in the long run as many rows
    come out as steps went in. Observations and actions may be trees (dicts or tuples of arrays), and whatever else is
    known when a step is taken (the row's number, the action values) may ride along in such a tree.

    Args:
        n: Steps in a full window, at least 1.
        discount: Gamma, in [0, 1].
        num_envs: Rows in each call of ``push``.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(self, n: int, discount: float, num_envs: int = 1):
        for name, value in (("n", n), ("num_envs", num_envs)):
            if not isinstance(value, (int, float, np.number)) or value != value // 1 or not 1 <= value < np.inf:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if not isinstance(discount, (int, float, np.number)) or not 0 <= discount <= 1:
            raise ValueError(f"discount must lie in [0, 1], got {discount!r}")
        self.n, self.discount, self.num_envs = int(n), float(discount), int(num_envs)
        self._powers = np.array([self.discount**k for k in range(self.n + 1)])  # (n + 1,)
        self._open: _Steps | None = None  # whose windows are not finished, by row and time

    def push(
        self,
        obs: Observation,
        action: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        next_obs: Observation,
        valid: Any = None,
    ) -> Transition:
        """Take one step of all environments and give the windows that it finishes.

        Args:
            obs: Observations before the step, (num_envs, ...).
            action: Actions taken, (num_envs, ...).
            reward: (num_envs,).
            terminated: (num_envs,), bool. Wins where both flags are true.
            truncated: (num_envs,), bool.
            next_obs: Observations after the step, (num_envs, ...): at an episode's end the true last one.
            valid: (num_envs,), bool; False for rows that are no step (those of a NEXT_STEP autoreset). Default: all.

        Returns:
            The finished windows, by row, the oldest first; zero rows where none is finished. All arrays are fresh.

        Raises:
            ValueError: If a leaf's first axis is not num_envs, or a reward or flag no number. Nothing is taken then.
        """
        valid = np.ones(self.num_envs, bool) if valid is None else valid
        step = tree_map(np.asarray, (obs, action, reward, terminated, truncated, next_obs, valid))
        tree_map(self._check, step)
        return self._take(*tree_map(lambda leaf: leaf[None], step))

    def push_steps(
        self,
        obs: Observation,
        action: Any,
        reward: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        next_obs: Observation,
        valid: np.ndarray,
    ) -> Transition:
        """Take several steps of all environments at once, for less work per step.

        Args:
            obs: as of ``push``, each array with the time in front: (T, num_envs, ...).
            action: likewise, and so are all others.
            reward: (T, num_envs).
            terminated: (T, num_envs), bool.
            truncated: (T, num_envs), bool.
            next_obs: (T, num_envs, ...).
            valid: (T, num_envs), bool.

        Returns:
            The windows that T calls of ``push`` give, by row, the oldest first. All arrays are fresh.

        Raises:
            ValueError: If a leaf's second axis is not num_envs, or a reward or flag no number. Nothing is taken then.
        """
        steps = (obs, action, reward, terminated, truncated, next_obs, valid)
        tree_map(lambda leaf: self._check(leaf, axis=1), steps)
        return self._take(*steps)

    def flush(self) -> Transition:
        """Give all open windows as truncated ones, by row, the oldest first, and forget them.

        Returns:
            The windows, each with discount gamma**k of its own k steps.

        Raises:
            ValueError: If nothing was ever pushed: the shapes are not known then.
        """
        if self._open is None:
            raise ValueError("flush before the first push: the shapes of the rows are not known yet")
        newest = _ends_of_runs(self._open.row)
        return self._cut(self._open._replace(ended=newest), np.arange(len(newest)))

    def _check(self, leaf: Any, axis: int = 0) -> None:
        shape = np.shape(leaf)
        if shape[axis : axis + 1] != (self.num_envs,):
            raise ValueError(f"each array needs {self.num_envs} rows (num_envs) on axis {axis}, got shape {shape}")

    def _take(
        self, obs: Any, action: Any, reward: Any, terminated: Any, truncated: Any, next_obs: Any, valid: Any
    ) -> Transition:
        """Put new steps (T, E, ...) behind the open ones and cut off what is finished."""
        _check_column("reward", reward, "biuf")
        for name, flag in (("terminated", terminated), ("truncated", truncated), ("valid", valid)):
            _check_column(name, flag, "biu")
        ended = np.logical_or(terminated, truncated)
        size = ended.size
        row = np.arange(size) % self.num_envs  # (T * E,)
        reward, terminated = np.asarray(reward, float).ravel(), np.asarray(terminated, bool).ravel()
        data = tree_map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), (obs, action, next_obs))
        steps = _Steps(row, reward, terminated, ended.ravel(), data)
        index = np.flatnonzero(valid)
        if self._open is not None:
            index = np.concatenate([np.arange(len(self._open.row)), index + len(self._open.row)])
            steps = self._open.followed_by(steps)
        return self._cut(steps, index[steps.row[index].argsort(kind="stable")])

    def _cut(self, steps: _Steps, index: np.ndarray) -> Transition:
        """Give the finished windows and keep the others; ``index`` (M,) puts the steps in order of row and time."""
        reward, terminated, ended = steps.reward[index], steps.terminated[index], steps.ended[index]
        place = np.arange(len(index))
        stop = _next(ended | _ends_of_runs(steps.row[index]))  # (M,), no window goes beyond
        last = np.minimum(place + (self.n - 1), stop)  # (M,), of the window that starts here
        length = last - place + 1
        total = reward.copy()
        for k in range(1, self.n):
            total[:-k] += np.where(length[:-k] > k, self._powers[k] * reward[k:], 0.0)
        finished = ended[last]
        finished |= length == self.n
        first = np.flatnonzero(finished)
        last = last[first]
        discount = np.where(terminated[last], 0.0, self._powers[length[first]])
        obs, action, next_obs = steps.data
        obs, action = tree_take((obs, action), index[first])
        windows = Transition(obs, action, total[first], discount, tree_take(next_obs, index[last]))
        self._open = steps.take(index[~finished])
        return windows


def _check_column(name: str, values: np.ndarray, kinds: str) -> None:
    """Raise ValueError unless these are numbers of the dtypes' kinds, one a step: (T, num_envs)."""
    if values.ndim != 2:
        raise ValueError(f"{name} must be one number a row, got rows of shape {values.shape[2:]}")
    if values.dtype.kind not in kinds:
        raise ValueError(f"{name} must hold {'numbers' if 'f' in kinds else 'truth values'}, got {values.dtype}")


def _ends_of_runs(row: np.ndarray) -> np.ndarray:
    """Whether each entry (M,) is the last before another value, or of all."""
    ends = np.ones(len(row), bool)
    np.not_equal(row[1:], row[:-1], out=ends[:-1])
    return ends


def _next(mask: np.ndarray) -> np.ndarray:
    """Place of the next true entry, itself included, of each (M,); the last one is true."""
    places = np.flatnonzero(mask)
    counts = places.copy()
    counts[1:] -= places[:-1]
    counts[:1] += 1
    return places.repeat(counts)
