"""Tabular Q-learning in NumPy (Watkins & Dayan 1992)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from .equations import Array, epsilon_greedy, q_update, visit_rate
from .settings import check_settings, legal_count
from .tables import indexer, legal_observations, state_index, table_shape


class QLearning:
    """Tabular Q-learning with an epsilon-greedy behaviour policy.

    A single env trains one agent; a vector env trains one independent agent, with a table of its own, per row.
    The behaviour policy breaks ties uniformly among the exact maxima; ``predict`` takes the first maximum unless
    ``deterministic=False``. The step in which a vector env merely resets a row updates nothing.

    Args:
        env: an env, a vector env or an id, with Discrete or MultiDiscrete observations and Discrete actions.
        learning_rate: in [0, 1], a number, an array over agents, or "visits" for 1 / visits^0.8 of each pair.
        discount: in [0, 1].
        epsilon: probability of a uniform action, a number or an array over agents.
        seed: of the policy's generator and of the env's first reset.

    Attributes:
        q_values: ``(*sizes, A)`` for a single env, ``(N, *sizes, A)`` for a vector env, float64, zero at the start.
        num_timesteps: env steps taken so far, all rows together.
        episode_returns: undiscounted return of every finished episode, in the order of their ends.
        episode_lengths: steps of every finished episode.

    Raises:
        TypeError: where a space is not finite, or an argument of another type.
        ValueError: where a setting is out of range.
    """

    def __init__(
        self,
        env: gym.Env | VectorEnv | str,
        learning_rate: float | np.ndarray | str = 0.1,
        discount: float = 0.99,
        epsilon: float | np.ndarray = 0.1,
        seed: int | None = None,
    ) -> None:
        self.env = gym.make(env) if isinstance(env, str) else env
        if not isinstance(self.env, (gym.Env, VectorEnv)):
            raise TypeError(f"env must be an env, a vector env or an id, got {env!r}")
        vector = isinstance(self.env, VectorEnv)
        self._spaces = _spaces(self.env)
        self._agents = self.env.num_envs if isinstance(self.env, VectorEnv) else 1
        check_settings(learning_rate, discount, epsilon, self._agents)
        self.learning_rate, self.discount, self.epsilon = learning_rate, discount, epsilon
        shape = table_shape(*self._spaces)
        self._table = np.zeros((self._agents, int(np.prod(shape[:-1])), shape[-1]))
        self._visits = np.zeros(self._table.shape, np.int64) if isinstance(learning_rate, str) else None
        self.q_values = self._table.reshape((self._agents, *shape) if vector else shape)
        self.num_timesteps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self._seed, self._rng = seed, np.random.default_rng(seed)

    def learn(
        self, total_timesteps: int | None = None, num_episodes: int | None = None, progress_bar: bool = False
    ) -> QLearning:
        """Train for a number of env steps (all rows counted) or of finished episodes; starts with a reset.

        Raises:
            TypeError: where the number is no integer.
            ValueError: unless exactly one of the two numbers is given, and positive.
        """
        if (total_timesteps is None) == (num_episodes is None):
            raise ValueError(f"give one of total_timesteps and num_episodes, got {total_timesteps} and {num_episodes}")
        by_steps = num_episodes is None
        goal = legal_count(*("total_timesteps", total_timesteps) if by_steps else ("num_episodes", num_episodes))
        seed, self._seed = self._seed, None  # later calls go on with the env's own generator
        env = self.env
        steps = self._steps_of_rows(env, seed) if isinstance(env, VectorEnv) else self._steps_of_one(env, seed)
        start = self._count(by_steps)
        with _progress(goal, progress_bar) as bar:
            done = 0
            for _ in steps:
                now = self._count(by_steps) - start
                if now > done:
                    bar.update(now - done)
                    done = now
                if done >= goal:
                    break
        return self

    def _count(self, by_steps: bool) -> int:
        return self.num_timesteps if by_steps else len(self.episode_returns)

    def _steps_of_one(self, env: gym.Env, seed: int | None) -> Iterator[None]:
        """Play and learn for ever in a single env, on Python numbers: a small array costs more than the arithmetic."""
        observation_space, action_space = self._spaces
        table, start, index = self._table[0], int(action_space.start), indexer(observation_space)
        rate, epsilon = (x if isinstance(x, str) else float(np.ravel(x)[0]) for x in (self.learning_rate, self.epsilon))
        while True:
            state, total, length, ended = index(env.reset(seed=seed)[0]), 0.0, 0, False
            seed = None
            while not ended:
                values = table[state].tolist()
                action = epsilon_greedy(values, epsilon, self._rng.random(), _Numbers)
                obs, reward, terminated, truncated, _ = env.step(action + start)
                reward, next_state = float(reward), index(obs)
                if self._visits is not None:
                    self._visits[0, state, action] += 1
                    rate = visit_rate(int(self._visits[0, state, action]))
                next_q = table[next_state].tolist()
                table[state, action] = q_update(
                    values[action], reward, terminated, next_q, rate, self.discount, _Numbers
                )
                state, total, length, ended = next_state, total + reward, length + 1, terminated or truncated
                self.num_timesteps += 1
                if ended:
                    self.episode_returns.append(total)
                    self.episode_lengths.append(length)
                yield

    def _steps_of_rows(self, env: VectorEnv, seed: int | None) -> Iterator[None]:
        """Play and learn for ever in a vector env, in any of Gymnasium's autoreset modes."""
        mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        observation_space, action_space = self._spaces
        rows, returns, lengths = np.arange(self._agents), np.zeros(self._agents), np.zeros(self._agents, np.int64)
        obs, ended = np.array(env.reset(seed=seed)[0]), np.zeros(self._agents, bool)
        while True:
            state = state_index(observation_space, obs)
            action = epsilon_greedy(self._table[rows, state], self.epsilon, self._rng.random(self._agents))
            obs, reward, terminated, truncated, info = env.step(action + int(action_space.start))
            next_obs = obs = np.array(obs)
            valid = ~ended if mode is AutoresetMode.NEXT_STEP else np.ones(self._agents, bool)
            ended = terminated | truncated
            if ended.any() and mode is AutoresetMode.SAME_STEP:
                next_obs = obs.copy()
                next_obs[ended] = np.stack(list(info["final_obs"][ended]))
            elif ended.any() and mode is AutoresetMode.DISABLED:
                obs = np.array(env.reset(options={"reset_mask": ended.copy()})[0])
            next_state = state_index(observation_space, next_obs)
            self._update_rows((rows, state, action), valid, reward, terminated, self._table[rows, next_state])
            self.num_timesteps += int(valid.sum())
            returns, lengths = returns + np.where(valid, reward, 0.0), lengths + valid
            self.episode_returns += returns[ended].tolist()
            self.episode_lengths += lengths[ended].tolist()
            returns[ended], lengths[ended] = 0.0, 0
            yield

    def _update_rows(
        self, pair: tuple[np.ndarray, ...], valid: np.ndarray, reward: Array, terminated: Array, next_q: Array
    ) -> None:
        """Update one pair a row, where the step was a real one."""
        rate, q = self.learning_rate, self._table[pair]
        if self._visits is not None:
            self._visits[pair] += valid
            rate = visit_rate(np.maximum(self._visits[pair], 1))
        new = q_update(q, reward, terminated, next_q, rate, self.discount)
        self._table[pair] = np.where(valid, new, q)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Choose actions as stable-baselines3's ``predict`` does, so that its ``evaluate_policy`` works.

        Args:
            observation: one observation, or a batch with one row per agent (any number of rows for one agent).
            state: passed through.
            episode_start: ignored.
            deterministic: the first of the maxima if true, else a draw of the behaviour policy.

        Returns:
            The action or actions, and ``state``.

        Raises:
            ValueError: an observation is outside the space.
        """
        index = np.asarray(state_index(self._spaces[0], legal_observations(self._spaces[0], observation)))
        agent = 0 if self._agents == 1 else np.arange(self._agents)
        values = self._table[agent, index]
        if deterministic:
            action = values.argmax(-1)
        else:
            action = epsilon_greedy(values, self.epsilon, self._rng.random(index.shape))
        return action + int(self._spaces[1].start), state


def _spaces(env: gym.Env | VectorEnv) -> tuple[Any, Any]:
    """The spaces of one environment."""
    if isinstance(env, VectorEnv):
        return env.single_observation_space, env.single_action_space
    return env.observation_space, env.action_space


class _Numbers:
    """The few functions of the array namespace that the equations use, on Python numbers."""

    maximum, minimum = max, min

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no


class _NoBar:
    """Stands in for tqdm where no bar is wanted."""

    def update(self, _: int) -> None:
        pass


def _progress(total: int, wanted: bool) -> Any:
    if not wanted:
        return nullcontext(_NoBar())
    from tqdm import tqdm

    return tqdm(total=total)
