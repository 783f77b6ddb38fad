"""Hyper-parameters: rl-zoo3's tuned tables for the stable-baselines3 algorithms, in its own notation.

A value such as ``"lin_0.001"`` falls linearly from 0.001 to 0 over the run, as in rl-zoo3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# rl-zoo3 hyperparams/{dqn,ppo,a2c}.yml, CartPole-v1
CARTPOLE: dict[str, dict[str, Any]] = {
    "dqn": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "ppo": {
        "n_envs": 8,
        "n_steps": 32,
        "batch_size": 256,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "n_epochs": 20,
        "ent_coef": 0.0,
        "learning_rate": "lin_0.001",
        "clip_range": "lin_0.2",
    },
    "a2c": {"n_envs": 8, "ent_coef": 0.0},
}

# rl-zoo3's LunarLander tables: a small control task with shaped reward, nearest in kind to the other worlds
LUNAR_LANDER: dict[str, dict[str, Any]] = {
    "dqn": {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "ppo": {
        "n_envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
    "a2c": {"n_envs": 8, "gamma": 0.995, "n_steps": 5, "learning_rate": "lin_0.00083", "ent_coef": 0.00001},
}

APEX: dict[str, Any] = {"num_actors": 2}
"""Everything else is ``ApeXConfig``'s preset for the id."""

Q_LEARNING: dict[str, Any] = {"learning_rate": 0.1, "discount": 0.99, "epsilon": 0.1}


def settings_for(algo: str, env_id: str) -> dict[str, Any]:
    """The hyper-parameters of an algorithm on an id, as JSON types.

    ``prioritized_dqn`` is ``dqn`` with another buffer and gets the same numbers, so that only the buffer differs.
    """
    own = {"apex": APEX, "q_learning": Q_LEARNING}
    if algo in own:
        return dict(own[algo])
    table = LUNAR_LANDER if env_id.split(":")[-1].startswith("MyEnv") else CARTPOLE
    return dict(table.get("dqn" if algo == "prioritized_dqn" else algo, {}))


def resolve(value: Any) -> Any:
    """A ``"lin_x"`` string as SB3's schedule, a function of the remaining progress from 1 to 0; else the value."""
    if isinstance(value, str) and value.startswith("lin_"):
        return _linear(float(value.removeprefix("lin_")))
    return value


def _linear(start: float) -> Callable[[float], float]:
    return lambda progress_remaining: progress_remaining * start
