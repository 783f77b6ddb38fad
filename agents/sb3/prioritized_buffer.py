"""A prioritized memory as a stable-baselines3 replay buffer."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from agents.replay import PrioritizedMemory
from agents.replay.checks import check_fraction, check_integer
from agents.trees import tree_map
from agents.types import Experience


class PrioritizedSamples(NamedTuple):
    """SB3's ``ReplayBufferSamples`` and what prioritized learning needs beside them."""

    observations: Any  # (N, ...), a dict of tensors for Dict spaces
    actions: th.Tensor  # (N, action_dim)
    next_observations: Any  # (N, ...)
    dones: th.Tensor  # (N, 1), 1 after termination
    rewards: th.Tensor  # (N, 1), discounted sums over the window
    discounts: th.Tensor  # (N, 1), gamma**k for a window of k steps, 0 after termination
    weights: th.Tensor  # (N, 1), importance weights
    ids: np.ndarray  # (N,), names of the rows

    def targets(self, next_values: th.Tensor) -> th.Tensor:
        """The learning targets (N, 1) from values (N, 1) of the next observations."""
        return self.rewards + (1 - self.dones) * self.discounts * next_values


class PrioritizedReplayBuffer(ReplayBuffer):
    """Draws steps by their last TD errors (Schaul et al. 2016); rows of all envs share one :class:`PrioritizedMemory`.

    Use it through :class:`PrioritizedDQN`, :class:`PrioritizedSAC` or :class:`PrioritizedTD3`: SB3's own algorithms
    neither weight their losses nor tell the errors, so with them it warns.

    Each observation is stored once. Windows of ``n_steps`` steps end with their episode, at the newest row, and where
    an env was reset between two calls of ``learn``. Under ``VecNormalize`` a window's summed reward is normalized as
    one.

    Args:
        buffer_size: rows of all envs together.
        observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of such.
        action_space: likewise; Box actions are stored scaled to [-1, 1] as SB3 gives them.
        device: of the sampled tensors.
        n_envs: envs that add a row each per step.
        optimize_memory_usage: not accepted, since observations are stored once anyway.
        handle_timeout_termination: False treats the end by a time limit as a termination.
        n_steps: steps of a window.
        gamma: discount per step.
        priority_exponent: alpha, see :class:`PrioritizedMemory`, like the following.
        initial_importance_sampling_exponent: beta before the first sample.
        num_annealing_steps: samples until beta is 1.
        priority_epsilon: added to each priority.
        seed: of the draws; None for fresh entropy.

    Raises:
        ValueError: for ``optimize_memory_usage`` or a number out of its range.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_steps: int = 1,
        gamma: float = 0.99,
        priority_exponent: float = 0.6,
        initial_importance_sampling_exponent: float = 0.4,
        num_annealing_steps: int = 1_000_000,
        priority_epsilon: float = 1e-6,
        seed: int | None = None,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError("PrioritizedReplayBuffer stores each observation once: leave optimize_memory_usage False.")
        # not ReplayBuffer's: its arrays would be a second store
        super(ReplayBuffer, self).__init__(
            max(buffer_size // n_envs, 1), observation_space, action_space, device, n_envs=n_envs
        )
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps, self.gamma = check_integer("n_steps", n_steps, 1), check_fraction("gamma", gamma)
        self.memory = PrioritizedMemory(
            observation_space,
            _scaled(action_space),
            capacity=self.buffer_size * n_envs,
            priority_exponent=priority_exponent,
            initial_importance_sampling_exponent=initial_importance_sampling_exponent,
            num_annealing_steps=num_annealing_steps,
            priority_epsilon=priority_epsilon,
            seed=seed,
        )
        self._stream = 0  # a new one begins where an env did not go on from its last observation
        self._open: Any = None  # the last observations, and which rows' episodes go on
        self._errors_are_due = False
        self._has_warned = False

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one step of each env.

        Raises:
            ValueError: if these are not as many envs as the buffer was made for.
        """
        if len(infos) != self.n_envs:
            raise ValueError(f"This buffer holds the steps of {self.n_envs} envs (n_envs), got a step of {len(infos)}.")
        timeouts = np.array([info.get("TimeLimit.truncated", False) for info in infos], dtype=bool)
        truncated = timeouts & self.handle_timeout_termination
        done = np.asarray(done, dtype=bool)
        if not self._goes_on(obs):
            self._stream += self.n_envs
        actions = np.asarray(action).reshape(self.n_envs, *self.memory.action_space.shape)  # type: ignore[misc]
        rows = Experience(obs, actions, np.asarray(reward), done & ~truncated, done & truncated, next_obs)
        self.memory.append(rows, source=self._stream + np.arange(self.n_envs))
        self._open = (tree_map(np.copy, next_obs), ~done)
        self.pos = (self.pos + 1) % self.buffer_size
        self.full = self.full or self.pos == 0

    def _goes_on(self, obs: Any) -> bool:
        """Whether each env whose episode is open starts where it was left."""
        if self._open is None:
            return True
        left, rows = self._open
        same: list[bool] = []
        tree_map(lambda now, before: same.append(np.array_equal(now[rows], before[rows])), obs, left)
        return all(same)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> PrioritizedSamples:  # type: ignore[override]
        """Draw a batch by priority; a second one before :meth:`update_priorities` warns once."""
        if self._errors_are_due and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "PrioritizedReplayBuffer was sampled twice without update_priorities: the algorithm does not feed its "
                "TD errors back. Use PrioritizedDQN, PrioritizedSAC or PrioritizedTD3 of agents.sb3.",
                UserWarning,
                stacklevel=2,
            )
        self._errors_are_due = True
        batch = self.memory.sample(batch_size, n_step=self.n_steps, discount=self.gamma)
        rows = batch.transition
        return PrioritizedSamples(
            observations=self._tensors(rows.obs, env),
            actions=self.to_torch(rows.action.reshape(batch_size, self.action_dim)),
            next_observations=self._tensors(rows.next_obs, env),
            dones=self._column(rows.discount == 0),
            rewards=self._column(self._normalize_reward(rows.reward, env)),
            discounts=self._column(rows.discount),
            weights=self._column(batch.weights),
            ids=batch.ids,
        )

    def update_priorities(self, ids: np.ndarray, td_errors: th.Tensor) -> None:
        """Tell the TD errors (N, 1) of a sampled batch, with or without sign."""
        self.memory.update_priorities(ids, td_errors.detach().abs().flatten().cpu().numpy())
        self._errors_are_due = False

    def reset(self) -> None:
        """Forget all rows."""
        super().reset()
        self.memory.reset()
        self._open = None

    def __getstate__(self) -> dict[str, Any]:
        """For SB3's ``save_replay_buffer``: the memory in its own saved form."""
        return {**self.__dict__, "memory": self.memory.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same, back; what is added next starts new windows."""
        self.__dict__.update(state)
        self.memory = PrioritizedMemory(self.observation_space, _scaled(self.action_space), 1)
        self.memory.load_state_dict(state["memory"])

    def _tensors(self, obs: Any, env: VecNormalize | None) -> Any:
        normalized = self._normalize_obs(obs, env)
        shapes: Any = self.obs_shape
        if isinstance(normalized, dict):
            return {key: self.to_torch(value.reshape(-1, *shapes[key])) for key, value in normalized.items()}
        return self.to_torch(normalized.reshape(-1, *shapes))

    def _column(self, values: np.ndarray) -> th.Tensor:
        return self.to_torch(values.astype(np.float32).reshape(-1, 1))


def _scaled(action_space: spaces.Space) -> spaces.Space:
    """The space of the actions that SB3 stores."""
    if isinstance(action_space, spaces.Box):
        return spaces.Box(-1.0, 1.0, action_space.shape, np.float32)
    return action_space
