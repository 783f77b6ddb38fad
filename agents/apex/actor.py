"""The actor: explores with a fixed epsilon a row, makes n-step windows and says at once how surprising they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from agents.apex.channel import ActorChannel, Block, Episode
from agents.apex.config import ApeXConfig
from agents.apex.envs import EnvSource, Seeds, actor_seeds, make_envs
from agents.apex.features import feature_array
from agents.apex.frozen import FrozenNetwork
from agents.apex.loss import draw_exploration, epsilon_greedy, row_epsilons, td_error
from agents.apex.masks import join, masks_of, penalty, refuse_dead_ends, with_mask
from agents.apex.noise import perturbed
from agents.apex.steps import SingleSteps, StepBuffer
from agents.nstep import NStepAccumulator
from agents.types import Experience, Transition, Weights


class ActorPlan(NamedTuple):
    """Everything an actor is made from; it travels to the actor's process."""

    source: EnvSource
    config: ApeXConfig
    seed: int
    actor: int
    life: int  # 0 at first, one more after each restart
    steps_only: bool = False  # send Experiences instead of windows
    masked: bool = False  # whether infos say which actions are legal


def build_actor(plan: ActorPlan, weights: Weights) -> Actor:
    """Make an actor with its envs, its share of the epsilons, its own random numbers and its first weights."""
    config, rows = plan.config, plan.config.envs_per_actor
    envs = make_envs(plan.source, rows)
    epsilons = row_epsilons(config.max_epsilon, config.epsilon_alpha, config.num_actors * rows)
    own = epsilons[plan.actor * rows : (plan.actor + 1) * rows]
    if config.exploration == "noisy":
        own = np.zeros(rows)
    windows: NStepAccumulator | SingleSteps = NStepAccumulator(config.n_step, config.gamma, rows)
    if plan.steps_only:
        first = (plan.life * config.num_actors + plan.actor) * rows
        windows = SingleSteps(np.arange(first, first + rows))
    seeds = actor_seeds(plan.seed, plan.actor, plan.life, rows)
    return Actor(envs, weights, config, plan.actor, own, windows, seeds, plan.masked)


class Actor:
    """Steps a vector env and collects windows with priorities, a block of steps at a time.

    The envs restart rows in the next step: the last observation of an episode is then an ordinary network input, and
    the Q-values computed for acting serve both ends of every window. No observation is evaluated twice.

    Args:
        envs: vector env in NEXT_STEP mode.
        weights: to begin with; newer ones come through the channel. Those of version 0 are untrained: while it has
            no others, the actor acts at random.
        config: of the run.
        index: which of the actors this is.
        epsilons: exploration of each row, (num_envs,).
        windows: what becomes of the steps.
        seeds: of the rows and of the exploration.
        masked: whether infos say which actions are legal; the masks are then kept beside the observations.
    """

    def __init__(
        self,
        envs: VectorEnv,
        weights: Weights,
        config: ApeXConfig,
        index: int,
        epsilons: np.ndarray,
        windows: NStepAccumulator | SingleSteps,
        seeds: Seeds,
        masked: bool = False,
    ) -> None:
        self.envs, self.config, self.index, self.epsilons, self.windows = envs, config, index, epsilons, windows
        self._always = np.ones_like(epsilons)
        self.generator = np.random.default_rng(seeds.actions)
        self.use(weights)
        self._actions: spaces.Discrete = envs.single_action_space  # type: ignore[assignment]  # see spaces_of
        self._space = envs.single_observation_space
        self._masked = masked
        if masked:
            self._space = with_mask(self._space, int(self._actions.n))
        self._over = np.zeros(envs.num_envs, bool)  # rows whose next step is a reset
        obs = self._with_masks(*envs.reset(seed=seeds.rows))  # type: ignore[arg-type]  # SyncVectorEnv takes lists
        self.buffer = StepBuffer(config.block_steps, config.n_step - 1, obs, self.values(obs))
        self.steps_since_look = 0
        self._first_row = index * envs.num_envs
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, int)

    def use(self, weights: Weights) -> None:
        """Act with these weights from now on."""
        noisy = self.config.exploration == "noisy"
        arrays = perturbed(weights.arrays, self.generator) if noisy else weights.arrays
        self.weights, self._network = weights, FrozenNetwork(arrays)

    def values(self, obs: Any) -> np.ndarray:
        """Give the action values (E, A) of observations; minus infinity where an action is illegal."""
        q = self._network(feature_array(self._space, obs))
        illegal = penalty(self._space, obs)
        return q if illegal is None else q + illegal

    def _with_masks(self, obs: Any, infos: dict[str, Any]) -> Any:
        """Put the masks that infos hold beside observations, if this env has any."""
        if not self._masked:
            return obs
        masks = masks_of(infos, self.envs.num_envs, int(self._actions.n))
        refuse_dead_ends(masks, ~self._over)
        return join(obs, masks)

    def collect(self, channel: ActorChannel) -> Block:
        """Take the steps of one block."""
        buffer = self.buffer
        buffer.begin()
        if self.config.exploration == "noisy":
            self.use(self.weights)  # with new noise
        chance, choice = draw_exploration(self.generator, buffer.action.shape)
        for t in range(buffer.num_steps):
            self._look(channel)
            epsilons = self.epsilons if self.weights.version else self._always
            self.step(t, epsilon_greedy(buffer.values(t), epsilons, chance[t], choice[t]))
        return self._block()

    def repeat(self, actions: np.ndarray, q: np.ndarray) -> None:
        """Take steps of the past once more, to be where they led to.

        Args:
            actions: of whole blocks, (S, E).
            q: values of the last observations, (K + 1, E, A), K being what the buffer keeps.
        """
        for block in actions.reshape(-1, *self.buffer.action.shape):
            self.buffer.begin()
            for t, action in enumerate(block):
                self.step(t, action, q[-1])
            self.windows.push_steps(*self.buffer.steps(), self.buffer.valid)
            self._finished()
        self.buffer.q[-len(q) :] = q

    def step(self, t: int, action: np.ndarray, q: np.ndarray | None = None) -> None:
        """Take step ``t`` of the block in all rows.

        Args:
            t: place in the block.
            action: indices from 0, (E,).
            q: values of the observations to come where they are known, (E, A); else the network gives them.
        """
        obs, reward, terminated, truncated, infos = self.envs.step(action + self._actions.start)
        buffer = self.buffer
        buffer.action[t], buffer.reward[t] = action, reward
        buffer.terminated[t], buffer.truncated[t] = terminated, truncated
        valid = np.logical_not(self._over, out=buffer.valid[t])
        np.logical_or(terminated, truncated, out=self._over)
        obs = self._with_masks(obs, infos)
        buffer.write(t, obs, self.values(obs) if q is None else q)
        self.steps_since_look += int(np.count_nonzero(valid))

    def close(self) -> None:
        """Close the envs."""
        self.envs.close()

    def _look(self, channel: ActorChannel) -> None:
        """Take the newest weights: once in update_param_interval steps, and before the first at every step."""
        if self.weights.version and self.steps_since_look < self.config.update_param_interval:
            return
        self.steps_since_look = 0
        if (weights := channel.weights()) is not None:
            self.use(weights)

    def _block(self) -> Block:
        """Make the buffer's steps into what is sent."""
        valid = self.buffer.valid
        windows = self.windows.push_steps(*self.buffer.steps(), valid)
        places, stream = windows.obs if isinstance(windows, Experience) else (windows.obs, self.index)
        (obs, q), (next_obs, q_next) = self.buffer.look_up(places), self.buffer.look_up(windows.next_obs)
        windows = windows._replace(obs=obs, next_obs=next_obs)
        errors = priorities(as_windows(windows, self.config.gamma), q, q_next, self.config.reward_scale)
        if not np.isfinite(errors).all():
            raise ValueError(_cause(self.buffer.reward))
        steps = int(np.count_nonzero(valid))
        return Block(windows, errors, self.index, stream, steps, self.weights.version, self._finished())

    def _finished(self) -> tuple[Episode, ...]:
        """Add the buffer's steps to the running episodes, and give those that ended, by row."""
        buffer = self.buffer
        row, t = np.nonzero((buffer.terminated | buffer.truncated).T)  # by row and time
        returns = _sums_until(t, row, buffer.reward, self._returns)
        lengths = _sums_until(t, row, buffer.valid, self._lengths)
        columns = (row + self._first_row, self.epsilons[row], returns, lengths)
        return tuple(map(Episode, *(column.tolist() for column in columns)))


def _cause(rewards: np.ndarray) -> str:
    """One sentence about errors that are not finite."""
    wrong = rewards[~np.isfinite(rewards)]
    if wrong.size:
        return f"the env gave the reward {wrong[0]}: rewards must be finite"
    return "the action values are not finite: an observation is not, rewards are too large, or learning has diverged"


def _sums_until(t: np.ndarray, row: np.ndarray, values: np.ndarray, begun: np.ndarray) -> np.ndarray:
    """Sum each row's values up to each of its ends, and from there anew.

    Args:
        t: times of the ends, (M,).
        row: their rows, (M,), sorted; within a row, times are sorted.
        values: (T, E).
        begun: sums so far, (E,); afterwards those of what has not ended.

    Returns:
        The sum that each end closes, (M,).
    """
    running = values.cumsum(axis=0, dtype=begun.dtype)  # (T, E)
    running += begun
    sums = running[t, row]
    begun[:] = running[-1]
    begun[row] -= sums  # the last end of a row counts
    before = np.where(row[1:] == row[:-1], sums[:-1], 0)
    sums[1:] -= before
    return sums


def as_windows(rows: Transition | Experience, gamma: float) -> Transition:
    """Give single steps as windows of one step; windows stay as they are."""
    if isinstance(rows, Transition):
        return rows
    return Transition(rows.obs, rows.action, rows.reward, gamma * ~rows.terminated, rows.next_obs)


def priorities(windows: Transition, q: np.ndarray, q_next: np.ndarray, reward_scale: float = 1.0) -> np.ndarray:
    """Absolute temporal-difference errors (N,) of fresh windows, from the values that the actor acted on.

    An actor has no target network, so the same values choose the action after the window and rate it.
    """
    reward = np.asarray(windows.reward, np.float32) * np.float32(reward_scale)
    discount = np.asarray(windows.discount, np.float32)
    return np.abs(td_error(q, windows.action, reward, discount, q_next, q_next))


def run_actor(actor: Actor, channel: ActorChannel) -> None:
    """Collect and send for ever; ends with the channel's Closed."""
    while True:
        channel.send(actor.collect(channel))
