"""Policies to show: objects with stable-baselines3's ``predict``, random, scripted, trained or imported."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from command_line import WrongArguments
from gymnasium.vector.utils import iterate

import gym_custom


class Plain:
    """A function from an observation to an action as a model."""

    def __init__(self, function: Any, num_envs: int, space: Any):
        self._function, self._num_envs, self._space = function, num_envs, space

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, or one for each row."""
        if self._num_envs == 1:
            return self._function(observation), None
        return np.array([self._function(row) for row in iterate(self._space, observation)]), None


class RandomModel:
    """Draws actions from a space."""

    def __init__(self, space: gym.Space, seed: int):
        self._space = space
        space.seed(seed)

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, or one for each row."""
        return self._space.sample(), None


class Table:
    """The best moves of a table of Q-values; ties go to the first.

    Args:
        q_values: Of shape (*sizes, actions), where the observation is a place in a table of these sizes.
        env: The environment, whose observations are Discrete or MultiDiscrete.
        path: Where the table comes from.
    """

    def __init__(self, q_values: np.ndarray, env: Any, path: Path):
        space = getattr(env, "single_observation_space", env.observation_space)
        actions = getattr(env, "single_action_space", env.action_space)
        sizes = getattr(space, "nvec", getattr(space, "n", None))
        if sizes is None or q_values.shape != (*np.atleast_1d(sizes), actions.n):
            raise WrongArguments(f"{path} is a table of shape {q_values.shape}, which does not fit {space}")
        self.q_values = q_values
        self._depth = np.size(sizes)

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, or one for each row."""
        place = np.asarray(observation)
        index = tuple(np.moveaxis(place, -1, 0)) if place.ndim and self._depth > 1 else place
        actions = self.q_values[index].argmax(axis=-1)
        return (int(actions) if np.ndim(actions) == 0 else actions), None


def make_model(arguments: argparse.Namespace, env: Any) -> Any:
    """The policy that the arguments name, as an object with ``predict``."""
    name, has_script = arguments.policy, _policies_of(env) is not None
    if name is None:
        name = "trained" if arguments.model else "scripted" if has_script else "random"
    if arguments.model and name != "trained":
        raise WrongArguments(f"--model is for the policy 'trained', not for {name!r}")
    if name == "random":
        return RandomModel(env.action_space, arguments.seed)
    if name.partition(":")[0] == "scripted":
        return scripted(env, name.partition(":")[2], arguments.env)
    if name == "trained":
        return trained(arguments.model, env, arguments.env)
    if ":" in name:
        return imported(name, env, arguments.num_envs)
    raise WrongArguments(f"the policy must be random, scripted, trained or module:function, not {name!r}")


def scripted(env: Any, name: str, env_id: str) -> Any:
    """One of the policies that a world brings along, without a name its best: the last."""
    policies = _policies_of(env)
    if policies is None:
        raise WrongArguments(f"{env_id} brings no scripted policy along; try --policy random")
    return policies.ScriptedPolicy(name or list(policies.POLICIES)[-1], env)


def _policies_of(env: Any) -> Any:
    """The module ``policies`` beside the environment's class, None where there is none."""
    package = type(env.unwrapped).__module__
    ours = package.partition(".")[0] == gym_custom.__name__ and hasattr(sys.modules[package], "__path__")
    if not ours or importlib.util.find_spec(f"{package}.policies") is None:
        return None
    return importlib.import_module(f"{package}.policies")


def trained(path: Path | None, env: Any, env_id: str) -> Any:
    """An Ape-X agent or a table of Q-values from its file."""
    if path is None:
        raise WrongArguments("--policy trained needs --model FILE, a file that ApeX.save wrote or a table as .npy")
    if path.is_dir():
        raise WrongArguments(f"{path} is a folder; --model takes a file, such as last.apex in an Ape-X run's folder")
    if path.suffix == ".npy":
        return Table(np.load(path, allow_pickle=False), env, path)
    from agents.apex import ApeX

    agent = ApeX.load(path)
    space = getattr(env, "single_observation_space", env.observation_space)
    if agent.observation_space != space:
        raise WrongArguments(f"{path} was trained on observations {agent.observation_space}; {env_id} has {space}")
    return agent


def imported(name: str, env: Any, num_envs: int) -> Any:
    """What ``module:function`` makes of the environment."""
    module, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)(env)
    except (ImportError, AttributeError) as error:
        raise WrongArguments(f"the policy {name!r} cannot be imported: {error}") from error
    if hasattr(made, "predict"):
        return made
    if not callable(made):
        raise WrongArguments(f"{name} must return a function or an object with predict, not {made!r}")
    return Plain(made, num_envs, env.observation_space)
