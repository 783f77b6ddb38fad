"""Worlds for Gymnasium whose rules are written once.

``import gym_custom`` registers the environments; ``gymnasium.make`` and ``gymnasium.make_vec`` then make them.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec

from gym_custom.world import Outcome, World, load_world, register_spec, register_world

__all__ = ["Outcome", "World", "check_world", "load_world", "register_world"]

_HARD = {
    "n_pedestrians": 12,
    "notice_prob": 0.0,
    "pedestrian_radius": [0.2, 0.35],
    "pedestrian_speed": [1.0, 0.3, 0.4, 1.6],
}

# id: (module, class name up to "Env" and "VectorEnv", steps, reward threshold, arguments)
_IDS: dict[str, tuple[str, str, int, float | None, dict[str, Any]]] = {
    "NumpyCartPole-v0": ("gym_custom.cartpole", "CartPole", 200, 195.0, {}),
    "NumpyCartPole-v1": ("gym_custom.cartpole", "CartPole", 500, 475.0, {}),
    "GridWorld-v0": ("gym_custom.gridworld", "GridWorld", 100, 1.0, {}),
    "MyEnv-v0": ("gym_custom.my_env", "My", 200, 100.0, {}),
    "MyEnvStatic-v0": ("gym_custom.my_env", "My", 200, None, {"n_pedestrians": 0}),
    "MyEnvDense-v0": ("gym_custom.my_env", "My", 200, None, {"n_pedestrians": 8, "n_obstacles": 4, "notice_prob": 0.5}),
    "MyEnvHard-v0": ("gym_custom.my_env", "My", 200, None, _HARD),
    "MyEnvPartial-v0": ("gym_custom.my_env", "My", 200, None, {"observation": "partial"}),
}

for _id, (_module, _name, _steps, _threshold, _kwargs) in _IDS.items():
    register_spec(
        EnvSpec(
            id=_id,
            entry_point=f"{_module}:{_name}Env",
            vector_entry_point=f"{_module}:{_name}VectorEnv",
            max_episode_steps=_steps,
            reward_threshold=_threshold,
            kwargs=_kwargs,
        )
    )


def __getattr__(name: str) -> Any:
    """Loads `check_world` when it is first asked for: training needs no checks."""
    if name == "check_world":
        from gym_custom.checks import check_world

        return check_world
    raise AttributeError(f"module 'gym_custom' has no attribute {name!r}")
