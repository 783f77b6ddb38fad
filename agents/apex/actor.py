"""The actor: explores with a fixed epsilon a row, makes n-step windows and says at once how surprising they are."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from agents.apex.channel import ActorChannel, Block, Episode
from agents.apex.config import ApeXConfig
from agents.apex.envs import EnvSource, Seeds, actor_seeds, make_envs
from agents.apex.loss import columns, epsilon_greedy, row_epsilons, td_error
from agents.apex.network import DuelingNetwork, features, load_arrays, make_network
from agents.apex.steps import SingleSteps
from agents.nstep import NStepAccumulator
from agents.trees import tree_map
from agents.types import Experience, Transition


class ActorPlan(NamedTuple):
    """Everything an actor is made from; it travels to the actor's process."""

    source: EnvSource
    config: ApeXConfig
    seed: int
    actor: int
    life: int  # 0 at first, one more after each restart
    steps_only: bool = False  # send Experiences instead of windows


def build_actor(plan: ActorPlan) -> Actor:
    """Make an actor with its envs, its share of the epsilons and its own random numbers."""
    config, rows = plan.config, plan.config.envs_per_actor
    envs = make_envs(plan.source, rows)
    network = make_network(
        envs.single_observation_space, envs.single_action_space, config.hidden_sizes, config.layer_norm, plan.seed
    )
    epsilons = row_epsilons(config.max_epsilon, config.epsilon_alpha, config.num_actors * rows)
    own = epsilons[plan.actor * rows : (plan.actor + 1) * rows]
    windows: NStepAccumulator | SingleSteps = NStepAccumulator(config.n_step, config.gamma, rows)
    if plan.steps_only:
        first = (plan.life * config.num_actors + plan.actor) * rows
        windows = SingleSteps(np.arange(first, first + rows))
    return Actor(envs, network, config, plan.actor, own, windows, actor_seeds(plan.seed, plan.actor, plan.life, rows))


class Actor:
    """Steps a vector env and collects windows with priorities.

    The envs restart rows in the next step: the last observation of an episode is then an ordinary network input, and
    the Q-values computed for acting serve both ends of every window. No observation is evaluated twice.

    Args:
        envs: vector env in NEXT_STEP mode.
        network: its own copy; weights come through the channel.
        config: of the run.
        index: which of the actors this is.
        epsilons: exploration of each row, (num_envs,).
        windows: what becomes of the steps.
        seeds: of the rows and of the exploration.
    """

    def __init__(
        self,
        envs: VectorEnv,
        network: DuelingNetwork,
        config: ApeXConfig,
        index: int,
        epsilons: np.ndarray,
        windows: NStepAccumulator | SingleSteps,
        seeds: Seeds,
    ) -> None:
        self.envs, self.network, self.config, self.index, self.epsilons = envs, network, config, index, epsilons
        self.generator = np.random.default_rng(seeds.actions)
        self.windows = windows
        self.obs, _ = envs.reset(seed=seeds.rows)  # type: ignore[arg-type]  # SyncVectorEnv and its like take lists
        self.q = self.values(self.obs)  # (E, A)
        self.version = 0  # of the weights; 0 is untrained and acts at random
        self.steps_since_look = 0
        self.tape: list[np.ndarray] | None = None  # of actions; kept only where a run must be repeatable
        self.recent_q = deque([self.q], maxlen=config.n_step + 1)  # of the observations in open windows, and the last
        self._over = np.zeros(envs.num_envs, bool)  # rows whose next step is a reset
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, int)

    def collect(self, channel: ActorChannel) -> Block:
        """Step until a block is full."""
        parts: list[Transition | Experience] = []
        episodes: list[Episode] = []
        rows = steps = 0
        while rows < self.config.block_size:
            self._look(channel)
            windows, num_steps, finished = self.step(self.choose())
            parts.append(windows)
            episodes += finished
            rows += len(windows.reward)
            steps += num_steps
        windows = type(parts[0])(*tree_map(lambda *leaves: np.concatenate(leaves), *map(tuple, parts)))
        (obs, q, *source), (next_obs, q_next) = windows.obs, windows.next_obs
        windows = windows._replace(obs=obs, next_obs=next_obs)
        errors = priorities(as_windows(windows, self.config.gamma), q, q_next, self.config.reward_scale)
        stream = source[0] if source else self.index
        return Block(windows, errors, self.index, stream, steps, self.version, tuple(episodes))

    def choose(self) -> np.ndarray:
        """Choose action indices (E,) from the values at hand."""
        epsilons = self.epsilons if self.version else np.ones_like(self.epsilons)
        return epsilon_greedy(self.q, epsilons, self.generator)

    def step(
        self, actions: np.ndarray, q: np.ndarray | None = None
    ) -> tuple[Transition | Experience, int, list[Episode]]:
        """Take one step of all rows.

        Args:
            actions: indices from 0, (E,).
            q: values of the observations to come where they are known, (E, A); else the network gives them.

        Returns:
            The windows that end here, whose observations are pairs with their values; the number of real steps; the
            finished episodes.
        """
        first = self.envs.single_action_space.start  # type: ignore[attr-defined]  # Discrete, as spaces_of checks
        obs, reward, terminated, truncated, _ = self.envs.step(actions + first)
        q = self.values(obs) if q is None else q
        valid = ~self._over
        here, after = (self.obs, self.q), (obs, q)
        windows = self.windows.push(here, actions, reward, terminated, truncated, after, valid=valid)
        self.obs, self.q, self._over = obs, q, terminated | truncated
        self.recent_q.append(q)
        if self.tape is not None:
            self.tape.append(actions)
        self._returns += reward
        self._lengths += valid
        num_steps = int(valid.sum())
        self.steps_since_look += num_steps
        return windows, num_steps, self._finished() if self._over.any() else []

    def values(self, obs: Any) -> np.ndarray:
        """Give the action values (E, A) of observations."""
        with torch.inference_mode():
            return self.network(features(self.envs.single_observation_space, obs)).numpy()

    def close(self) -> None:
        """Close the envs."""
        self.envs.close()

    def _look(self, channel: ActorChannel) -> None:
        """Take the newest weights: once in update_param_interval steps, and before the first at every step."""
        if self.version and self.steps_since_look < self.config.update_param_interval:
            return
        self.steps_since_look = 0
        if (weights := channel.weights()) is not None:
            load_arrays(self.network, weights.arrays)
            self.version = weights.version

    def _finished(self) -> list[Episode]:
        first = self.index * self.envs.num_envs
        rows = np.flatnonzero(self._over)
        columns = (rows + first, self.epsilons[rows], self._returns[rows], self._lengths[rows])
        self._returns[rows], self._lengths[rows] = 0, 0
        return [Episode(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def as_windows(rows: Transition | Experience, gamma: float) -> Transition:
    """Give single steps as windows of one step; windows stay as they are."""
    if isinstance(rows, Transition):
        return rows
    return Transition(rows.obs, rows.action, rows.reward, gamma * ~rows.terminated, rows.next_obs)


def priorities(windows: Transition, q: np.ndarray, q_next: np.ndarray, reward_scale: float = 1.0) -> np.ndarray:
    """Absolute temporal-difference errors (N,) of fresh windows, from the values that the actor acted on.

    An actor has no target network, so the same values choose the action after the window and rate it.
    """
    after = torch.from_numpy(q_next)
    return td_error(torch.from_numpy(q), *columns(windows, reward_scale), after, after).abs().numpy()


def run_actor(actor: Actor, channel: ActorChannel) -> None:
    """Collect and send for ever; ends with the channel's Closed."""
    while True:
        channel.send(actor.collect(channel))
