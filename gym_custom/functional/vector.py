"""Any world as a Gymnasium vector env that steps in JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_custom.drivers.actions import BatchActions
from gym_custom.drivers.infos import BatchInfos
from gym_custom.drivers.observations import row_of
from gym_custom.drivers.resets import legal_count, legal_options, legal_rows, legal_seeds
from gym_custom.functional.environment import EnvState, make
from gym_custom.single import legal_render_mode, world_canvas, world_metadata
from gym_custom.world import plain_params

Array = Any


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
        self.num_envs, self._made_by = legal_count("num_envs", num_envs), (name, max_episode_steps, kwargs)
        self._build()
        world, self.spec = self._env.world, gym.spec(name) if name in gym.registry else None
        self.max_episode_steps = self._env.max_episode_steps
        self.metadata = world_metadata(world, ("rgb_array", "ansi")) | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = legal_render_mode(render_mode, self.metadata)
        self.single_action_space, self.single_observation_space = world.action_space, world.observation_space
        self.action_space = batch_space(world.action_space, self.num_envs)
        self.observation_space = batch_space(world.observation_space, self.num_envs)
        self._state: Any = None
        self._keys = np.zeros((self.num_envs, 2), np.uint32)
        self._returns = np.zeros(self.num_envs)  # kept for pictures only

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
        options = legal_options(options)
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
