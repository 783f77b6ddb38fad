"""Steps in, discounted transitions out: n-step windows of many environments (Sutton & Barto 2018, section 7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.trees import tree_map, tree_take
from agents.types import Observation, Transition


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
        if int(n) != n or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}")
        if not 0 <= discount <= 1:
            raise ValueError(f"discount must lie in [0, 1], got {discount!r}")
        if int(num_envs) != num_envs or num_envs < 1:
            raise ValueError(f"num_envs must be an integer of at least 1, got {num_envs!r}")
        self.n, self.discount, self.num_envs = int(n), float(discount), int(num_envs)
        self._powers = np.array([self.discount**k for k in range(self.n + 1)])  # (n + 1,)
        self._places = np.arange(self.n)
        self._oldest = np.zeros(self.num_envs, np.int64)  # (E,), place of the oldest open window in the row's ring
        self._open = np.zeros(self.num_envs, np.int64)  # (E,), number of open windows
        self._reward = np.zeros((self.num_envs, self.n))  # (E, n), discounted sums so far
        self._steps = np.zeros((self.num_envs, self.n), np.int64)  # (E, n), steps so far
        self._start: Any = None  # trees of (E, n, ...): obs and action that opened each window
        self._last: Any = None  # tree of (E, ...): the newest next_obs, for flush

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
            ValueError: If a leaf's first axis is not num_envs. Nothing is taken then.
        """
        valid = np.ones(self.num_envs, bool) if valid is None else np.asarray(valid, bool)
        reward, terminated, truncated = (
            np.asarray(reward, float),
            np.asarray(terminated, bool),
            np.asarray(truncated, bool),
        )
        tree_map(self._check, (obs, action, reward, terminated, truncated, next_obs, valid))
        self._add(obs, action, reward, next_obs, valid)
        ended = (terminated | truncated) & valid
        finished = np.where(ended, self._open, (self._open == self.n) & valid)
        return self._emit(finished, next_obs, terminated)

    def flush(self) -> Transition:
        """Give all open windows as truncated ones, by row, the oldest first, and forget them.

        Returns:
            The windows, each with discount gamma**k of its own k steps.

        Raises:
            ValueError: If nothing was ever pushed: the shapes are not known then.
        """
        if self._last is None:
            raise ValueError("flush before the first push: the shapes of the rows are not known yet")
        return self._emit(self._open.copy(), self._last, np.zeros(self.num_envs, bool))

    def _check(self, leaf: Any) -> None:
        shape = np.shape(leaf)
        if not shape or shape[0] != self.num_envs:
            raise ValueError(f"each array needs {self.num_envs} rows (num_envs) on its first axis, got shape {shape}")

    def _add(self, obs: Any, action: Any, reward: np.ndarray, next_obs: Any, valid: np.ndarray) -> None:
        """Open a window in each valid row and add the reward to all open ones."""
        if self._start is None:
            self._start = tree_map(self._buffer, (obs, action))
            self._last = tree_map(lambda leaf: np.zeros_like(np.asarray(leaf)), next_obs)
        rows = np.flatnonzero(valid)
        place = (self._oldest[rows] + self._open[rows]) % self.n

        def open_window(buffer: np.ndarray, leaf: Any) -> None:
            buffer[rows, place] = np.asarray(leaf)[rows]

        def remember(buffer: np.ndarray, leaf: Any) -> None:
            buffer[rows] = np.asarray(leaf)[rows]

        tree_map(open_window, self._start, (obs, action))
        tree_map(remember, self._last, next_obs)
        self._reward[rows, place], self._steps[rows, place] = 0.0, 0
        self._open[rows] += 1
        age = (self._places - self._oldest[:, None]) % self.n  # (E, n), 0 is the oldest
        grows = (age < self._open[:, None]) & valid[:, None]  # (E, n)
        self._reward += np.where(grows, self._powers[self._steps] * reward[:, None], 0.0)
        self._steps += grows

    def _buffer(self, leaf: Any) -> np.ndarray:
        leaf = np.asarray(leaf)
        return np.zeros((self.num_envs, self.n, *leaf.shape[1:]), leaf.dtype)

    def _emit(self, finished: np.ndarray, next_obs: Any, terminated: np.ndarray) -> Transition:
        """Take the ``finished`` (E,) oldest windows out of each row."""
        rows, age = np.nonzero(self._places < finished[:, None])  # (W,), by row, the oldest first
        place = (self._oldest[rows] + age) % self.n
        obs, action = tree_take(self._start, (rows, place))
        discount = np.where(terminated[rows], 0.0, self._powers[self._steps[rows, place]])
        self._oldest = (self._oldest + finished) % self.n
        self._open -= finished
        return Transition(obs, action, self._reward[rows, place], discount, tree_take(next_obs, rows))
