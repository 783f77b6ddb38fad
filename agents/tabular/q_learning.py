"""Tabular Q-learning in NumPy (Watkins & Dayan 1992), and the two equations that the JAX loop shares with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

Array = Any
"""A number, a NumPy array or a JAX array."""

VISIT_EXPONENT = 0.8
"""omega of the polynomial learning rate 1 / visits^omega (Even-Dar & Mansour 2003, section 4)."""


def epsilon_greedy(q_values: Array, epsilon: Array, u: Array, xp: Any = np) -> Array:
    """Draw actions of the behaviour policy: uniform with probability epsilon, else uniform among the exact maxima.

    One uniform number serves both draws, since ``u / epsilon`` given ``u < epsilon`` is uniform again, and so is
    ``(u - epsilon) / (1 - epsilon)`` given the contrary.

    Args:
        q_values: (..., A), may hold -inf.
        epsilon: in [0, 1], (...) or a number.
        u: uniforms in [0, 1), (...).
        xp: numpy, or jax.numpy inside JAX.

    Returns:
        Action indices in 0 .. A - 1, integers of shape (...).
    """
    explore = u < epsilon
    within = xp.where(explore, u, u - epsilon) / xp.where(explore, epsilon, 1 - epsilon)  # uniform again
    best = q_values == q_values.max(-1, keepdims=True)
    candidates = best | xp.expand_dims(explore, -1)  # (..., A)
    rank = xp.floor(within * candidates.sum(-1))
    action = (xp.cumsum(candidates, -1) <= xp.expand_dims(rank, -1)).sum(-1)  # the candidate with this rank
    return xp.minimum(action, q_values.shape[-1] - 1)  # within may round up to 1


def q_update(
    q: Array, reward: Array, terminated: Array, next_q: Array, learning_rate: Array, discount: Array, xp: Any = np
) -> Array:
    """Return the new value of a visited pair: q + lr (r + discount max_a next_q[a] - q) (Watkins & Dayan 1992, eq. 1).

    Termination masks the bootstrap by a selection, so that not even a NaN leaks through; truncation does not mask it:
    give the row of the true last observation there.

    Args:
        q: value of the visited pair, (...).
        reward: (...).
        terminated: (...), bool.
        next_q: values of all actions in the next state, (..., A).
        learning_rate: in [0, 1], (...) or a number.
        discount: in [0, 1], a number.
        xp: numpy, or jax.numpy inside JAX.

    Returns:
        The updated value, (...).
    """
    bootstrap = xp.where(terminated, 0.0, next_q.max(-1))
    return q + learning_rate * (reward + discount * bootstrap - q)


def visit_rate(visits: Array) -> Array:
    """Learning rate of the visits-th update of a pair, visits >= 1: 1 / visits^0.8 (Even-Dar & Mansour 2003)."""
    return 1.0 / visits**VISIT_EXPONENT


def table_shape(observation_space: spaces.Space, action_space: spaces.Space) -> tuple[int, ...]:
    """Shape of one agent's table: the observation's sizes, then the number of actions.

    Raises:
        TypeError: where a space is not finite in the sense of Discrete or MultiDiscrete.
    """
    if not isinstance(action_space, spaces.Discrete):
        raise TypeError(f"tabular Q-learning needs a Discrete action space, got {action_space}")
    if isinstance(observation_space, spaces.Discrete):
        return int(observation_space.n), int(action_space.n)
    if isinstance(observation_space, spaces.MultiDiscrete):
        return *(int(n) for n in observation_space.nvec.ravel()), int(action_space.n)
    raise TypeError(f"tabular Q-learning needs Discrete or MultiDiscrete observations, got {observation_space}")


def state_index(observation_space: spaces.Space, obs: Array) -> Array:
    """Number of an observation's state, row-major: Discrete (...) or MultiDiscrete (..., k) to (...)."""
    if isinstance(observation_space, spaces.Discrete):
        return obs - int(observation_space.start) if observation_space.start else obs
    assert isinstance(observation_space, spaces.MultiDiscrete)
    axes = tuple(range(-observation_space.nvec.ndim, 0))
    strides = np.cumprod([1, *observation_space.nvec.ravel()[:0:-1]])[::-1].reshape(observation_space.nvec.shape)
    return ((obs - observation_space.start) * strides).sum(axes)


def check_settings(learning_rate: Any, discount: float, epsilon: Any, num_agents: int) -> None:
    """Refuse settings outside their range.

    Raises:
        ValueError: naming the value and what is legal.
    """
    if isinstance(learning_rate, str) and learning_rate != "visits":
        raise ValueError(f"learning_rate must be a number, an array over agents or 'visits', got {learning_rate!r}")
    named = {"discount": discount, "epsilon": epsilon}
    if not isinstance(learning_rate, str):
        named["learning_rate"] = learning_rate
    for name, value in named.items():
        numbers = np.asarray(value, np.float64)
        if not np.all((numbers >= 0) & (numbers <= 1)):
            raise ValueError(f"{name} must lie in [0, 1], got {value}")
        shapes = ((),) if name == "discount" else ((), (num_agents,))
        if numbers.shape not in shapes:
            raise ValueError(f"{name} must be a number or one per agent ({num_agents},), got shape {numbers.shape}")


class _Step(NamedTuple):
    """One step of all rows."""

    next_obs: np.ndarray  # true next observation, also at an episode's end
    reward: np.ndarray  # (N,)
    terminated: np.ndarray  # (N,), bool
    truncated: np.ndarray  # (N,), bool
    valid: np.ndarray  # (N,), False where the step was only an automatic reset
    obs: np.ndarray  # what the next actions are chosen on


class _SingleRows:
    """One ``gym.Env`` as one row, which restarts within the step that ended it."""

    def __init__(self, env: gym.Env) -> None:
        self._env = env
        self.num_envs = 1
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, seed: int | None) -> np.ndarray:
        return np.asarray(self._env.reset(seed=seed)[0])[None]

    def step(self, actions: np.ndarray) -> _Step:
        obs, reward, terminated, truncated, _ = self._env.step(int(actions[0]))
        next_obs = after = np.array(obs)[None]
        if terminated or truncated:
            after = self.reset(None)
        flags = np.array([[terminated], [truncated], [True]])
        return _Step(next_obs, np.array([float(reward)]), flags[0], flags[1], flags[2], after)


class _VectorRows:
    """A vector env in any of Gymnasium's autoreset modes."""

    def __init__(self, env: VectorEnv) -> None:
        self._env = env
        self.num_envs = env.num_envs
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))

    def reset(self, seed: int | None) -> np.ndarray:
        self._ended = np.zeros(self.num_envs, bool)
        return np.array(self._env.reset(seed=seed)[0])

    def step(self, actions: np.ndarray) -> _Step:
        obs, reward, terminated, truncated, info = self._env.step(actions)
        next_obs = after = np.array(obs)
        valid = ~self._ended if self._mode is AutoresetMode.NEXT_STEP else np.ones(self.num_envs, bool)
        self._ended = terminated | truncated
        if self._ended.any():
            if self._mode is AutoresetMode.SAME_STEP:
                next_obs = after.copy()
                next_obs[self._ended] = np.stack(list(info["final_obs"][self._ended]))
            elif self._mode is AutoresetMode.DISABLED:
                after = np.array(self._env.reset(options={"reset_mask": self._ended.copy()})[0])
        return _Step(next_obs, reward, terminated, truncated, valid, after)


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
        q_values: (\\*sizes, A) for a single env, (N, \\*sizes, A) for a vector env, float64, zero at the start.
        num_timesteps: env steps taken so far, all rows together.
        episode_returns: undiscounted return of every finished episode, in the order of their ends.
        episode_lengths: steps of every finished episode.

    Raises:
        TypeError: where a space is not finite.
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
        self._rows = _VectorRows(self.env) if isinstance(self.env, VectorEnv) else _SingleRows(self.env)
        self._agents = self._rows.num_envs
        check_settings(learning_rate, discount, epsilon, self._agents)
        self.learning_rate, self.discount, self.epsilon = learning_rate, discount, epsilon
        shape = table_shape(self._rows.observation_space, self._rows.action_space)
        self._table = np.zeros((self._agents, int(np.prod(shape[:-1])), shape[-1]))
        self._visits = np.zeros(self._table.shape, np.int64) if isinstance(learning_rate, str) else None
        self.q_values = self._table.reshape(shape if isinstance(self._rows, _SingleRows) else (self._agents, *shape))
        self.num_timesteps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self._seed, self._rng = seed, np.random.default_rng(seed)

    def learn(
        self, total_timesteps: int | None = None, num_episodes: int | None = None, progress_bar: bool = False
    ) -> QLearning:
        """Train for a number of env steps (all rows counted) or of finished episodes; starts with a reset.

        Raises:
            ValueError: unless exactly one of the two numbers is given, and positive.
        """
        goal = total_timesteps if num_episodes is None else num_episodes
        if (total_timesteps is None) == (num_episodes is None) or goal is None or goal < 1:
            raise ValueError(
                f"give one of total_timesteps and num_episodes, positive; got {total_timesteps} and {num_episodes}"
            )
        count = (lambda: self.num_timesteps) if num_episodes is None else (lambda: len(self.episode_returns))
        start, obs = count(), self._rows.reset(self._seed)
        self._seed = None  # later resets go on with the env's own generator
        returns, lengths = np.zeros(self._agents), np.zeros(self._agents, np.int64)
        with _progress(goal, progress_bar) as bar:
            while (done := count() - start) < goal:
                obs = self._step(obs, returns, lengths)
                bar.update(count() - start - done)
        return self

    def _step(self, obs: np.ndarray, returns: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Act, learn and book one step of all rows; returns the observations to act on next."""
        space, rows = self._rows.observation_space, np.arange(self._agents)
        state = state_index(space, obs)
        action = epsilon_greedy(self._table[rows, state], self.epsilon, self._rng.random(self._agents))
        step = self._rows.step(action + int(self._rows.action_space.start))
        self._update(rows, state, action, step, state_index(space, step.next_obs))
        self.num_timesteps += int(step.valid.sum())
        returns += np.where(step.valid, step.reward, 0.0)
        lengths += step.valid
        ended = (step.terminated | step.truncated) & step.valid
        if ended.any():
            self.episode_returns += returns[ended].tolist()
            self.episode_lengths += lengths[ended].tolist()
            returns[ended], lengths[ended] = 0.0, 0
        return step.obs

    def _update(self, rows: np.ndarray, state: np.ndarray, action: np.ndarray, step: _Step, next_state: Any) -> None:
        at = rows, state, action
        if self._visits is None:
            rate = self.learning_rate
        else:
            self._visits[at] += step.valid
            rate = visit_rate(np.maximum(self._visits[at], 1))
        q = self._table[at]
        new = q_update(q, step.reward, step.terminated, self._table[rows, next_state], rate, self.discount)
        self._table[at] = np.where(step.valid, new, q)

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
        """
        index = np.asarray(state_index(self._rows.observation_space, np.asarray(observation)))
        agent = 0 if self._agents == 1 else np.arange(self._agents)
        values = self._table[agent, index]
        if deterministic:
            action = values.argmax(-1)
        else:
            action = epsilon_greedy(values, self.epsilon, self._rng.random(index.shape))
        return action + int(self._rows.action_space.start), state


class _NoBar:
    """Stands in for tqdm where no bar is wanted."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, _: int) -> None:
        pass


def _progress(total: int, wanted: bool) -> Any:
    if not wanted:
        return _NoBar()
    from tqdm import tqdm

    return tqdm(total=total)
