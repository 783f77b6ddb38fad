"""stable-baselines3's value-based algorithms with prioritized experience replay (Schaul et al. 2016).

Each ``train`` does SB3's steps, with two differences: the loss of each row is multiplied by its importance weight
(section 3.4), and the rows' absolute TD errors go back to the buffer as new priorities (section 3.3). With all weights
1 the updates are SB3's to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch as th
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import polyak_update
from torch.nn import functional as F

from agents.sb3.prioritized_buffer import PrioritizedReplayBuffer, PrioritizedSamples


class PrioritizedReplay(OffPolicyAlgorithm):
    """What the three share: the buffer, set up from SB3's arguments ``n_steps``, ``gamma`` and ``seed``."""

    replay_buffer: PrioritizedReplayBuffer

    def _setup_model(self) -> None:
        self.replay_buffer_class = self.replay_buffer_class or PrioritizedReplayBuffer
        if not issubclass(self.replay_buffer_class, PrioritizedReplayBuffer):
            raise ValueError(
                f"{type(self).__name__} needs a PrioritizedReplayBuffer, got {self.replay_buffer_class.__name__}."
            )
        given, n_steps = self.replay_buffer_kwargs, self.n_steps
        self.replay_buffer_kwargs = {"n_steps": n_steps, "gamma": self.gamma, "seed": self.seed, **given}
        self.n_steps = 1  # SB3 warns that it sets up windows for its own buffers only
        super()._setup_model()
        # as they were: a saved model may be loaded with another gamma
        self.replay_buffer_kwargs, self.n_steps = given, n_steps

    def _sample(self, batch_size: int) -> PrioritizedSamples:
        return self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)


class PrioritizedDQN(PrioritizedReplay, DQN):
    """DQN with prioritized replay; arguments are those of SB3's ``DQN``.

    ``replay_buffer_kwargs`` reach :class:`PrioritizedReplayBuffer`, for example
    ``{"priority_exponent": 0.6, "num_annealing_steps": 25_000}``.
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do so many updates of the Q-network."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            samples = self._sample(batch_size)
            with th.no_grad():
                targets = samples.targets(self.q_net_target(samples.next_observations).max(dim=1, keepdim=True).values)
            q = self.q_net(samples.observations).gather(1, samples.actions.long())
            loss = (samples.weights * F.smooth_l1_loss(q, targets, reduction="none")).mean()
            self.policy.optimizer.zero_grad()
            loss.backward()
            th.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            self.replay_buffer.update_priorities(samples.ids, targets - q)
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))


class PrioritizedTD3(PrioritizedReplay, TD3):
    """TD3 with prioritized replay; arguments are those of SB3's ``TD3``.

    The critics' loss is weighted, the actor's is not; a row's priority is the mean of both critics' absolute errors.
    DDPG is the special case ``policy_delay=1, target_policy_noise=0.0, policy_kwargs={"n_critics": 1}``.
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do so many updates of the critics, and one of the actor every ``policy_delay`` of them."""
        self.policy.set_training_mode(True)
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer])
        critic_losses, actor_losses = [], []
        for _ in range(gradient_steps):
            self._n_updates += 1
            samples = self._sample(batch_size)
            targets = self._targets(samples)
            critic_losses.append(_update_critics(self, samples, targets, scale=1.0))
            if self._n_updates % self.policy_delay == 0:
                actor_losses.append(self._update_actor(samples))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if actor_losses:
            self.logger.record("train/actor_loss", np.mean(actor_losses))
        self.logger.record("train/critic_loss", np.mean(critic_losses))

    @th.no_grad()
    def _targets(self, samples: PrioritizedSamples) -> th.Tensor:
        """Clipped double-Q targets with smoothed target actions (Fujimoto et al. 2018, section 5.3)."""
        noise = samples.actions.clone().normal_(0, self.target_policy_noise)
        noise = noise.clamp(-self.target_noise_clip, self.target_noise_clip)
        actions = (self.actor_target(samples.next_observations) + noise).clamp(-1, 1)
        values = th.cat(self.critic_target(samples.next_observations, actions), dim=1)
        return samples.targets(values.min(dim=1, keepdim=True).values)

    def _update_actor(self, samples: PrioritizedSamples) -> float:
        loss = -self.critic.q1_forward(samples.observations, self.actor(samples.observations)).mean()
        _step(self.actor.optimizer, loss)
        polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)
        polyak_update(self.critic_batch_norm_stats, self.critic_batch_norm_stats_target, 1.0)
        polyak_update(self.actor_batch_norm_stats, self.actor_batch_norm_stats_target, 1.0)
        return loss.item()


class PrioritizedSAC(PrioritizedReplay, SAC):
    """SAC with prioritized replay; arguments are those of SB3's ``SAC``.

    The critics' loss is weighted, those of actor and entropy coefficient are not; a row's priority is the mean of both
    critics' absolute errors.
    """

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do so many updates of entropy coefficient, critics and actor."""
        self.policy.set_training_mode(True)
        learnt = self.ent_coef_optimizer
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer] + ([learnt] if learnt else []))
        records: list[dict[str, float]] = []
        for step in range(gradient_steps):
            samples = self._sample(batch_size)
            if self.use_sde:
                self.actor.reset_noise()
            records.append(self._update(samples))
            if step % self.target_update_interval == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.batch_norm_stats, self.batch_norm_stats_target, 1.0)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for key in records[0]:
            self.logger.record(f"train/{key}", np.mean([record[key] for record in records]))

    def _update(self, samples: PrioritizedSamples) -> dict[str, float]:
        """One update of everything but the target network (Haarnoja et al. 2018, arXiv 1812.05905, algorithm 1)."""
        actions, log_prob = self.actor.action_log_prob(samples.observations)
        log_prob = log_prob.reshape(-1, 1)
        record, coefficient = self._update_entropy_coefficient(log_prob)
        targets = self._targets(samples, coefficient)
        record["critic_loss"] = _update_critics(self, samples, targets, scale=0.5)
        values = th.cat(self.critic(samples.observations, actions), dim=1).min(dim=1, keepdim=True).values
        loss = (coefficient * log_prob - values).mean()
        _step(self.actor.optimizer, loss)
        return {**record, "ent_coef": coefficient.item(), "actor_loss": loss.item()}

    def _update_entropy_coefficient(self, log_prob: th.Tensor) -> tuple[dict[str, float], th.Tensor]:
        """One step towards the target entropy; the coefficient given back is the one before it."""
        if self.ent_coef_optimizer is None or self.log_ent_coef is None:
            return {}, self.ent_coef_tensor
        coefficient = th.exp(self.log_ent_coef.detach())
        loss = -(self.log_ent_coef * (log_prob + self.target_entropy).detach()).mean()  # type: ignore[operator]
        _step(self.ent_coef_optimizer, loss)
        return {"ent_coef_loss": loss.item()}, coefficient

    @th.no_grad()
    def _targets(self, samples: PrioritizedSamples, coefficient: th.Tensor) -> th.Tensor:
        actions, log_prob = self.actor.action_log_prob(samples.next_observations)
        values = th.cat(self.critic_target(samples.next_observations, actions), dim=1).min(dim=1, keepdim=True).values
        return samples.targets(values - coefficient * log_prob.reshape(-1, 1))


def _update_critics(
    model: PrioritizedTD3 | PrioritizedSAC, samples: PrioritizedSamples, targets: th.Tensor, scale: float
) -> float:
    """One weighted step of all critics; tells the buffer the mean of their absolute errors."""
    critics: Sequence[th.Tensor] = model.critic(samples.observations, samples.actions)  # each (N, 1)
    squares = th.stack([F.mse_loss(q, targets, reduction="none") for q in critics])  # (critics, N, 1)
    loss = scale * (samples.weights * squares).mean(dim=(1, 2)).sum()
    _step(model.critic.optimizer, loss)
    errors = th.stack([(q - targets).detach().abs() for q in critics]).mean(dim=0)
    model.replay_buffer.update_priorities(samples.ids, errors)
    return loss.item()


def _step(optimizer: th.optim.Optimizer, loss: th.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
