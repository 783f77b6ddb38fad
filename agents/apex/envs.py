"""From an id or a factory to vector envs, in whatever process they are wanted."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cloudpickle
import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from agents.apex.masks import MASK

TRAINING_SEEDS = 1 << 30  # env seeds below belong to actors
EVALUATION_SEED = 1 << 30  # the first of the evaluator's, which no actor ever gets


class EnvSource(NamedTuple):
    """An env on its way to another process: its spec, whose entry points are strings, or a pickled factory."""

    name: str
    spec: EnvSpec | None
    factory: bytes | None  # by cloudpickle, so that lambdas and classes of a notebook travel too


def resolve(env: str | EnvSpec | Callable[[], gym.Env]) -> EnvSource:
    """Settle in the caller's process what the actors will make.

    Args:
        env: a registered id ("package:id" imports the package first), a spec, or a factory without arguments.

    Raises:
        gymnasium.error.Error: the id is unknown; the message names what is near.
        TypeError: the argument is something else, or a factory that cannot be pickled.
    """
    if isinstance(env, str):
        env_id = _imported(env)
        return EnvSource(env_id, _spec(env_id), None)
    if isinstance(env, EnvSpec):
        return EnvSource(env.id, env, None)
    if isinstance(env, gym.Env) or not callable(env):
        raise TypeError(f"env must be an id, a spec or a factory such as `lambda: gym.make(...)`, not {env!r}")
    name = getattr(env, "__name__", type(env).__name__).strip("<>")
    try:
        return EnvSource(name, None, cloudpickle.dumps(env))
    except Exception as error:
        raise TypeError(f"the env factory {name} cannot travel to an actor's process: {error}") from error


def _imported(name: str) -> str:
    """The id without the package before its colon, which is imported."""
    module, _, env_id = name.rpartition(":")
    if module:
        importlib.import_module(module)
    return env_id


def _spec(env_id: str) -> EnvSpec:
    try:
        return gym.spec(env_id)
    except gym.error.Error as error:
        hint = "import the package that registers it first, or write 'package:id'"
        raise type(error)(f"{str(error).rstrip('.')}; {hint}") from error


def with_arguments(env_id: str, arguments: dict[str, Any]) -> EnvSpec:
    """Give the spec of an id with further arguments; ``max_episode_steps`` is the time limit, as for ``gym.make``.

    Raises:
        gymnasium.error.Error: the id is unknown.
    """
    spec = copy.deepcopy(_spec(_imported(env_id)))
    limit = arguments.get("max_episode_steps", spec.max_episode_steps)
    spec.max_episode_steps = None if limit == -1 else limit
    spec.kwargs |= {name: value for name, value in arguments.items() if name != "max_episode_steps"}
    return spec


def arguments_of(spec: EnvSpec) -> dict[str, Any] | None:
    """Give what ``with_arguments`` needs to make a spec again; None where a file must not hold it.

    That is a value which JSON lacks, or a string with a colon: it may name code, and what is read from a file must not.
    """
    known = gym.registry.get(spec.id, EnvSpec(spec.id))
    same = {name for name, value in known.kwargs.items() if repr(value) == repr(spec.kwargs.get(name))}
    arguments = {name: value for name, value in spec.kwargs.items() if name not in same}
    if spec.max_episode_steps != known.max_episode_steps:
        arguments["max_episode_steps"] = spec.max_episode_steps
    try:
        text = json.dumps(arguments)
    except (TypeError, ValueError):
        return None
    return None if names_code(arguments) else json.loads(text)


def names_code(arguments: Any) -> bool:
    """Whether there is a string like "module:function" among arguments, however deep."""
    if isinstance(arguments, dict):
        return any(map(names_code, arguments.values()))
    if isinstance(arguments, (list, tuple)):
        return any(map(names_code, arguments))
    return isinstance(arguments, str) and ":" in arguments


def make_envs(source: EnvSource, num_envs: int) -> VectorEnv:
    """Make the native vector env if the id has one that serves, else a SyncVectorEnv."""
    if source.spec is not None and source.spec.vector_entry_point is not None:
        envs = gym.make_vec(source.spec, num_envs=num_envs)
        if _serves(envs):
            return envs
        envs.close()
    return SyncVectorEnv([_single(source)] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)


def _serves(envs: VectorEnv) -> bool:
    """Whether rows restart in the next step and each takes a seed (in Gymnasium's CartPole they share one)."""
    if envs.metadata.get("autoreset_mode") is not AutoresetMode.NEXT_STEP:
        return False
    try:
        envs.reset(seed=list(range(envs.num_envs)))  # type: ignore[arg-type]  # more than VectorEnv promises
    except (TypeError, ValueError, gym.error.Error):
        return False
    return True


def _single(source: EnvSource) -> Callable[[], gym.Env]:
    if source.spec is not None:
        return partial(gym.make, source.spec, disable_env_checker=True)
    return partial(_made, cloudpickle.loads(source.factory))


def _made(factory: Callable[[], gym.Env]) -> gym.Env:
    env: object = factory()
    if not isinstance(env, gym.Env):
        raise TypeError(f"the env factory must return a gymnasium.Env, not {env!r}")
    return env


class Seeds(NamedTuple):
    """All random numbers of one actor's life."""

    rows: list[int]  # a seed for each env row
    actions: np.random.SeedSequence  # of its exploration


def actor_seeds(seed: int, actor: int, life: int, num_rows: int) -> Seeds:
    """Spawn one seed a row; another actor, or the same after a restart (its next life), gets others."""
    *rows, actions = np.random.SeedSequence(seed, spawn_key=(actor, life)).spawn(num_rows + 1)
    return Seeds([int(row.generate_state(1, np.uint64)[0]) % TRAINING_SEEDS for row in rows], actions)


def gives_masks(source: EnvSource) -> bool:
    """Whether the env's infos say which actions are legal."""
    envs = make_envs(source, 1)
    _, infos = envs.reset(seed=EVALUATION_SEED)
    envs.close()
    return MASK in infos


def spaces_of(source: EnvSource) -> tuple[gym.Space[Any], gym.spaces.Discrete]:
    """Observation and action space of one env.

    Raises:
        ValueError: the actions are not Discrete, or the observations hold no numbers.
    """
    envs = make_envs(source, 1)
    observation_space, action_space = envs.single_observation_space, envs.single_action_space
    envs.close()
    if not isinstance(action_space, gym.spaces.Discrete):
        raise ValueError(f"Ape-X needs Discrete actions, not {action_space} (of {source.name})")
    if not _holds_numbers(observation_space):
        legal = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of them"
        raise ValueError(f"Ape-X cannot read {observation_space} (of {source.name}); legal are {legal}")
    return observation_space, action_space


def _holds_numbers(space: gym.Space) -> bool:
    """Whether a network can read such observations."""
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        parts = list(space.values() if isinstance(space, gym.spaces.Dict) else space)
        return bool(parts) and all(map(_holds_numbers, parts))
    plain = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    return isinstance(space, plain) and 0 not in (space.shape or ())
