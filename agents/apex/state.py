"""An agent as a checkpoint and back: weights, optimizer, target, replay, counters, random states, actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import agents.replay
from agents.apex.checkpoint import Checkpoint, CheckpointError
from agents.apex.inline import InlineCluster
from agents.replay import ReplayMemory

if TYPE_CHECKING:
    from agents.apex.agent import ApeX

MEMORIES = ("PrioritizedMemory", "UniformMemory")  # whose arguments are spaces alone; others are put in by the caller


def to_checkpoint(agent: ApeX) -> Checkpoint:
    """Take a snapshot that a later agent goes on from."""
    learner = agent.learner
    meta = {
        **agent.description(),
        "memory": type(agent.memory).__name__,
        "updates": learner.updates,
        "ratio": agent.ratio.state_dict(),
        "planned_timesteps": agent.planned_timesteps,
        "seconds": agent.seconds,
        "best_return": agent.best_return if np.isfinite(agent.best_return) else None,
        "lives": agent.cluster.lives,
        "generator": agent.generator.bit_generator.state,
    }
    tensors = {
        "policy": agent.policy.state_dict(),
        "best": agent.best,
        "online": learner.network.state_dict(),
        "target": learner.target.state_dict(),
        "average": learner.average.state_dict(),
        "optimizer": learner.optimizer.state_dict(),
    }
    arrays = {f"memory/{name}": array for name, array in agent.memory.state_dict().items()}
    if isinstance(agent.cluster, InlineCluster):
        arrays |= {f"actors/{name}": array for name, array in agent.cluster.state_dict().items()}
    return Checkpoint(meta, tensors, arrays)


def restore(agent: ApeX, checkpoint: Checkpoint, memory: ReplayMemory | None = None) -> None:
    """Bring a fresh agent of the same settings to the saved state.

    Raises:
        CheckpointError: the file's content does not fit the env or is not complete.
    """
    try:
        _restore_networks(agent, checkpoint.tensors)
        _restore_counters(agent, checkpoint.meta)
        _restore_memory(agent, checkpoint, memory)
        if isinstance(agent.cluster, InlineCluster):
            agent.cluster.load_state_dict(_below("actors/", checkpoint.arrays))
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"the checkpoint does not fit {agent.source.name}: {reason}") from error


def _restore_networks(agent: ApeX, tensors: dict[str, Any]) -> None:
    learner = agent.learner
    networks = {"online": learner.network, "target": learner.target, "average": learner.average}
    for name, network in networks.items():
        network.load_state_dict(tensors[name])  # copies in place: the networks stay views of their flat vectors
    agent.policy.load_state_dict(tensors["best"])
    agent.best = {name: value.clone() for name, value in agent.policy.state_dict().items()}
    agent.policy.load_state_dict(tensors["policy"])
    learner.optimizer.load_state_dict(tensors["optimizer"])


def _restore_counters(agent: ApeX, meta: dict[str, Any]) -> None:
    agent.learner.updates = int(meta["updates"])
    agent.ratio.load_state_dict(meta["ratio"])
    agent.planned_timesteps = int(meta["planned_timesteps"])
    agent.seconds = float(meta["seconds"])
    agent.best_return = -np.inf if meta["best_return"] is None else float(meta["best_return"])
    agent.generator.bit_generator.state = meta["generator"]
    inline = agent.config.cluster == "inline"
    agent.lives = [int(life) if inline else int(life) + 1 for life in meta["lives"]]


def _restore_memory(agent: ApeX, checkpoint: Checkpoint, memory: ReplayMemory | None) -> None:
    name = checkpoint.meta["memory"]
    if memory is None:
        if name not in MEMORIES:
            raise CheckpointError(f"the agent's memory was a {name}: give load() an empty one, memory={name}(...)")
        memory = getattr(agents.replay, name)(agent.input_space, agent.action_space, agent.config.memory_size)
    memory.load_state_dict(_below("memory/", checkpoint.arrays))
    agent.memory = memory


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
