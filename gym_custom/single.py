"""Any world as one Gymnasium environment."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from gym_custom.drivers.actions import legal_action
from gym_custom.drivers.infos import label_of
from gym_custom.drivers.observations import ObservationPacker
from gym_custom.drivers.resets import legal_options
from gym_custom.drivers.single_rules import python_numbers, single_rules
from gym_custom.world import World, make_world

_BUILT = {"_world", "_rules", "_params", "_step", "_keys", "_pack", "_labels", "_step_draws", "_number", "_canvas"}
"""Attributes that `SingleEnv._build` sets."""


class Snapshot(NamedTuple):
    """All that `SingleEnv.get_state` keeps."""

    state: Any  # the world's State
    steps: int  # since the reset
    episode_return: float  # since the reset
    terminated: bool
    observation_space: gym.Space  # of the world that the state is of


class SingleEnv(gym.Env):
    """One environment of a world.

    Subclasses name their world in the class attribute ``world``.

    Args:
        world: ``"module:make_world"``, where the class names none; or a `World` itself.
        render_mode: None, or one of ``metadata["render_modes"]``.
        **kwargs: The arguments of ``make_world``.

    Raises:
        ValueError: An argument has no legal value.
        TypeError: An argument is unknown or of the wrong type.
    """

    world: Any = None  # "module:make_world", or a World
    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 30}

    def __init__(self, world: str | World | None = None, render_mode: str | None = None, **kwargs: Any):
        self.world, self._kwargs = world_name(self, world), kwargs
        self._build()
        self.action_space = self._world.action_space
        self.observation_space = self._world.observation_space
        self.metadata = world_metadata(self._world, ("human", "rgb_array", "ansi"))
        self.render_mode = legal_render_mode(render_mode, self.metadata)
        self._leaves: tuple[Any, ...] | None = None  # the state without its names; None before the first reset
        self._steps, self._return = 0, 0.0
        self._terminated = self._warned = False

    def _build(self) -> None:
        """Makes everything that a pickled environment leaves behind."""
        self._world = make_world(self.world, self._kwargs)
        self._rules = single_rules(self._world)
        self._params, self._step, self._keys = self._rules.params, self._rules.step, self._rules.keys
        self._pack = ObservationPacker(self._world.observation_space).single
        self._labels, self._step_draws = self._world.labels, self._world.step_draws
        space = self._world.action_space
        self._number = _number_of_action(space, self._world.dtype, self._rules.scalar)
        self._canvas: Any = None

    @property
    def _state(self) -> Any:
        """The present State, None before the first reset."""
        return None if self._leaves is None else self._rules.named(self._leaves)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: Seeds the generator; None goes on with it.
            options: What the world makes of them; they hold for this episode.

        Returns:
            The first observation and its info.
        """
        options = legal_options(options)
        if seed is not None or self._np_random is None:
            super().reset(seed=seed)
        self._leaves = self._rules.begin(self._uniforms(self._world.reset_draws), options)
        self._steps, self._return = 0, 0.0
        self._terminated = self._warned = False
        if self._canvas is not None:
            self._canvas.forget()
        if self.render_mode == "human":
            self._show()
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step.

        After a termination the world stands still and earns nothing, with one warning, until `reset`.

        Args:
            action: A member of the action space; for a `Discrete` one any integer, also an array of one.

        Returns:
            Observation, reward, terminated, truncated (always False; `gymnasium.wrappers.TimeLimit` cuts) and info.

        Raises:
            ResetNeeded: Before the first reset.
            ValueError: The action is outside the action space.
            TypeError: The action is of the wrong kind.
        """
        if type(action) is int and action in self._number:
            number = self._number[action]
        else:
            number = self._unusual(action)
        if self._leaves is None:
            raise ResetNeeded("call reset() before step()")
        if self._terminated:
            return self._stand_still()
        u = self._uniforms(self._step_draws) if self._step_draws else None
        self._leaves, reward, terminated, parts, infos = self._step(self._leaves, number, u)
        reward, self._terminated = float(reward), bool(terminated)
        self._steps += 1
        self._return += reward
        if self.render_mode == "human":
            self._show()
        return self._pack(parts), reward, self._terminated, False, self._info(infos) if infos else {}

    def _unusual(self, action: Any) -> Any:
        """What the rules get for an action that is no plain integer."""
        action = legal_action(self.action_space, action)
        return self._number[action] if self._number else action.astype(self._world.dtype)

    def _stand_still(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self._warned:
            gym.logger.warn("step() after a termination: the world stands still until reset()")
            self._warned = True
        observation, info = self._seen()
        return observation, 0.0, True, False, info

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        parts, infos = self._rules.look(self._leaves)  # type: ignore[arg-type]
        return self._pack(parts), self._info(infos) if infos else {}

    def _info(self, infos: Any) -> dict[str, Any]:
        """The infos under their names, as Python numbers and labels."""
        labels, named = self._labels, {}
        for key, value in zip(self._keys, infos, strict=True):
            named[key] = label_of(key, labels[key], int(value)) if key in labels else python_numbers(value)
        return named

    def get_state(self) -> Snapshot:
        """The present state and the counters of this environment, without the generator."""
        if self._leaves is None:
            raise ResetNeeded("call reset() before get_state()")
        state = self._rules.named(_copied(self._leaves))
        return Snapshot(state, self._steps, self._return, self._terminated, self.observation_space)

    def set_state(self, snapshot: Snapshot) -> None:
        """Goes back to what `get_state` gave, also in another environment of the same world.

        Raises:
            TypeError: It is no snapshot, or one of another world.
            ValueError: Its state is none of this world: of another size, dtype or shape, or seen outside the space.
        """
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"set_state takes what get_state gave, not {snapshot!r}")
        observation = self._pack(self._rules.checked(snapshot.state))
        if snapshot.observation_space != self.observation_space:
            found = f"{snapshot.observation_space}, not in {self.observation_space}"
            raise ValueError(f"set_state takes a state of the same world; this one's is observed in {found}")
        if not self.observation_space.contains(observation):
            raise ValueError(f"set_state takes legal states; {snapshot.state} would be observed as {observation!r}")
        state, self._steps, self._return, self._terminated, _ = snapshot
        self._leaves, self._warned = _copied(state), False

    def render(self) -> Any:
        """The picture of the present state, as the render mode wants it."""
        if self._leaves is None:
            raise ResetNeeded("call reset() before render()")
        if self.render_mode == "rgb_array":
            return self._drawn().frame(
                self._world.draw, self._params, self._state, steps=self._steps, episode_return=self._return
            )
        if self.render_mode == "ansi":
            return self._world.ansi(self._params, self._state)  # type: ignore[misc]
        if self.render_mode is None:
            gym.logger.warn("render() without a render mode: choose one in gymnasium.make(id, render_mode=...)")
        return None  # a window draws itself in reset and step

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._canvas is not None:
            self._canvas.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but the window and what `_build` makes anew."""
        return {name: value for name, value in vars(self).items() if name not in _BUILT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Builds the world from its name and arguments."""
        vars(self).update(state)
        self._build()

    def _drawn(self) -> Any:
        if self._canvas is None:
            self._canvas = world_canvas(self)
        return self._canvas

    def _show(self) -> None:
        self._drawn().show(self._world.draw, self._params, self._state, steps=self._steps, episode_return=self._return)

    def _uniforms(self, count: int) -> Any:
        u = self.np_random.random(count)
        return u.tolist() if self._rules.scalar else u


def world_name(env: Any, world: str | World | None) -> str | World:
    """The world that the caller gives or names, or that the class names."""
    name = world or type(env).world
    if not isinstance(name, (str, World)):
        raise TypeError(f"{type(env).__name__} needs a world such as 'my_package.hopper:make_world', not {name!r}")
    return name


def world_metadata(world: World, modes: tuple[str, ...]) -> dict[str, Any]:
    """Metadata of an environment: those of these render modes that its world serves, and its pictures a second."""
    served = [mode for mode in modes if (world.ansi if mode == "ansi" else world.draw) is not None]
    return {"render_modes": served, "render_fps": world.render_fps}


def legal_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> str | None:
    """The render mode, if there is such a one."""
    if render_mode is not None and render_mode not in metadata["render_modes"]:
        legal = ", ".join(map(repr, [None, *metadata["render_modes"]]))
        raise ValueError(f"render_mode must be one of {legal}, not {render_mode!r}")
    return render_mode


def world_canvas(env: Any) -> Any:
    """A canvas for an environment; this is where pygame would be missed."""
    from gym_custom.rendering import Canvas

    return Canvas(title=env.spec.id if env.spec else type(env).__name__, fps=env.metadata["render_fps"])


def _number_of_action(space: gym.Space, dtype: Any, scalar: bool) -> dict[int, Any]:
    """What the rules get for each action of a `Discrete` space, in the world's dtype; empty for other spaces."""
    if not isinstance(space, gym.spaces.Discrete):
        return {}
    number = np.dtype(dtype).type
    actions = range(int(space.start), int(space.start + space.n))
    return {action: python_numbers(number(action)) if scalar else number(action) for action in actions}


def _copied(leaves: Any) -> tuple[Any, ...]:
    return tuple(leaf.copy()[()] if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)
