"""Trained policies that come with the package, one an id: ``load("NumpyCartPole-v1")``.

They need NumPy alone. ``scripts/make_pretrained.py`` makes them; ``about(id)`` says how one was made, and what it
scores.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from agents.pretrained.files import read
from agents.pretrained.policies import NetworkPolicy, TablePolicy

__all__ = ["NetworkPolicy", "TablePolicy", "about", "available", "load"]

DATA = Path(str(resources.files("agents.pretrained"))) / "data"


def available() -> list[str]:
    """The ids for which there is a policy."""
    return sorted(path.stem for path in DATA.glob("*.npz"))


def about(env_id: str) -> dict[str, Any]:
    """How the policy of an id was made, and what it scored, as JSON types.

    Raises:
        ValueError: there is none for this id.
    """
    return read(_file_of(env_id)).about


def load(env: Any, file: str | Path | None = None) -> NetworkPolicy | TablePolicy:
    """A trained policy, as an object with stable-baselines3's ``predict``.

    Args:
        env: an id, or an environment or vector environment made from one; of an environment the spaces are compared.
        file: another file than the one that comes with the package: a policy as ``.npz``, an agent that ``ApeX.save``
            wrote (which needs torch), or a table of Q-values as ``.npy``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no policy for the id, the file holds none, or it is for other spaces.
    """
    path = _file_of(_id_of(env)) if file is None else Path(file)
    policy = _from_file(path, env)
    if not isinstance(env, str):
        _compare(policy, env, path)
    return policy


def _id_of(env: Any) -> str:
    if isinstance(env, str):
        return env
    if getattr(env, "spec", None) is None:
        raise ValueError(f"{env} was not made from an id, so there is no trained policy for it")
    return env.spec.id


def _file_of(env_id: str) -> Path:
    name = env_id.rpartition(":")[2]
    if name not in available():
        raise ValueError(f"there is no trained policy for {name!r}; there are some for {', '.join(available())}")
    return DATA / f"{name}.npz"


def _from_file(path: Path, env: Any) -> NetworkPolicy | TablePolicy:
    if path.is_dir():
        raise ValueError(f"{path} is a folder; a trained policy is a file, such as last.apex in an Ape-X run's folder")
    if path.suffix == ".npz":
        saved = read(path)
        scale = saved.about.get("settings", {}).get("reward_scale", 1.0)
        return NetworkPolicy(saved.weights, saved.observation_space, saved.action_space, scale)
    if path.suffix == ".npy":
        return TablePolicy(np.load(path, allow_pickle=False))
    return _from_agent(path)


def _from_agent(path: Path) -> NetworkPolicy:
    from agents.apex import ApeX
    from agents.apex.network import to_arrays

    agent = ApeX.load(path)
    scale = agent.config.reward_scale
    return NetworkPolicy(to_arrays(agent.policy), agent.observation_space, agent.action_space, scale)


def _compare(policy: NetworkPolicy | TablePolicy, env: Any, path: Path) -> None:
    """Refuse an environment whose observations or actions are others than those of the training."""
    observations = getattr(env, "single_observation_space", env.observation_space)
    actions = getattr(env, "single_action_space", env.action_space)
    if not policy.fits(observations, actions):
        raise ValueError(f"{path} {policy.needs}; {_id_of(env)} has {observations} and {actions}")
