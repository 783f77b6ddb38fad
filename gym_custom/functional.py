"""Any world in JAX: pure ``reset`` and ``step``, made of the same rules that the NumPy drivers run.

>>> env = make("GridWorld-v0")
>>> state, obs = env.reset(key)
>>> state, obs, reward, terminated, truncated, info = env.step(key, state, action)

Everything may be wrapped in ``jit``, ``vmap`` and ``scan``. A key is used once in the call that it is given to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.experimental.functional import FuncEnv
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_custom.actions import BatchActions
from gym_custom.infos import BatchInfos
from gym_custom.observations import row_of
from gym_custom.resets import legal_rows, legal_seeds
from gym_custom.single import legal_render_mode, world_canvas, world_metadata
from gym_custom.world import World, load_world, plain_params

Array = Any

BLOCK_NUMBERS = 2**17
"""Uniforms that ``rollout`` draws at once: enough to pay for the call, few enough to stay in the cache."""


class EnvState(NamedTuple):
    """What an environment remembers between two steps."""

    world: Any  # the world's own State
    steps: Array  # (), int32, steps taken in this episode
    terminated: Array  # (), bool, only without autoreset ever true


class Rollout(NamedTuple):
    """Sums over all rows and steps of a rollout, and where it ended."""

    reward_sum: Array  # (), of all rewards
    num_episodes: Array  # (), int32, episodes that ended
    return_sum: Array  # (), of the rewards of the episodes that ended
    length_sum: Array  # (), int32, steps of the episodes that ended
    state: EnvState  # leaves with the rows first, (num_envs, ...)


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
        num_reset_draws: uniforms that a reset consumes.
        observation_space, action_space: of one environment, as in NumPy.
        max_episode_steps: None or the limit.

    Raises:
        ValueError: float64 without x64, or a limit below 1.
    """

    def __init__(
        self, world: World, max_episode_steps: int | None = None, dtype: Any = jnp.float32, autoreset: bool = True
    ) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.kind != "f" or jax.dtypes.canonicalize_dtype(self.dtype) != self.dtype:
            raise ValueError(f"dtype must be float32, or float64 with jax_enable_x64, got {self.dtype}")
        if max_episode_steps is not None and max_episode_steps != -1 and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be positive, or None or -1 for no limit, got {max_episode_steps}")
        self.world, self.autoreset = world, autoreset
        self.max_episode_steps = None if max_episode_steps == -1 else max_episode_steps
        self.observation_space, self.action_space = world.observation_space, world.action_space
        self.params = jax.tree.map(jnp.asarray, _tables(world.params))
        self._step_draws = max(world.step_draws, world.max_step_draws or 0)
        self.num_reset_draws = world.reset_draws
        self.num_draws = self._step_draws + (self.num_reset_draws if autoreset else 0)

    def uniforms(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Many random numbers at once, as ``functional.uniforms`` in the env's dtype."""
        return uniforms(key, shape, self.dtype)

    def reset(self, key: Array, params: Any = None) -> tuple[EnvState, Array]:
        """Start an episode.

        Args:
            key: of either of JAX's key types.
            params: in place of ``self.params``; may be traced.

        Returns:
            The state and its observation.
        """
        return self.reset_from(jax.random.uniform(key, (self.num_reset_draws,), self.dtype), params)

    def reset_from(self, u: Array, params: Any = None) -> tuple[EnvState, Array]:
        """Start an episode from uniforms (num_reset_draws,) instead of a key."""
        state = self._begin(self._uniforms(u), self._own(params))
        return state, self.observe(state, params)

    def _begin(self, u: Array, params: Any) -> EnvState:
        return self.from_state(self.world.initial_state(jnp, params, u))

    def from_state(self, world_state: Any, steps: Array = 0) -> EnvState:
        """Wrap a State of the world, of any array type, as if ``steps`` steps had led to it."""
        return EnvState(self._cast(world_state), jnp.asarray(steps, jnp.int32), jnp.zeros((), bool))

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
        return self.step_from(jax.random.uniform(key, (self.num_draws,), self.dtype), state, action, params)

    def step_from(
        self, u: Array, state: EnvState, action: Array, params: Any = None
    ) -> tuple[EnvState, Array, Array, Array, Array, dict[str, Array]]:
        """Take one step from uniforms (num_draws,) instead of a key: the step's own, then the reset's."""
        params, u = self._own(params), self._uniforms(u)
        after, reward = self._advance(params, u[: self._step_draws], state, action)
        terminated, truncated, parts = after.terminated, self._truncated(after), self._parts(after, params)
        info = {**self.info(after, params), "final_observation": self._pack(parts)}
        if self.autoreset:
            fresh = self._begin(u[self._step_draws :], params)
            done, fresh_parts = terminated | truncated, self._parts(fresh, params)
            choose = partial(jax.tree.map, lambda new, old: jnp.where(done, new, old))
            after, parts = choose(fresh, after)._replace(terminated=fresh.terminated), choose(fresh_parts, parts)
        return after, self._pack(parts), reward, terminated, truncated, info

    def observe(self, state: EnvState, params: Any = None) -> Any:
        """The observation of a state, in the dtypes of ``observation_space`` (int32 for int64 without x64)."""
        return self._pack(self._parts(state, self._own(params)))

    def _parts(self, state: EnvState, params: Any) -> tuple[Array, ...]:
        return tuple(jnp.asarray(part) for part in self.world.observe(jnp, params, state.world))

    def _pack(self, parts: tuple[Array, ...]) -> Any:
        return _pack(self.observation_space, iter(parts))

    def info(self, state: EnvState, params: Any = None) -> dict[str, Array]:
        """The world's info entries in a state, as numbers."""
        if self.world.info is None:
            return {}
        return self._cast(self.world.info(jnp, self._own(params), state.world))

    def reward(self, state: EnvState, action: Array, next_state: EnvState, params: Any = None) -> Array:
        """What the step from one state to another earned; 0 from a terminated one."""
        action, own = self._action(action), self._own(params)
        reward, _ = self.world.outcome(jnp, own, state.world, action, next_state.world)
        return jnp.where(state.terminated, 0, jnp.asarray(reward, self.dtype))

    def _advance(self, params: Any, u: Array, state: EnvState, action: Array) -> tuple[EnvState, Array]:
        """The step itself, without any restart: the next state and the reward."""
        action = self._action(action)
        moved = self.world.transition(jnp, params, state.world, action, u if self._step_draws else None)
        moved = jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), self._cast(moved), state.world)
        reward, terminated = self.world.outcome(jnp, params, state.world, action, moved)
        after = EnvState(moved, state.steps + 1, jnp.asarray(terminated, bool))
        reward = jnp.asarray(reward, self.dtype)
        if self.autoreset:
            return after, reward
        after = jax.tree.map(lambda new, old: jnp.where(state.terminated, old, new), after, state)
        return after, jnp.where(state.terminated, 0, reward)

    def _truncated(self, state: EnvState) -> Array:
        limit = self.max_episode_steps
        return jnp.zeros((), bool) if limit is None else state.steps >= limit

    def _action(self, action: Array) -> Array:
        """The action in the type that the rules expect, action 0 in place of a bad one."""
        space, action = self.action_space, jnp.asarray(action)
        if isinstance(space, spaces.Discrete):
            if action.dtype.kind not in "iub":
                raise TypeError(f"actions of {space} must be integers, got {action.dtype}")
            action = action.astype(jnp.int32) if action.dtype == bool else action
            legal = (action >= int(space.start)) & (action < int(space.start + space.n))
            action = jnp.where(legal, action, int(space.start))
            return action.astype(self.dtype if np.dtype(self.world.dtype).kind == "f" else jnp.int32)
        assert isinstance(space, spaces.Box)
        action = action.astype(self.dtype)
        legal = ((action >= space.low.astype(self.dtype)) & (action <= space.high.astype(self.dtype))).all()
        return jnp.where(legal, action, jnp.zeros_like(action))

    def _uniforms(self, u: Array) -> Array:
        if u.dtype == self.dtype:
            return u
        below_one = np.nextafter(self.dtype.type(1), self.dtype.type(0))
        return jnp.minimum(jnp.asarray(u, self.dtype), below_one)  # a float64 close to 1 would round up to it

    def _own(self, params: Any) -> Any:
        return self._cast(self.params if params is None else params)

    def _cast(self, tree: Any) -> Any:
        """Floats in the env's dtype, integers in int32, whatever x64 says."""
        return jax.tree.map(self._cast_leaf, tree)

    def _cast_leaf(self, leaf: Array) -> Array:
        leaf = jnp.asarray(leaf)
        return leaf.astype({"f": self.dtype, "b": np.dtype(bool)}.get(leaf.dtype.kind, np.dtype(np.int32)))


def make(
    name: str, dtype: Any = jnp.float32, autoreset: bool = True, max_episode_steps: int | None = None, **kwargs: Any
) -> JaxEnv:
    """Make the JAX environment of a registered id, of the package or your own.

    Args:
        name: such as "GridWorld-v0" or "my_package:Hopper2D-v0".
        dtype: of the float leaves of states and of rewards; float64 needs x64.
        autoreset: whether finished episodes restart within the step.
        max_episode_steps: in place of the registered limit; -1 for none.
        **kwargs: the world's arguments, as for ``gym.make``.

    Raises:
        gymnasium.error.UnregisteredEnv: for an unknown id.
        ValueError: for an argument out of range.
    """
    world, limit = load_world(name, **kwargs)
    return JaxEnv(world, limit if max_episode_steps is None else max_episode_steps, dtype, autoreset)


def rollout(env: JaxEnv, policy: Callable[[Any, Array], Array], key: Array, num_envs: int, num_steps: int) -> Rollout:
    """Play many rows for many steps, all within one compiled loop.

    The random numbers of many steps are drawn at once outside the inner loop, so that XLA fuses a step into few
    kernels; they are those of ``rollout_uniforms``, and the sums are those that ``step_from`` gives for them.

    Args:
        env: with autoreset.
        policy: (obs (num_envs, ...), u (num_envs,)) -> actions (num_envs, ...); u are uniforms in [0, 1).
        key: of either of JAX's key types.
        num_envs: rows, positive.
        num_steps: steps of each row, positive.

    Raises:
        ValueError: without autoreset, or for counts below 1.
    """
    key_reset, key_steps, length, blocks = _plan(env, key, num_envs, num_steps)
    first = jax.vmap(env.reset_from, -1)(_reset_uniforms(env, key_reset, num_envs))[0]
    step = jax.vmap(env.step_from, (-1, 0, 0))
    nothing = jnp.zeros(num_envs, env.dtype), jnp.zeros(num_envs, jnp.int32)

    def one_step(carry: Any, u: Array) -> Any:  # u: (1 + num_draws, num_envs)
        state, running, (reward_sum, num_episodes, return_sum, length_sum) = carry
        taken = state.steps + 1
        state, _, reward, terminated, truncated, _ = step(u[1:], state, policy(jax.vmap(env.observe)(state), u[0]))
        done, running = terminated | truncated, running + reward
        sums = (
            reward_sum + reward,
            num_episodes + done,
            return_sum + jnp.where(done, running, 0),
            length_sum + jnp.where(done, taken, 0),
        )
        return state, jnp.where(done, 0, running), sums

    def block(carry: Any, index: Array, length: int = length) -> tuple[Any, None]:
        u = _step_uniforms(env, key_steps, index, length, num_envs)

        def at(carry: Any, t: Array) -> tuple[Any, None]:
            return one_step(carry, jax.lax.dynamic_slice_in_dim(u, t * num_envs, num_envs, 1)), None

        state, running, totals = carry  # totals grow by block sums, which float32 holds longer than single rewards
        (state, running, sums), _ = jax.lax.scan(at, (state, running, nothing * 2), jnp.arange(length))
        return (
            state,
            running,
            jax.tree.map(lambda total, part: total + part.sum(dtype=part.dtype), totals, sums),
        ), None

    carry = first, nothing[0], jax.tree.map(lambda x: x[0], nothing * 2)
    carry, _ = jax.lax.scan(block, carry, jnp.arange(blocks))
    if rest := num_steps - blocks * length:
        carry, _ = block(carry, jnp.asarray(blocks), rest)
    state, _, (reward_sum, num_episodes, return_sum, length_sum) = carry
    return Rollout(reward_sum, num_episodes, return_sum, length_sum, state)


def rollout_uniforms(env: JaxEnv, key: Array, num_envs: int, num_steps: int) -> tuple[Array, Array]:
    """The random numbers of a rollout, to replay it step by step.

    Returns:
        For ``reset_from``: (num_reset_draws, num_envs); and for each step the policy's number, then those for
        ``step_from``: (num_steps, 1 + num_draws, num_envs).
    """
    key_reset, key_steps, length, blocks = _plan(env, key, num_envs, num_steps)
    lengths = [length] * blocks + [num_steps - length * blocks]
    flat = [_step_uniforms(env, key_steps, i, n, num_envs) for i, n in enumerate(lengths) if n]
    steps = [u.reshape(len(u), -1, num_envs).swapaxes(0, 1) for u in flat]
    return _reset_uniforms(env, key_reset, num_envs), jnp.concatenate(steps)


def _plan(env: JaxEnv, key: Array, num_envs: int, num_steps: int) -> tuple[Array, Array, int, int]:
    """The keys of the reset and of the steps, the steps in a block and the number of whole blocks."""
    if not env.autoreset:
        raise ValueError("rollout needs an environment with autoreset")
    if num_envs < 1 or num_steps < 1:
        raise ValueError(f"num_envs and num_steps must be positive, got {num_envs} and {num_steps}")
    key_reset, key_steps = jax.random.split(key)
    longest = max(1, BLOCK_NUMBERS // ((env.num_draws + 1) * num_envs))
    blocks = -(-num_steps // longest)
    return key_reset, key_steps, num_steps // blocks, blocks  # the rest is shorter than the number of blocks


def _reset_uniforms(env: JaxEnv, key: Array, num_envs: int) -> Array:
    return uniforms(key, (env.num_reset_draws, num_envs), env.dtype)


def _step_uniforms(env: JaxEnv, key: Array, block: Array, length: int, num_envs: int) -> Array:
    """Flat, so that the last axis is long even for one row: (1 + num_draws, length * num_envs)."""
    return uniforms(jax.random.fold_in(key, block), (1 + env.num_draws, length * num_envs), env.dtype)


def uniforms(key: Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> Array:
    """Many uniforms in [0, 1) at once, several times faster on a CPU than ``jax.random.uniform``.

    The generator is JAX's own, Threefry-2x32 with 20 rounds (Salmon et al. 2011), under two words drawn from the key.
    JAX keeps its rounds in a loop on CPUs, which spares compilation; written out they become vector instructions.

    Args:
        key: of either of JAX's key types, and of any implementation.
        shape: long axes last.
        dtype: float32; others come from ``jax.random.uniform``.
    """
    if np.dtype(dtype) != np.float32:
        return jax.random.uniform(key, shape, dtype)
    words = jax.random.bits(key, (2,), jnp.uint32)
    size = int(np.prod(shape))
    if size >= 2**32:
        raise ValueError(f"at most 2**32 - 1 uniforms at once, got shape {shape}")
    count = jax.lax.iota(jnp.uint32, size).reshape(shape)
    x, y = _threefry(words[0], words[1], jnp.zeros_like(count), count)
    mantissa = ((x ^ y) >> np.uint32(9)) | np.uint32(0x3F800000)  # a float in [1, 2)
    return jax.lax.bitcast_convert_type(mantissa, jnp.float32) - 1


def _threefry(key_0: Array, key_1: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds, written out (Salmon et al. 2011, "Parallel random numbers")."""
    keys = key_0, key_1, key_0 ^ key_1 ^ np.uint32(0x1BD11BDA)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn)))
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def _tables(params: Any) -> Any:
    """Parameters with every table, be it a list, a tuple or an array, as one array."""
    return type(params)(*(np.asarray(value) if isinstance(value, (list, tuple)) else value for value in params))


def _pack(space: spaces.Space, parts: Iterator[Array]) -> Any:
    """One observation from its parts, in the space's own order, as ``ObservationPacker`` does in NumPy."""
    if isinstance(space, spaces.Dict):
        return {name: _pack(leaf, parts) for name, leaf in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_pack(leaf, parts) for leaf in space)
    assert space.shape is not None
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    missing, taken = int(np.prod(space.shape)), []
    while missing > 0:
        taken.append(jnp.ravel(next(parts)).astype(dtype))
        missing -= taken[-1].size
    return jnp.concatenate(taken).reshape(space.shape)


class JaxVectorEnv(VectorEnv):
    """Any world as a Gymnasium vector env that steps in JAX, in SAME_STEP mode.

    Rows are independent and repeatable from their seeds, but draw other numbers than the NumPy envs.

    Args:
        name: a registered id.
        num_envs: rows.
        max_episode_steps: in place of the registered limit; -1 for none.
        render_mode: None, "rgb_array" or "ansi", one own frame a row.
        **kwargs: the world's arguments.

    Raises:
        gymnasium.error.UnregisteredEnv: for an unknown id.
        ValueError: for an argument out of range.
    """

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs must be a positive integer, got {num_envs!r}")
        self.num_envs, self._made_by = num_envs, (name, max_episode_steps, kwargs)
        self._build()
        world, self.spec = self._env.world, gym.spec(name) if name in gym.registry else None
        self.max_episode_steps = self._env.max_episode_steps
        self.metadata = world_metadata(world, ("rgb_array", "ansi")) | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = legal_render_mode(render_mode, self.metadata)
        self.single_action_space, self.single_observation_space = world.action_space, world.observation_space
        self.action_space = batch_space(world.action_space, num_envs)
        self.observation_space = batch_space(world.observation_space, num_envs)
        self._state: Any = None
        self._keys = np.zeros((num_envs, 2), np.uint32)
        self._returns = np.zeros(num_envs)  # kept for pictures only

    def _build(self) -> None:
        """Make everything that a pickled environment leaves behind."""
        name, limit, kwargs = self._made_by
        self._env = make(name, max_episode_steps=limit, **kwargs)
        self._actions = BatchActions(self._env.action_space, self.num_envs)
        self._infos = BatchInfos(self._env.world.labels, self.num_envs)
        self._reset_rows, self._step_rows = jax.jit(self._reset_all), jax.jit(self._step_all)
        self._see_rows = jax.jit(jax.vmap(lambda state: (self._env.observe(state), self._env.info(state))))
        self._canvas: Any = None

    def _reset_all(self, keys: Array) -> tuple[Array, Array, EnvState]:
        """New keys, the uniforms used (num_envs, reset_draws) and the states, for every row."""
        keys, now = _split_rows(keys)
        u = jax.vmap(lambda key: jax.random.uniform(key, (self._env.num_reset_draws,)))(now)
        return keys, u, jax.vmap(lambda u: self._env.reset_from(u)[0])(u)

    def _step_all(self, keys: Array, state: EnvState, actions: Array) -> tuple[Any, ...]:
        keys, now = _split_rows(keys)
        state, obs, *ends, info = jax.vmap(self._env.step)(now, state, actions)
        return keys, state, obs, *ends, info, jax.vmap(self._env.info)(state)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; see ``BatchEnv.reset``."""
        options = dict(options or {})
        rows = legal_rows(options.pop("reset_mask", None), self.num_envs)
        if self._state is None and len(rows) < self.num_envs:
            raise ResetNeeded("the first reset() must be of all rows")
        self._seed(rows, legal_seeds(seed, self.num_envs))
        keys, u, fresh = self._reset_rows(self._keys)
        if options and self._env.world.reset_with is not None:
            fresh = fresh._replace(world=self._world_with(np.array(u, np.float64).T, options, fresh.world))
        chosen = np.zeros(self.num_envs, bool)
        chosen[rows] = True
        old = fresh if self._state is None else self._state
        self._keys = np.where(chosen[:, None], np.asarray(keys), self._keys)
        self._state = jax.tree.map(lambda new, old: jnp.where(_like(chosen, new), new, old), fresh, old)
        self._returns[rows] = 0.0
        if self._canvas is not None:
            self._canvas.forget(rows)
        obs, info = self._see_rows(self._state)
        return self._numpy(obs), self._filled(info, rows)

    def _seed(self, rows: np.ndarray, seeds: list[int | None]) -> None:
        for row in rows.tolist():
            if seeds[row] is not None or self._state is None:
                self._keys[row] = np.random.SeedSequence(seeds[row]).generate_state(2)

    def _world_with(self, u: np.ndarray, options: dict[str, Any], like: Any) -> Any:
        world = self._env.world
        made = world.reset_with(np, plain_params(world.params), u, options)  # type: ignore[misc]
        return jax.tree.map(
            lambda leaf, like: jnp.asarray(
                np.moveaxis(np.broadcast_to(leaf, (*like.shape[1:], len(like))), -1, 0), like.dtype
            ),
            made,
            like,
        )

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of all rows; finished rows begin anew within it.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: an action is outside the action space.
            TypeError: actions are of the wrong kind.
        """
        if self._state is None:
            raise ResetNeeded("call reset() before step()")
        legal = np.zeros((*self.single_action_space.shape, self.num_envs), self.single_action_space.dtype)  # type: ignore[misc]
        self._actions.put(actions, legal)
        keys, self._state, obs, reward, terminated, truncated, info, now = self._step_rows(
            self._keys, self._state, np.moveaxis(legal, -1, 0)
        )
        self._keys = np.array(keys)
        rewards, ends = np.array(reward, np.float64), (np.array(terminated), np.array(truncated))
        rows = (ends[0] | ends[1]).nonzero()[0]
        if self.render_mode is not None:
            self._count(rewards, rows)
        infos = self._last_words(info, rows) if rows.size else {}
        return self._numpy(obs), rewards, *ends, infos | self._filled(now, np.arange(self.num_envs))

    def _last_words(self, info: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
        """What finished rows showed before they began anew."""
        batch = self._numpy(info.pop("final_observation"))
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row in rows.tolist():
            final_obs[row] = row_of(self.single_observation_space, batch, row)
        infos = {"final_obs": final_obs, "final_info": self._filled(info, rows)}
        self._infos.mask(infos, rows)
        return infos

    def _filled(self, info: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        if info:
            self._infos.fill(infos, rows, {key: np.asarray(value)[rows] for key, value in info.items()})
            self._infos.mask(infos, rows)
        return infos

    def _numpy(self, obs: Any, space: spaces.Space | None = None) -> Any:
        """Observations as NumPy arrays of their own memory, in the space's dtypes."""
        space = self.single_observation_space if space is None else space
        if isinstance(space, spaces.Dict):
            return {name: self._numpy(obs[name], leaf) for name, leaf in space.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(self._numpy(part, leaf) for part, leaf in zip(obs, space, strict=True))
        return np.array(obs, space.dtype)

    def _count(self, rewards: np.ndarray, rows: np.ndarray) -> None:
        self._returns += rewards
        self._returns[rows] = 0.0
        if self._canvas is not None:
            self._canvas.forget(rows)

    def render(self) -> tuple[Any, ...] | None:
        """One picture a row, of its own memory, as the render mode wants it."""
        if self._state is None:
            raise ResetNeeded("call reset() before render()")
        if self.render_mode is None:
            gym.logger.warn("render() without a render mode: choose one in JaxVectorEnv(id, render_mode=...)")
            return None
        state = jax.tree.map(np.asarray, self._state)
        return tuple(self._picture(jax.tree.map(lambda leaf: leaf[row], state), row) for row in range(self.num_envs))  # noqa: B023

    def _picture(self, state: EnvState, row: int) -> Any:
        world, params = self._env.world, plain_params(self._env.world.params)
        if self.render_mode == "ansi":
            return world.ansi(params, state.world)  # type: ignore[misc]
        if self._canvas is None:
            self._canvas = world_canvas(self)
        counters = {"steps": int(state.steps), "episode_return": float(self._returns[row])}
        return self._canvas.frame(world.draw, params, state.world, row=row, **counters)

    def close_extras(self, **kwargs: Any) -> None:
        """Give the memory of the pictures back."""
        if self._canvas is not None:
            self._canvas.close()

    def __getstate__(self) -> dict[str, Any]:
        made = ("_env", "_actions", "_infos", "_reset_rows", "_step_rows", "_see_rows", "_canvas")
        kept = {name: value for name, value in vars(self).items() if name not in made}
        return kept | {"_state": jax.tree.map(np.asarray, self._state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._build()


def _split_rows(keys: Array) -> tuple[Array, Array]:
    """Raw keys (num_envs, 2) to those kept for later, raw again, and those for now."""
    pairs = jax.vmap(jax.random.split)(jax.random.wrap_key_data(keys, impl="threefry2x32"))
    return jax.random.key_data(pairs[:, 0]), pairs[:, 1]


def _like(mask: np.ndarray, leaf: Array) -> np.ndarray:
    return mask.reshape(-1, *(1,) * (leaf.ndim - 1))


def as_func_env(name: str, **kwargs: Any) -> WorldFuncEnv:
    """Any world as Gymnasium's ``FuncEnv``, for its ``FunctionalJaxEnv``; arguments as for ``make``."""
    return WorldFuncEnv(make(name, autoreset=False, max_episode_steps=-1, **kwargs))


class WorldFuncEnv(FuncEnv):
    """Gymnasium's functional interface over a ``JaxEnv`` without autoreset; there is no step limit in it."""

    def __init__(self, env: JaxEnv) -> None:
        self._env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        super().__init__()

    def get_default_params(self, **kwargs: Any) -> Any:
        """The world's parameters."""
        return self._env.params

    def initial(self, rng: Array, params: Any = None) -> EnvState:
        """A first state."""
        return self._env.reset(rng, params)[0]

    def transition(self, state: EnvState, action: Array, rng: Array, params: Any = None) -> EnvState:
        """The next state; a terminated one stays as it is."""
        return self._env.step(rng, state, action, params)[0]

    def observation(self, state: EnvState, rng: Array = None, params: Any = None) -> Any:
        """What the state shows."""
        return self._env.observe(state, params)

    def reward(
        self, state: EnvState, action: Array, next_state: EnvState, rng: Array = None, params: Any = None
    ) -> Array:
        """What the step earned."""
        return self._env.reward(state, action, next_state, params)

    def terminal(self, state: EnvState, rng: Array = None, params: Any = None) -> Array:
        """Whether the state ended the episode."""
        return state.terminated

    def state_info(self, state: EnvState, params: Any = None) -> dict[str, Any]:
        """The world's info entries."""
        return self._env.info(state, params)

    def transition_info(
        self, state: EnvState, action: Array, next_state: EnvState, params: Any = None
    ) -> dict[str, Any]:
        """The info entries of the state that was reached."""
        return self._env.info(next_state, params)
