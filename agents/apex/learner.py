"""The learner: draws windows from the memory, takes one gradient step, and says how surprising they still are."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from agents.apex.adam import Adam
from agents.apex.channel import Block, Cluster
from agents.apex.config import ApeXConfig
from agents.apex.health import Health
from agents.apex.loss import td_error, weighted_huber
from agents.apex.masks import penalty
from agents.apex.network import DuelingNetwork, FlatParameters, features, to_arrays
from agents.apex.noise import LayerNoise, draw_noise
from agents.apex.ratio import SamplesPerInsert
from agents.apex.steps import wants_steps
from agents.replay import ReplayMemory
from agents.types import Transition, Weights

POLL_SECONDS = 0.1  # how long the learner waits for rows before it looks after its actors


class Update(NamedTuple):
    """What one gradient step reports."""

    loss: float
    error: float  # mean absolute temporal-difference error
    value: float  # mean value of the actions taken


class Learner:
    """Dueling double Q-learning on prioritized windows.

    Three networks: ``network`` is trained, ``target`` follows it for the targets, ``average`` follows it for the
    policy: single updates move a policy about, their average does not (Polyak & Juditsky 1992).

    Args:
        network: online network; trained in place.
        observation_space: of one env.
        memory: any memory of ``agents.replay``.
        config: of the run.
        generator: of a noisy network's noise; others need none.
    """

    def __init__(
        self,
        network: DuelingNetwork,
        observation_space: spaces.Space,
        memory: ReplayMemory,
        config: ApeXConfig,
        generator: np.random.Generator | None = None,
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self._space, self._generator = observation_space, generator
        self.target = deepcopy(network).requires_grad_(False)
        flat = FlatParameters(network)
        self._online_vector, self.gradient = flat.vector, flat.gradient
        self.average = deepcopy(network).requires_grad_(False)
        self._target_vector = FlatParameters(self.target).vector.data
        self._average_vector = FlatParameters(self.average).vector.data
        self.optimizer = Adam(self._online_vector.data, self.gradient, config.adam_epsilon)
        self.updates = 0
        self.health = Health()

    def store(self, block: Block) -> None:
        """Put a block's rows into the memory."""
        ids = self.memory.append(block.windows, block.priorities, block.source)
        self.health.inserted(ids, self.memory.capacity)

    def update(self, env_steps: int) -> Update:
        """Take one gradient step and give the drawn rows their new priorities.

        Args:
            env_steps: steps collected so far; they place the step on the learning rate's line.
        """
        batch = self.memory.sample(self.config.batch_size, **self._window)
        self.health.drawn(batch)
        error, value = self._errors(batch.transition)
        weights = torch.from_numpy(np.asarray(batch.weights, np.float32))
        loss = weighted_huber(error, weights)
        self._descend(loss, self.learning_rate(env_steps))
        self.updates += 1
        if self.updates % self.config.target_update_interval == 0:
            self._target_vector.lerp_(self._online_vector.data, self.config.target_update_rate)
        self._average_vector.lerp_(self._online_vector.data, self.config.averaging_rate)
        absolute = error.detach().abs().numpy()
        self.memory.update_priorities(batch.ids, absolute)
        return Update(loss.item(), float(absolute.mean()), value)

    @property
    def _window(self) -> dict[str, Any]:
        """What a memory of single steps must know to make windows."""
        return {"n_step": self.config.n_step, "discount": self.config.gamma} if wants_steps(self.memory) else {}

    def learning_rate(self, env_steps: int) -> float:
        """Give the step size after so many env steps."""
        done = min(env_steps / self.config.annealing_steps, 1.0)
        return self.config.learning_rate + done * (self.config.final_learning_rate - self.config.learning_rate)

    def weights(self) -> Weights:
        """Copy the online network for the actors."""
        return Weights(self.updates, to_arrays(self.network))

    def averaged_weights(self) -> Weights:
        """Copy the averaged network, which is the policy so far."""
        return Weights(self.updates, to_arrays(self.average))

    def _errors(self, windows: Any) -> tuple[Tensor, float]:
        obs = features(self._space, windows.obs)
        next_obs = features(self._space, windows.next_obs)
        with torch.no_grad():
            q_next, q_next_target = self.network(next_obs, self._noise()), self.target(next_obs, self._noise())
        if (illegal := penalty(self._space, windows.next_obs)) is not None:
            q_next += torch.from_numpy(illegal)
        q = self.network(obs, self._noise())
        columns = _columns(windows, self.config.reward_scale)
        return td_error(q, *columns, q_next, q_next_target), q.detach().mean().item()

    def _noise(self) -> list[LayerNoise] | None:
        """New noise for one use of a network: the three uses of an update are independent."""
        shapes = self.network.noise_shapes
        return draw_noise(self._generator, shapes) if shapes and self._generator is not None else None

    def _descend(self, loss: Tensor, learning_rate: float) -> None:
        self.gradient.zero_()
        loss.backward()
        norm = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((self.config.max_gradient_norm / (norm + 1e-6)).clamp(max=1.0))
        self.optimizer.step(learning_rate)


def _columns(windows: Transition, reward_scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Action (N,), int64, scaled reward (N,) and discount (N,) of windows, as ``td_error`` takes them."""
    reward = torch.from_numpy(np.asarray(windows.reward, np.float32) * np.float32(reward_scale))
    discount = torch.from_numpy(np.asarray(windows.discount, np.float32))
    return torch.from_numpy(np.asarray(windows.action, np.int64)), reward, discount


def train(
    learner: Learner, cluster: Cluster, ratio: SamplesPerInsert, total_steps: int
) -> Iterator[Block | Update | None]:
    """Alternate between receiving blocks and updating, so that the ratio always holds.

    Rows wait in the channel, and actors with them, whenever training is due: no side can run away from the other.

    Args:
        learner: with its memory.
        cluster: running actors.
        ratio: counts both sides.
        total_steps: env steps, counted over the agent's life, at which to stop.

    Yields:
        Each block once its rows are stored, each update, and None some times a second while it waits for a block.
    """
    published = -1
    while True:
        if len(learner.memory) and ratio.may_sample():  # long windows may not be through yet after the warm-up
            update = learner.update(ratio.inserted)
            ratio.sample()
            yield update
        elif ratio.inserted >= total_steps:
            return
        else:
            if published < learner.updates:
                cluster.publish(learner.weights())
                published = learner.updates
            if (block := cluster.receive(POLL_SECONDS)) is not None:
                learner.store(block)
                ratio.insert(block.steps)
                yield block
            else:
                cluster.check()
                yield None
