"""One environment of any world as pure functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from gym_custom.arguments import legal_flag, shown
from gym_custom.drivers.resets import legal_count
from gym_custom.functional.arguments import available, legal_dtype, legal_key, legal_params, legal_uniforms, numbers
from gym_custom.functional.observations import pack
from gym_custom.functional.random_numbers import uniforms
from gym_custom.functional.stages import in_stages
from gym_custom.world import World, load_world

Array = Any


class EnvState(NamedTuple):
    """What an environment remembers between two steps."""

    world: Any  # the world's own State
    steps: Array  # (), int32, steps taken in this episode
    terminated: Array  # (), bool, only without autoreset ever true


class JaxEnv:
    """A world as pure functions of keys, states and actions.

    A **bad action** (out of range, NaN, outside a Box) cannot raise inside compiled code. It is neither clamped nor
    wrapped but treated as action 0: the first action of a Discrete space, zeros of a Box.

    With ``autoreset`` a finished episode starts again within the same step: ``state`` and ``obs`` are the new
    episode's, ``reward``, the flags and ``info`` the finished step's, and ``info["final_observation"]`` is the
    observation before the restart. Without it a terminated state is absorbing: it stays as it is, earns 0 and
    remains terminated; after a mere truncation the world goes on.

    Args:
        world: the rules.
        max_episode_steps: steps until truncation, None for no limit.
        dtype: of the float leaves of states and of rewards; float64 needs x64.
        autoreset: whether finished episodes restart within the step.

    Attributes:
        params: the world's parameters as JAX scalars and tables; pass changed ones to ``reset`` and ``step``.
        num_draws: uniforms that one step consumes, those of the reset that it may contain included.
        num_step_draws: uniforms of the step alone.
        num_reset_draws: uniforms that a reset consumes.
        observation_space, action_space: of one environment, as in NumPy.
        max_episode_steps: None or the limit.

    Raises:
        TypeError: an argument of another type.
        ValueError: float64 without x64, or a limit below 1.
    """

    def __init__(
        self, world: World, max_episode_steps: int | None = None, dtype: Any = jnp.float32, autoreset: bool = True
    ) -> None:
        self.world, self.dtype, self.autoreset = world, legal_dtype(dtype), legal_flag("autoreset", autoreset)
        unlimited = max_episode_steps is None or max_episode_steps == -1
        self.max_episode_steps = None if unlimited else legal_count("max_episode_steps", max_episode_steps)
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self.params = jax.tree.map(jnp.asarray, _tables(world.params))
        rules = (partial(rule, jnp) for rule in (world.initial_state, world.transition, world.outcome, world.observe))
        self._initial_state, self._transition, self._outcome, self._see = (
            rule if world.scalar else in_stages(rule) for rule in rules
        )
        self.num_step_draws = max(world.step_draws, world.max_step_draws or 0)
        self.num_reset_draws = world.reset_draws
        self.num_draws = self.num_step_draws + (self.num_reset_draws if autoreset else 0)

    def uniforms(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Many random numbers at once, as ``functional.uniforms`` in the env's dtype."""
        return uniforms(key, shape, available(self.dtype))

    def _draw(self, key: Array, count: int) -> Array:
        return jax.random.uniform(legal_key(key), (count,), available(self.dtype))

    def reset(self, key: Array, params: Any = None) -> tuple[EnvState, Array]:
        """Start an episode.

        Args:
            key: of either of JAX's key types.
            params: in place of ``self.params``; may be traced.

        Returns:
            The state and its observation.
        """
        return self.reset_from(self._draw(key, self.num_reset_draws), params)

    def reset_from(self, u: Array, params: Any = None) -> tuple[EnvState, Array]:
        """Start an episode from uniforms (num_reset_draws,) instead of a key."""
        state = self.begin(legal_uniforms(u, self.num_reset_draws, self.dtype), params)
        return state, self.observe(state, params)

    def from_state(self, world_state: Any, steps: Array = 0) -> EnvState:
        """Wrap a State of the world, of any array type, as if ``steps`` steps had led to it."""
        steps = jnp.asarray(steps, jnp.int32)
        return EnvState(self._cast(world_state), steps, jnp.zeros(steps.shape, bool))

    def step(
        self, key: Array, state: EnvState, action: Array, params: Any = None
    ) -> tuple[EnvState, Array, Array, Array, Array, dict[str, Array]]:
        """Take one step.

        Args:
            key: of either of JAX's key types.
            state: from ``reset``, ``step`` or ``from_state``.
            action: member of the action space; a bad one counts as action 0.
            params: in place of ``self.params``; may be traced.

        Returns:
            state, obs, reward (), terminated () bool, truncated () bool, and info: the world's entries as numbers and
            "final_observation", the same keys at each step.
        """
        return self.step_from(self._draw(key, self.num_draws), state, action, params)

    def step_from(
        self, u: Array, state: EnvState, action: Array, params: Any = None
    ) -> tuple[EnvState, Array, Array, Array, Array, dict[str, Array]]:
        """Take one step from uniforms (num_draws,) instead of a key: the step's own, then the reset's."""
        params, u = self._own(params), legal_uniforms(u, self.num_draws, self.dtype)
        after, reward, truncated = self.advance(u[: self.num_step_draws], state, action, params)
        terminated, parts = after.terminated, self._parts(after, params)
        info = {**self.info(after, params), "final_observation": pack(self.observation_space, parts)}
        if self.autoreset:
            fresh = self.begin(u[self.num_step_draws :], params)
            done, fresh_parts = terminated | truncated, self._parts(fresh, params)
            choose = partial(jax.tree.map, lambda new, old: jnp.where(done, new, old))
            after, parts = choose(fresh, after), choose(fresh_parts, parts)
        return after, pack(self.observation_space, parts), reward, terminated, truncated, info

    def observe(self, state: EnvState, params: Any = None) -> Any:
        """The observation of a state, in the dtypes of ``observation_space`` (int32 for int64 without x64)."""
        return pack(self.observation_space, self._parts(state, self._own(params)))

    def _parts(self, state: EnvState, params: Any) -> tuple[Array, ...]:
        return tuple(jnp.asarray(part) for part in self._see(params, state.world))

    def info(self, state: EnvState, params: Any = None) -> dict[str, Array]:
        """The world's info entries in a state, as numbers."""
        if self.world.info is None:
            return {}
        return self._cast(self.world.info(jnp, self._own(params), state.world))

    def reward(self, state: EnvState, action: Array, next_state: EnvState, params: Any = None) -> Array:
        """What the step from one state to another earned; 0 from a terminated one."""
        action, own = self._action(action, state.steps.shape), self._own(params)
        reward, _ = self._outcome(own, state.world, action, next_state.world)
        return jnp.where(state.terminated, 0, jnp.asarray(reward, self.dtype))

    # The rules take rows on the last axis, where XLA finds them in one piece: the next three may be given rows so.

    def begin(self, u: Array, params: Any = None) -> EnvState:
        """First states from uniforms (num_reset_draws, ...); leaves get these trailing axes."""
        params, rows = self._own(params), u.shape[1:]
        world = self._initial_state(params, u)
        if rows:  # a leaf that needs no uniforms has none yet
            one = jax.eval_shape(partial(self._initial_state, params), u[(slice(None), *(0 for _ in rows))])
            world = jax.tree.map(lambda leaf, like: jnp.broadcast_to(leaf, (*like.shape, *rows)), world, one)
        return self.from_state(world, jnp.zeros(rows, jnp.int32))

    def advance(self, u: Array, state: EnvState, action: Array, params: Any = None) -> tuple[EnvState, Array, Array]:
        """The step itself without any restart, from uniforms (num_step_draws, ...).

        Returns:
            The next state, the reward and whether the step limit is reached.
        """
        if not isinstance(state, EnvState):
            raise TypeError(f"state must come from reset, step or from_state, not {shown(state)}")
        rows, params = state.steps.shape, self._own(params)
        action = self._action(action, rows)
        moved = self._transition(params, state.world, action, u if self.num_step_draws else None)
        moved = jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), self._cast(moved), state.world)
        reward, terminated = self._outcome(params, state.world, action, moved)
        reward = jnp.broadcast_to(jnp.asarray(reward, self.dtype), rows)
        after = EnvState(moved, state.steps + 1, jnp.broadcast_to(jnp.asarray(terminated, bool), rows))
        if not self.autoreset:
            after = jax.tree.map(lambda new, old: jnp.where(state.terminated, old, new), after, state)
            reward = jnp.where(state.terminated, 0, reward)
        limit = self.max_episode_steps
        return after, reward, jnp.zeros(rows, bool) if limit is None else after.steps >= limit

    def observe_rows(self, state: EnvState) -> Any:
        """The observations of rows on the last axis, rows first."""
        packed = pack(self.observation_space, self._parts(state, self._own(None)), state.steps.shape)
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), packed)

    def _action(self, action: Array, rows: tuple[int, ...]) -> Array:
        """The action in the type that the rules expect, action 0 in place of a bad one."""
        space, action = self.action_space, numbers("the action", action)
        if action.shape != (shape := (*space.shape, *rows)):  # type: ignore[misc]
            raise ValueError(f"the action must be of shape {shape}, not {action.shape}: jax.vmap goes over many")
        if isinstance(space, spaces.Discrete):
            if action.dtype.kind not in "iub":
                raise TypeError(f"actions of {space} must be integers, got {action.dtype}")
            action = action.astype(jnp.int32) if action.dtype == bool else action
            legal = (action >= int(space.start)) & (action < int(space.start + space.n))
            action = jnp.where(legal, action, int(space.start))
            return action.astype(self.dtype if np.dtype(self.world.dtype).kind == "f" else jnp.int32)
        assert isinstance(space, spaces.Box)
        action = action.astype(self.dtype)
        low, high = (
            bound.astype(self.dtype).reshape(bound.shape + (1,) * (action.ndim - bound.ndim))
            for bound in (space.low, space.high)
        )
        legal = ((action >= low) & (action <= high)).all(axis=tuple(range(space.low.ndim)))
        return jnp.where(legal, action, jnp.zeros_like(action))

    def _own(self, params: Any) -> Any:
        available(self.dtype)
        return self._cast(self.params if params is None else legal_params(params, self.params))

    def _cast(self, tree: Any) -> Any:
        """Floats in the env's dtype, integers in int32, whatever x64 says."""
        return jax.tree.map(self._cast_leaf, tree)

    def _cast_leaf(self, leaf: Array) -> Array:
        leaf = jnp.asarray(leaf)
        return leaf.astype({"f": self.dtype, "b": np.dtype(bool)}.get(leaf.dtype.kind, np.dtype(np.int32)))


def make(
    name: str | EnvSpec,
    dtype: Any = jnp.float32,
    autoreset: bool = True,
    max_episode_steps: int | None = None,
    **kwargs: Any,
) -> JaxEnv:
    """Make the JAX environment of a registered id, of the package or your own.

    Args:
        name: such as "GridWorld-v0" or "my_package:Hopper2D-v0", or its spec.
        dtype: of the float leaves of states and of rewards; float64 needs x64.
        autoreset: whether finished episodes restart within the step.
        max_episode_steps: in place of the registered limit; -1 for none.
        **kwargs: the world's arguments, as for ``gym.make``.

    Raises:
        gymnasium.error.UnregisteredEnv: for an unknown id.
        TypeError: for an argument of another type.
        ValueError: for an argument out of range.
    """
    if not isinstance(name, (str, EnvSpec)):
        raise TypeError(f"name must be an id such as 'GridWorld-v0', or a spec, not {shown(name)}")
    world, limit = load_world(name, **kwargs)
    return JaxEnv(world, limit if max_episode_steps is None else max_episode_steps, dtype, autoreset)


def compiled_step(env: JaxEnv) -> Callable[..., Any]:
    """The step of many rows as one compiled function.

    Returns:
        (u, world states, actions, params) -> the next world states, all but params with the rows as last axis.
    """

    def step(u: Array, state: Any, action: Array, params: Any) -> Any:
        return env.step_from(u, env.from_state(state), action, params)[0].world

    return jax.jit(jax.vmap(step, in_axes=(-1, -1, -1, None), out_axes=-1))


def _tables(params: Any) -> Any:
    """Parameters with every table, be it a list, a tuple or an array, as one array."""
    return type(params)(*(np.asarray(value) if isinstance(value, (list, tuple)) else value for value in params))
