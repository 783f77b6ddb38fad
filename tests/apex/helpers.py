"""Small things that several test files need."""

import numpy as np
import torch

from agents.apex import ApeX, ApeXConfig
from agents.apex.channel import Block
from agents.types import Transition, Weights

SMALL = {
    "cluster": "inline",
    "num_actors": 2,
    "envs_per_actor": 4,
    "n_step": 3,
    "warmup_steps": 100,
    "block_steps": 5,
    "update_param_interval": 40,
    "memory_size": 5_000,
    "hidden_sizes": (16,),
    "batch_size": 32,
    "samples_per_insert": 4.0,
    "evaluation_interval": 400,
    "evaluation_episodes": 3,
}


def small(folder, **changes):
    """Settings of a run that takes a second."""
    return ApeXConfig(**{**SMALL, "run_folder": str(folder / "run"), **changes})


def agent(folder, env="CartPole-v1", seed=0, verbose=0, **changes):
    return ApeX(env, small(folder, **changes), seed, verbose)


def parameters(of):
    """All weights of an agent's online network as one array."""
    return torch.cat([p.detach().reshape(-1) for p in of.learner.network.parameters()]).numpy()


def weights(version, value=0.0):
    return Weights(version, {"a": np.full((3, 2), value, np.float32), "b": np.full(5, value, np.float32)})


def block(number=0, actor=0, rows=2):
    obs = np.full((rows, 1), number, np.float32)
    windows = Transition(obs, np.zeros(rows, np.int64), np.full(rows, float(number)), np.ones(rows), obs)
    return Block(windows, np.ones(rows), actor, actor, rows, 0, ())
