"""What a world must provide, once, so that the drivers can make every kind of environment of it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from gym_custom.recording.symbols import Table

Array = Any
"""A float, a NumPy array or a JAX array: the rules do not care."""


class Outcome(NamedTuple):
    """What one step earned."""

    reward: Array  # (...)
    terminated: Array  # (...), bool


@dataclass(frozen=True)
class World:
    """The rules of one world: pure functions over an array namespace ``xp``, and their settings.

    States are ``NamedTuple`` records whose leaves have the batch as last axis, ``(..., N)``, or no batch at all.
    All randomness enters through ``u``, uniforms in [0, 1) with the draws as first axis, ``(draws, ...)``.
    """

    params: Any
    """NamedTuple of numbers and flat tables; nothing that selects code or shapes."""
    initial_state: Callable[..., Any]
    """``(xp, params, u) -> State``, u of shape (reset_draws, ...)."""
    transition: Callable[..., Any]
    """``(xp, params, state, action, u) -> State``, u of shape (step_draws, ...) or None."""
    outcome: Callable[..., tuple[Array, Array]]
    """``(xp, params, state, action, next_state) -> (reward, terminated)``."""
    observe: Callable[..., tuple[Array, ...]]
    """``(xp, params, state) -> parts``, each (...) or (k, ...); the driver packs them into the space."""
    action_space: spaces.Space
    observation_space: spaces.Space
    reset_draws: int
    step_draws: int = 0
    """Uniforms a step takes as configured: the NumPy drivers draw exactly these."""
    max_step_draws: int | None = None
    """Uniforms a step takes at most; JAX always draws these, since a parameter such as slip may be traced."""
    info: Callable[..., dict[str, Array]] | None = None
    """``(xp, params, state) -> dict`` of numbers; the same keys at reset and at every step."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names for an info entry that is an index, such as ``{"outcome": ("running", "success")}``."""
    reset_with: Callable[..., Any] | None = None
    """``(xp, params, u, options) -> State`` for the NumPy drivers; consumes exactly reset_draws."""
    draw: Callable[..., None] | None = None
    """``(canvas, params, state) -> None``: one picture of one state without batch axis."""
    ansi: Callable[..., str] | None = None
    """``(params, state) -> str``: the same as text."""
    scalar: bool = False
    """Every leaf is (...): the single env runs on Python floats."""
    dtype: Any = np.float64
    """Of the float leaves; a Discrete action arrives in it (in a table world: int)."""
    render_fps: int = 30
    """Pictures a second in a window and in a video."""

    def __post_init__(self) -> None:
        """Refuses what no driver could draw.

        Raises:
            TypeError: A number of draws is no integer.
            ValueError: It is negative.
        """
        for name in ("reset_draws", "step_draws", "max_step_draws"):
            count = getattr(self, name)
            if count is None and name == "max_step_draws":
                continue
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
                raise TypeError(f"{name} must be a whole number of uniforms, not {count!r}")
            if count < 0:
                raise ValueError(f"{name} must be a whole number of uniforms from 0 on, not {count}")


class PlainParams(SimpleNamespace):
    """Parameters as bare attributes: quick to read, and plain about a name that is none."""

    def __getattr__(self, name: str) -> Any:
        """What is not there."""
        raise AttributeError(f"the world's params have no {name!r}; they have {', '.join(vars(self))}")


def make_world(world: str | World, kwargs: Mapping[str, Any]) -> World:
    """Makes the world that a string names.

    Args:
        world: ``"module:function"``, where ``function(**kwargs)`` returns a `World`; or a `World`, which is taken as it
            is.
        kwargs: The function's arguments.

    Raises:
        TypeError: The function has no argument of this name, or does not return a `World`.
    """
    function = (lambda: world) if isinstance(world, World) else _load(world)
    legal = inspect.signature(function).parameters
    for name in kwargs:
        if name not in legal and not any(p.kind is p.VAR_KEYWORD for p in legal.values()):
            raise TypeError(f"{world} has no argument {name!r}; legal are {', '.join(sorted(legal))}")
    made = function(**kwargs)
    if not isinstance(made, World):
        raise TypeError(f"{world} must return a World, not {made!r}")
    return made


def load_world(name: str | EnvSpec, **kwargs: Any) -> tuple[World, int | None]:
    """Makes the world behind an environment id, so that other drivers can run it.

    Args:
        name: A registered id such as ``"GridWorld-v0"`` or ``"my_package:Hopper2D-v0"``, its spec, or
            ``"module:make_world"``.
        **kwargs: Arguments of the world, over those of the registration.

    Returns:
        The world and the step limit of the id, None where there is none.
    """
    if isinstance(name, str) and name.partition(":")[2].isidentifier():
        return make_world(name, kwargs), None
    spec = name if isinstance(name, EnvSpec) else _spec(name)
    arguments = {**spec.kwargs, **kwargs}
    world = arguments.pop("world", None) or _world_of_entry_point(spec)
    return make_world(world, arguments), spec.max_episode_steps


def register_world(
    id: str,
    world: str,
    max_episode_steps: int | None = None,
    reward_threshold: float | None = None,
    **kwargs: Any,
) -> None:
    """Registers a world as a Gymnasium environment, for `gymnasium.make` and `gymnasium.make_vec`.

    Args:
        id: The environment's id, such as ``"Hopper2D-v0"``.
        world: ``"module:make_world"``; a string, so that specs stay JSON and environments pickle.
        max_episode_steps: Steps until an episode is truncated, None for no limit.
        reward_threshold: Return that counts as solved.
        **kwargs: Arguments of ``make_world`` under this id.
    """
    spec = EnvSpec(
        id=id,
        entry_point="gym_custom.single:SingleEnv",
        vector_entry_point="gym_custom.vector:BatchEnv",
        max_episode_steps=max_episode_steps,
        reward_threshold=reward_threshold,
        kwargs={"world": world, **kwargs},
    )
    register_spec(spec)


def register_spec(spec: EnvSpec) -> None:
    """Registers a spec; the same one again is no news (Gymnasium would warn)."""
    if gym.registry.get(spec.id) == spec:
        return
    names = ("id", "entry_point", "vector_entry_point", "max_episode_steps", "reward_threshold", "kwargs")
    gym.register(**{name: getattr(spec, name) for name in names})


def plain_params(params: Any, convert: Callable[[Any], Any] = lambda value: value) -> PlainParams:
    """The parameters with every property worked out once, since a property per use costs.

    Args:
        params: The world's NamedTuple.
        convert: Applied to each value, for example to turn tables into lists.
    """
    properties = [name for name, kind in vars(type(params)).items() if isinstance(kind, property)]
    return PlainParams(**{name: convert(getattr(params, name)) for name in (*params._fields, *properties)})


def recordable_params(params: Any) -> PlainParams:
    """The plain parameters for a recording: tables may be indexed with a symbol."""
    return plain_params(params, lambda value: Table(value) if np.ndim(value) == 1 else value)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    if not attribute:
        raise ValueError(f"a world is named 'module:function', not {path!r}")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ValueError(f"module {module} has no {attribute!r}") from None


def _spec(name: str) -> EnvSpec:
    """The spec of an id; ``"module:id"`` imports the module first, which registers it."""
    module, _, id = name.rpartition(":")
    if module:
        importlib.import_module(module)
    return gym.spec(id)


def _world_of_entry_point(spec: EnvSpec) -> str:
    entry_point = _load(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    world = getattr(entry_point, "world", None)
    if not isinstance(world, str):
        raise ValueError(f"{spec.id} is no world of this package: its rules are not written over an array namespace")
    return world
