"""Any world as a batch of environments in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_custom.actions import legal_actions
from gym_custom.observations import ObservationPacker, row_of
from gym_custom.single import cast_leaf, legal_render_mode, world_canvas, world_metadata
from gym_custom.world import make_world, plain_params


class BatchEnv(VectorEnv):
    """Many environments of a world at once, equal to `gymnasium.vector.SyncVectorEnv` of the single one to the bit.

    Args:
        num_envs: Number of rows.
        world: ``"module:make_world"``, where the class names none.
        max_episode_steps: Steps until a row is truncated; None or -1 for no limit.
        autoreset_mode: When a finished row begins anew, as the enum or its value.
        render_mode: None, or one of ``metadata["render_modes"]``; each row has its own picture.
        **kwargs: The arguments of ``make_world``.
    """

    world: str | None = None
    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 30}

    def __init__(
        self,
        num_envs: int = 1,
        world: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **kwargs: Any,
    ):
        self.num_envs = num_envs
        self.world = world or type(self).world
        self.max_episode_steps = max_episode_steps
        self._kwargs = kwargs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._world = make_world(self.world, kwargs)
        self.metadata = world_metadata(self._world, ("rgb_array", "ansi"))
        self.metadata["autoreset_mode"] = self.autoreset_mode
        self.render_mode = legal_render_mode(render_mode, self.metadata)
        self.single_action_space = self._world.action_space
        self.single_observation_space = self._world.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._params = plain_params(self._world.params)
        self._pack = ObservationPacker(self.single_observation_space).batch
        self._generators: list[Any] = [None] * num_envs
        self._state: Any = None
        self._steps = np.zeros(num_envs, np.int64)
        self._returns = np.zeros(num_envs)
        self._finished = np.zeros(num_envs, np.bool_)
        self._canvas: Any = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes in all rows, or in those of ``options["reset_mask"]``."""
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        rows = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        seeds = self._seeds(seed)
        for row in rows:
            if seeds[row] is not None or self._generators[row] is None:
                self._generators[row] = gym.utils.seeding.np_random(seeds[row])[0]
        self._begin(rows, options)
        return self._observations(), self._infos(rows)

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + row for row in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"a list of seeds needs one a row, {self.num_envs}, not {len(seed)}")
        return list(seed)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of all rows."""
        if self._state is None:
            raise ResetNeeded("call reset() before step()")
        actions = legal_actions(self.single_action_space, actions, self.num_envs)
        if self.autoreset_mode is AutoresetMode.DISABLED and self._finished.any():
            raise ResetNeeded(
                f"rows {np.flatnonzero(self._finished).tolist()} are finished: reset them with reset_mask"
            )
        world, params = self._world, self._params
        beginning = np.flatnonzero(self._finished) if self.autoreset_mode is AutoresetMode.NEXT_STEP else np.arange(0)
        going_on = np.setdiff1d(np.arange(self.num_envs), beginning)
        action = np.moveaxis(actions, 0, -1).astype(world.dtype)
        u = None
        if world.step_draws:
            u = np.zeros((world.step_draws, self.num_envs))
            u[:, going_on] = self._draw(world.step_draws, going_on)
        state = self._cast(world.transition(np, params, self._state, action, u))
        reward, terminated = world.outcome(np, params, self._state, action, state)
        rewards = np.array(np.broadcast_to(reward, (self.num_envs,)), np.float64)
        terminations = np.array(np.broadcast_to(terminated, (self.num_envs,)), np.bool_)
        self._state = state
        self._steps += 1
        rewards[beginning] = 0.0
        terminations[beginning] = False
        self._returns += rewards
        limit = self.max_episode_steps
        truncations = self._steps >= limit if limit is not None and limit > 0 else np.zeros(self.num_envs, np.bool_)
        truncations[beginning] = False
        self._finished = terminations | truncations
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._finished.any():
            beginning = np.flatnonzero(self._finished)
            last = self._observations()
            infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
            for row in beginning:
                infos["final_obs"][row] = row_of(self.single_observation_space, last, row)
            infos["final_info"] = self._infos(beginning)
            infos["_final_obs"], infos["_final_info"] = self._finished.copy(), self._finished.copy()
        if beginning.size:
            self._begin(beginning, {})
        infos.update(self._infos(np.arange(self.num_envs)))
        return self._observations(), rewards, terminations, truncations, infos

    def _draw(self, count: int, rows: np.ndarray) -> np.ndarray:
        return np.array([self._generators[row].random(count) for row in rows]).reshape(rows.size, count).T

    def _begin(self, rows: np.ndarray, options: dict[str, Any]) -> None:
        world, u = self._world, self._draw(self._world.reset_draws, rows)
        if options and world.reset_with is not None:
            state = world.reset_with(np, self._params, u, options)
        else:
            state = world.initial_state(np, self._params, u)
        state = self._cast(state)
        if self._state is None:
            if rows.size < self.num_envs:
                raise ResetNeeded("the first reset must be of all rows")
            self._state = type(state)(
                *(
                    np.zeros((*leaf.shape[:-1], self.num_envs), leaf.dtype)
                    if leaf.ndim
                    else np.zeros(self.num_envs, leaf.dtype)
                    for leaf in state
                )
            )
        for leaf, new in zip(self._state, state, strict=True):
            leaf[..., rows] = new
        self._steps[rows] = 0
        self._returns[rows] = 0.0
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._finished[rows] = False
        if self._canvas is not None:
            self._canvas.forget(rows)

    def _cast(self, state: Any) -> Any:
        return type(state)(*(np.array(cast_leaf(leaf, self._world.dtype)) for leaf in state))

    def _observations(self) -> Any:
        return self._pack(self._world.observe(np, self._params, self._state), self.num_envs)

    def _infos(self, rows: np.ndarray) -> dict[str, Any]:
        if self._world.info is None:
            return {}
        infos: dict[str, Any] = {}
        mask = np.zeros(self.num_envs, np.bool_)
        mask[rows] = True
        for key, value in self._world.info(np, self._params, self._state).items():
            value = np.broadcast_to(value, (self.num_envs,))
            if key in self._world.labels:
                value = np.array(self._world.labels[key], object)[value.astype(np.int64)]
                infos[key] = np.where(mask, value, None)
            else:
                kind = {"f": np.float64, "b": np.bool_}.get(value.dtype.kind, np.int64)
                infos[key] = np.where(mask, value, 0).astype(kind)
            infos["_" + key] = mask.copy()
        return infos

    def render(self) -> tuple[Any, ...] | None:
        """One picture a row."""
        if self._state is None:
            raise ResetNeeded("call reset() before render()")
        if self.render_mode is None:
            gym.logger.warn("render() without a render mode: choose one in gymnasium.make_vec(id, render_mode=...)")
            return None
        return tuple(self._picture(row) for row in range(self.num_envs))

    def _picture(self, row: int) -> Any:
        state = type(self._state)(*(leaf[..., row] for leaf in self._state))
        if self.render_mode == "ansi":
            return self._world.ansi(self._params, state)  # type: ignore[misc]
        if self._canvas is None:
            self._canvas = world_canvas(self)
        counters = {"steps": int(self._steps[row]), "episode_return": float(self._returns[row]), "row": row}
        return self._canvas.frame(self._world.draw, self._params, state, **counters)

    def close_extras(self, **kwargs: Any) -> None:
        """Gives the memory of the pictures back."""
        if self._canvas is not None:
            self._canvas.close()
