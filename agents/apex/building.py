"""From settings to the parts of an agent: network, memory, and the place where its actors run."""

from __future__ import annotations

from gymnasium import spaces

from agents.apex.actor import ActorPlan
from agents.apex.channel import Cluster
from agents.apex.config import ApeXConfig
from agents.apex.inline import InlineCluster
from agents.apex.local import LocalCluster
from agents.apex.network import DuelingNetwork, make_network
from agents.apex.ray_cluster import RayCluster
from agents.replay import PrioritizedMemory
from agents.types import Weights


def build_network(
    input_space: spaces.Space, action_space: spaces.Discrete, config: ApeXConfig, seed: int
) -> DuelingNetwork:
    """Make the network of a run."""
    sigma = config.noisy_sigma if config.exploration == "noisy" else None
    body = (config.hidden_sizes, config.layer_norm)
    return make_network(input_space, action_space, *body, seed, config.conv_channels, sigma)


def build_memory(
    input_space: spaces.Space, action_space: spaces.Discrete, config: ApeXConfig, seed: int
) -> PrioritizedMemory:
    """Make the memory of a run, where the caller puts in no other."""
    return PrioritizedMemory(
        input_space,
        action_space,
        capacity=config.memory_size,
        priority_exponent=config.priority_exponent,
        initial_importance_sampling_exponent=config.importance_sampling_exponent,
        num_annealing_steps=config.importance_annealing_steps,
        seed=seed,
    )


def build_cluster(plans: list[ActorPlan], weights: Weights) -> Cluster:
    """Make the place where actors run; nothing starts yet."""
    config = plans[0].config
    if config.cluster == "inline":
        return InlineCluster(plans, weights)
    if config.cluster == "ray":
        return RayCluster(plans, weights)
    return LocalCluster(plans, weights, config.max_restarts, config.watchdog_seconds)
