"""Ape-X as one object with stable-baselines3's verbs: learn, predict, save, load."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec

from agents.apex import checkpoint
from agents.apex.actor import ActorPlan
from agents.apex.building import build_cluster, build_memory, build_network
from agents.apex.channel import Cluster
from agents.apex.checkpoint import CheckpointError
from agents.apex.claims import refuse_claimed
from agents.apex.config import ApeXConfig
from agents.apex.envs import arguments_of, gives_masks, names_code, resolve, spaces_of, with_arguments
from agents.apex.features import batch_of_one, is_single
from agents.apex.learner import Learner
from agents.apex.loggers import rewind
from agents.apex.loss import draw_exploration, epsilon_greedy
from agents.apex.masks import barrier, carries_mask, penalty, with_mask
from agents.apex.network import DuelingNetwork, features
from agents.apex.ratio import SamplesPerInsert
from agents.apex.run import new_folder, one_at_a_time, refuse_while_learning, run
from agents.apex.state import restore, to_checkpoint
from agents.apex.steps import wants_steps
from agents.replay import ReplayMemory


class ApeX:
    """Distributed prioritized experience replay (Horgan et al. 2018, arXiv 1803.00933) on any Gymnasium env.

    Args:
        env: a registered id, a spec, or a factory without arguments; its actions are Discrete.
        config: settings; None takes the id's preset, or the defaults where it has none.
        seed: of everything random; with ``cluster="inline"`` the same seed gives the same run to the last bit.
        verbose: 1 prints a line per episode and change of state.

    Attributes:
        policy: the network that ``predict`` uses: a plain torch module.
        input_space: of what is learned from: ``observation_space``, with the action mask where the env gives one.
        memory: replay memory; any of ``agents.replay`` may be put here before learning.
        num_timesteps: env steps taken so far.
        planned_timesteps: where the calls of learn so far were meant to end; the last block goes a little beyond.
        run_folder: where logs and checkpoints go.
    """

    def __init__(
        self,
        env: str | EnvSpec | Callable[[], gym.Env],
        config: ApeXConfig | None = None,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        self.source = resolve(env)
        self.config = ApeXConfig.preset(self.source.name) if config is None else config
        if not isinstance(self.config, ApeXConfig):
            raise TypeError(f"config must be an ApeXConfig or None, not {config!r}")
        self.seed, self.verbose = _legal_seed(seed), verbose
        self.observation_space, self.action_space = spaces_of(self.source)
        masked = gives_masks(self.source)
        self.input_space = with_mask(self.observation_space, self.num_actions) if masked else self.observation_space
        self.generator = np.random.default_rng(seed)
        network = build_network(self.input_space, self.action_space, self.config, self.seed)
        memory = build_memory(self.input_space, self.action_space, self.config, self.seed)
        self.learner = Learner(network, self.input_space, memory, self.config, self.generator)
        self.policy = deepcopy(network).requires_grad_(False)
        self.ratio = SamplesPerInsert(self.config.samples_per_insert, self.config.warmup_steps, self.config.batch_size)
        self.best: dict[str, torch.Tensor] = self.policy.state_dict()
        self.best_return = -np.inf
        self.seconds = 0.0
        self.planned_timesteps = 0
        self.lives = [0] * self.config.num_actors  # of the actors, when the cluster is made
        self.learning: int | None = None  # the thread that learns just now
        self._cluster: Cluster | None = None
        self._run_folder: Path | None = None

    def learn(self, total_timesteps: int, progress_bar: bool = False, watch: bool = False) -> ApeX:
        """Train for so many further env steps, counted over all actors.

        Args:
            total_timesteps: env steps of all actors together; more than the warm-up that is still ahead.
            progress_bar: whether to show one.
            watch: whether to open a window in which the averaged policy plays meanwhile; closing it harms nothing.

        Returns:
            The agent itself; ``policy`` holds the best evaluated weights (the last with ``keep_best=False``).

        Raises:
            ValueError: the steps end before the warm-up does, or the env cannot be watched.
            ActorError: an actor failed more than ``max_restarts`` times in a row; carries its traceback.
            KeyboardInterrupt: after Ctrl+C, once the state is saved to the run folder and the actors have ended.
            RuntimeError: the agent is learning in another thread.
        """
        warmup = self.config.warmup_steps - self.num_timesteps
        if isinstance(total_timesteps, float) and total_timesteps % 1 == 0:
            total_timesteps = int(total_timesteps)  # 1e6
        if not isinstance(total_timesteps, (int, np.integer)) or isinstance(total_timesteps, bool):
            raise TypeError(f"total_timesteps must be an integer, not {total_timesteps!r}")
        if total_timesteps <= max(warmup, 0):
            raise ValueError(
                f"total_timesteps must be more than the warm-up's {max(warmup, 0)} steps, not {total_timesteps}"
            )
        with one_at_a_time(self):
            run(self, total_timesteps, progress_bar, watch)
        return self

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[Any, Any]:
        """Choose actions.

        Args:
            observation: one observation, or a batch of them.
            state: returned as it is; there is no memory in the policy.
            episode_start: ignored, for the same reason.
            deterministic: False explores like the most random actor.
            action_masks: True or 1 where an action is legal, (A,) or (N, A); None allows all. The env's are in its
                ``info["action_mask"]``.

        Returns:
            The action (an integer array: 0-d for one observation, (N,) for a batch) and ``state``.
        """
        single = is_single(self.observation_space, observation)
        batch = batch_of_one(observation) if single else observation
        illegal = None if action_masks is None else barrier(np.atleast_2d(action_masks), self.num_actions)
        actions = self._best(self.policy, self.observation_space, batch, illegal, deterministic)
        return (actions[0] if single else actions), state

    def greedy(self, network: DuelingNetwork, obs: Any) -> np.ndarray:
        """Best legal actions (N,) of a network for a batch of observations from ``input_space``."""
        return self._best(network, self.input_space, obs, penalty(self.input_space, obs))

    def _best(
        self, network: DuelingNetwork, space: gym.Space, obs: Any, illegal: np.ndarray | None, greedy: bool = True
    ) -> np.ndarray:
        with torch.inference_mode():
            q = network(features(space, obs)).numpy()  # (N, A)
        if illegal is not None:
            q = q + illegal
        if greedy:
            return q.argmax(axis=1) + self.action_space.start
        numbers = draw_exploration(self.generator, q.shape[:1])
        return epsilon_greedy(q, np.full(len(q), self.config.max_epsilon), *numbers) + self.action_space.start

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return int(self.action_space.n)

    @property
    def memory(self) -> ReplayMemory:
        """The replay memory; may be replaced before learning."""
        return self.learner.memory

    @memory.setter
    def memory(self, memory: ReplayMemory) -> None:
        if self._cluster is not None:
            raise ValueError("a memory can be put in before learning, not after it has begun")
        if carries_mask(self.input_space) and memory.observation_space != self.input_space:  # type: ignore[attr-defined]
            raise ValueError("the env gives action masks: make the memory with this agent's input_space")
        self.learner.memory = memory

    @property
    def num_timesteps(self) -> int:
        """Env steps taken so far by all actors."""
        return self.ratio.inserted

    @property
    def run_folder(self) -> Path:
        """Where logs and checkpoints go; made when first asked for.

        Raises:
            ValueError: ``config.run_folder`` holds another run.
        """
        if self._run_folder is None:
            self._run_folder = new_folder(self.config.run_folder, self.source.name)
        return self._run_folder

    def resume_in(self, folder: str | Path) -> None:
        """Go on with the logs and checkpoints of a folder, from which rows younger than this agent are taken out.

        Raises:
            ValueError: a training goes on there.
        """
        self._run_folder = Path(folder)
        self._run_folder.mkdir(parents=True, exist_ok=True)
        refuse_claimed(self._run_folder)
        for log in self._run_folder.glob("*.csv"):
            rewind(log, self.num_timesteps)

    @property
    def cluster(self) -> Cluster:
        """Where the actors run; made when first needed."""
        if self._cluster is None:
            self._cluster = build_cluster(self._plans(), self.learner.weights())
        return self._cluster

    def _plans(self) -> list[ActorPlan]:
        common, steps = (self.source, self.config, self.seed), wants_steps(self.memory)
        masked = carries_mask(self.input_space)
        return [ActorPlan(*common, i, life, steps, masked) for i, life in enumerate(self.lives)]

    def save(self, path: str | Path) -> None:
        """Write all that a later agent needs to go on, whole or not at all; not while another thread lets it learn."""
        refuse_while_learning(self)
        checkpoint.save(path, to_checkpoint(self))

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: str | EnvSpec | Callable[[], gym.Env] | None = None,
        memory: ReplayMemory | None = None,
        verbose: int = 0,
    ) -> ApeX:
        """Bring a saved agent back; nothing in the file is executed.

        With ``cluster="inline"`` training then goes on as if it had never stopped, to the last bit. Other clusters
        begin new episodes. Logs go to a new folder; see ``resume_in``.

        Args:
            path: of the file that ``save`` wrote.
            env: as at construction; needed where the saved agent was made from a factory, or from a spec whose
                arguments are no JSON types.
            memory: an empty one to be filled, for memories that are made from more than spaces.
            verbose: as at construction.

        Raises:
            FileNotFoundError: there is no such file.
            CheckpointError: a ValueError: the file is truncated, foreign or does not fit the env.
        """
        saved = checkpoint.load(path)
        arguments = saved.meta.get("env_kwargs", {})  # older files have none
        if names_code([saved.meta.get("env"), arguments]):
            raise CheckpointError(f"{path} names an env to be imported, which no checkpoint may")
        if env is None and not saved.meta.get("registered"):
            raise CheckpointError(f"{path} does not say what its env was made of: give it, ApeX.load(path, env=...)")
        try:
            config = ApeXConfig.from_dict({**saved.meta["config"], "run_folder": None})
            source = with_arguments(saved.meta["env"], dict(arguments)) if env is None else env
            agent = cls(source, config, int(saved.meta["seed"]), verbose)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} holds settings that cannot be used: {error}") from error
        restore(agent, saved, memory)
        return agent

    def load_weights(self, path: str | Path) -> None:
        """Start from a network's weights alone: a file of ``torch.save(policy.state_dict(), path)`` such as best.pt.

        Raises:
            FileNotFoundError: there is no such file.
            CheckpointError: a ValueError: the file holds no weights of this network's shapes.
        """
        weights = checkpoint.load_tensors(path)
        try:
            deepcopy(self.policy).load_state_dict(weights)  # what does not fit is copied as far as it does
        except (RuntimeError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"{path} holds no weights for this network: {reason}") from error
        for network in (self.policy, self.learner.network, self.learner.target, self.learner.average):
            network.load_state_dict(weights)

    def description(self) -> dict[str, Any]:
        """What the run is, as JSON types; ``env_kwargs`` are arguments beyond those of the env's registration."""
        arguments = None if self.source.spec is None else arguments_of(self.source.spec)
        return {
            "env": self.source.name,
            "registered": arguments is not None,
            "env_kwargs": arguments or {},
            "seed": self.seed,
            "config": self.config.to_dict(),
        }

    def judge(self, mean_return: float) -> bool:
        """Keep the averaged weights as the best so far if their return is no worse; say whether they are."""
        if mean_return < self.best_return:
            return False
        self.best_return = mean_return
        self.best = {name: value.clone() for name, value in self.learner.average.state_dict().items()}
        return True

    def take_best(self) -> None:
        """Put the best evaluated weights into the policy (the last averaged ones with ``keep_best=False``)."""
        judged = self.config.keep_best and self.best_return > -np.inf
        self.policy.load_state_dict(self.best if judged else self.learner.average.state_dict())


def _legal_seed(seed: Any) -> int:
    """The seed as an integer that both NumPy and torch take."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 1 << 63:
        raise ValueError(f"seed must be an integer from 0 to 2**63 - 1, not {seed!r}")
    return int(seed)
