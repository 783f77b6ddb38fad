"""Policies to show: objects with stable-baselines3's ``predict``, random, scripted, or imported by name."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import iterate

from gym_custom.programs.arguments import WrongArguments

TRAINED = "agents.pretrained:load"  # a name that the user could type too: this package does not know the other


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


def make_policy(arguments: argparse.Namespace, env: Any) -> Any:
    """The policy that the arguments name, as an object with ``predict``."""
    name = arguments.policy
    if name is None:
        name = "trained" if arguments.model else "scripted" if _policies_of(env) is not None else "random"
    if arguments.model and ":" not in name and name != "trained":
        raise WrongArguments(f"--model is for the policy 'trained', not for {name!r}")
    if name == "random":
        return RandomModel(env.action_space, arguments.seed)
    if name.partition(":")[0] == "scripted":
        return scripted(env, name.partition(":")[2], arguments.env)
    if name == "trained" or ":" in name:
        return imported(TRAINED if name == "trained" else name, env, arguments)
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
    ours = package.partition(".")[0] == "gym_custom" and hasattr(sys.modules[package], "__path__")
    if not ours or importlib.util.find_spec(f"{package}.policies") is None:
        return None
    return importlib.import_module(f"{package}.policies")


def imported(name: str, env: Any, arguments: argparse.Namespace) -> Any:
    """What ``module:function`` makes of the environment, and of the model's file where there is one."""
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise WrongArguments(f"the policy {name!r} cannot be imported: {error}") from error
    made = function(env, arguments.model) if arguments.model else function(env)
    if hasattr(made, "predict"):
        return made
    if not callable(made):
        raise WrongArguments(f"{name} must return a function or an object with predict, not {made!r}")
    return Plain(made, arguments.num_envs, env.observation_space)
