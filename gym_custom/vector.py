"""Any world as a batch of environments in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gym_custom.drivers.actions import BatchActions
from gym_custom.drivers.batch_rules import batch_rules
from gym_custom.drivers.infos import ALL_ROWS, BatchInfos
from gym_custom.drivers.observations import ObservationPacker, row_of
from gym_custom.drivers.resets import (
    MOST_ROWS,
    legal_autoreset_mode,
    legal_count,
    legal_options,
    legal_rows,
    legal_seeds,
)
from gym_custom.drivers.row_draws import RowDraws
from gym_custom.drivers.state_layout import StateLayout
from gym_custom.single import Snapshot, legal_render_mode, world_canvas, world_metadata, world_name
from gym_custom.world import World, make_world, plain_params

_NO_ROWS = np.zeros(0, np.int64)
_BUILT = {"_world", "_params", "_layout", "_rules", "_actions", "_pack", "_infos", "_draws", "_canvas"}
"""Attributes that `BatchEnv._build` sets."""


class BatchEnv(VectorEnv):
    """Many environments of a world at once.

    It gives, to the last bit, what `gymnasium.vector.SyncVectorEnv` of the single environment gives, in each of its
    autoreset modes and whatever the seeds. What one row does never changes what another draws.

    Args:
        num_envs: Number of rows.
        world: ``"module:make_world"``, where the class names none; or a `World` itself.
        max_episode_steps: Steps until a row is truncated; None or -1 for no limit.
        autoreset_mode: When a finished row begins anew, as the enum or its value: "NextStep", "SameStep", "Disabled".
        render_mode: None, or one of ``metadata["render_modes"]``; each row has its own picture.
        **kwargs: The arguments of ``make_world``.

    Raises:
        ValueError: An argument has no legal value.
        TypeError: An argument is unknown or of the wrong type.
    """

    world: Any = None  # "module:make_world", or a World
    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 30}

    def __init__(
        self,
        num_envs: int = 1,
        world: str | World | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **kwargs: Any,
    ):
        self.num_envs = legal_count("num_envs", num_envs, MOST_ROWS)
        self.max_episode_steps = max_episode_steps
        unlimited = max_episode_steps is None or max_episode_steps == -1
        self._limit = None if unlimited else legal_count("max_episode_steps", max_episode_steps)
        self.autoreset_mode = legal_autoreset_mode(autoreset_mode)
        self.world, self._kwargs = world_name(self, world), kwargs
        self._build()
        self.metadata = world_metadata(self._world, ("rgb_array", "ansi")) | {"autoreset_mode": self.autoreset_mode}
        self.render_mode = legal_render_mode(render_mode, self.metadata)
        self.single_action_space = self._world.action_space
        self.single_observation_space = self._world.observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._seeds: list[Any] = [None] * self.num_envs
        self._started = False
        self._now = 0  # steps of this batch so far
        self._began = np.zeros(self.num_envs, np.int64)  # when each row's episode began
        self._earliest = 0  # none began before
        self._returns = np.zeros(self.num_envs)  # kept for pictures only
        self._finished_rows = _NO_ROWS

    def _build(self) -> None:
        """Makes everything that a pickled environment leaves behind."""
        world = self._world = make_world(self.world, self._kwargs)
        self._params = plain_params(world.params)
        self._layout = StateLayout(world, self._params)
        self._rules = batch_rules(world, self._params, self._layout, self.num_envs)
        self._actions = BatchActions(world.action_space, self.num_envs)
        self._pack = ObservationPacker(world.observation_space)
        self._infos = BatchInfos(world.labels, self.num_envs)
        self._draws = RowDraws(world, self._params, self._layout, self.num_envs)
        self._canvas: Any = None

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins episodes.

        Args:
            seed: An integer for ``seed + row``, or one a row; a row with None goes on with its generator.
            options: ``reset_mask`` chooses rows (bool, (num_envs,)), the others stay as they are; everything else is
                for the world, for these episodes.

        Returns:
            The observations of all rows and the infos of those that began.

        Raises:
            gymnasium.error.Error: A seed is no integer, or negative.
            ResetNeeded: A mask leaves out rows that were never reset.
            ValueError: Seeds, mask or an option have no legal value.
            TypeError: They are of the wrong type.
        """
        options = legal_options(options)
        rows = legal_rows(options.pop("reset_mask", None), self.num_envs)
        if not self._started and len(rows) < self.num_envs:
            raise ResetNeeded("the first reset() must be of all rows")
        self._seed(rows, legal_seeds(seed, self.num_envs))
        self._begin(rows, options)
        self._started = True
        self._finished_rows = np.setdiff1d(self._finished_rows, rows)
        return self._see(rows)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of all rows; rows that are finished begin anew as the autoreset mode says.

        Args:
            actions: Members of the rows' action spaces: integers of any kind of shape (num_envs,), or (num_envs, ...).

        Returns:
            Observations, rewards (float64), terminations and truncations (bool), each with the rows first, and infos.
            Arrays are the caller's own; those of observations may be in Fortran's order, as Gymnasium's own are.

        Raises:
            ResetNeeded: Before the first reset; with autoreset disabled also where a row is finished.
            ValueError: An action is outside the action space.
            TypeError: Actions are of the wrong kind.
        """
        if not self._started:
            raise ResetNeeded("call reset() before step()")
        rules, rows = self._rules, self._finished_rows
        self._actions.put(actions, rules.action)
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            if self.autoreset_mode is AutoresetMode.DISABLED and rows.size:
                raise ResetNeeded(f"rows {rows.tolist()} are finished: reset them with options['reset_mask']")
            rows = _NO_ROWS
        if self._world.step_draws:
            self._draws.step(rules.u, without=rows)
        rules.advance()
        self._now += 1
        rewards, terminations = rules.reward.copy(), rules.terminated.copy()
        if rows.size:
            self._begin(rows, {})
            rewards[rows] = 0.0
            terminations[rows] = False
        truncations = self._truncations()
        self._finished_rows = (terminations | truncations).nonzero()[0]
        if self.render_mode is not None:
            self._returns += rewards
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._finished_rows.size:
            infos = self._last_words(self._finished_rows)
            self._begin(self._finished_rows, {})
        observations, now = self._see()
        return observations, rewards, terminations, truncations, infos | now if infos else now

    def _seed(self, rows: np.ndarray, seeds: list[int | None]) -> None:
        """Seeds the rows that are given a seed, and those that never had one."""
        if not self._started:
            seeds = [int(np.random.SeedSequence().entropy) if seed is None else seed for seed in seeds]  # type: ignore[arg-type]
        rows = np.array([row for row in rows.tolist() if seeds[row] is not None], np.int64)
        if rows.size:
            new = [seeds[row] for row in rows.tolist()]
            for row, seed in zip(rows.tolist(), new, strict=True):
                self._seeds[row] = seed
            self._draws.seed(rows, new)

    def _begin(self, rows: np.ndarray, options: dict[str, Any]) -> None:
        """Begins an episode in each of these rows."""
        for block, new in zip(self._rules.blocks, self._draws.beginnings(rows, options), strict=True):
            block[:, rows] = new
        self._began[rows] = self._now
        if self.render_mode is not None:
            self._returns[rows] = 0.0
            if self._canvas is not None:
                self._canvas.forget(rows)

    def _truncations(self) -> np.ndarray:
        """Which rows have reached the limit."""
        if self._limit is None or self._earliest > self._now - self._limit:
            return np.zeros(self.num_envs, np.bool_)
        self._earliest = int(self._began.min())
        return self._began <= self._now - self._limit

    def _see(self, rows: Any = ALL_ROWS) -> tuple[Any, dict[str, Any]]:
        """The observations of all rows, and the infos of these."""
        observations, infos = None, {}  # type: ignore[var-annotated]
        for tile, parts, info in self._rules.look():
            observations = self._pack.fill(observations, tile, parts, self.num_envs)
            if info:
                self._infos.fill(infos, tile, info)
        if infos:
            self._infos.mask(infos, rows)
        return observations, infos

    def _last_words(self, rows: np.ndarray) -> dict[str, Any]:
        """What finished rows show before they begin anew in the same step."""
        batch, at, info = self._shown(rows)
        final_obs = np.empty(self.num_envs, object)  # of None
        plain = isinstance(batch, np.ndarray) and batch.ndim > 1
        for row, i in zip(rows.tolist(), at, strict=True):
            final_obs[row] = batch[i].copy() if plain else row_of(self.single_observation_space, batch, i)
        final_info: dict[str, Any] = {}
        if info:
            self._infos.fill(final_info, rows, info)
            self._infos.mask(final_info, rows)
        finished = np.zeros(self.num_envs, np.bool_)
        finished[rows] = True
        masks = {"_final_obs": finished, "_final_info": finished.copy()}
        return {"final_obs": final_obs, "final_info": final_info} | masks

    def _shown(self, rows: np.ndarray) -> tuple[Any, Any, dict[str, Any]]:
        """Observations, where these rows stand among them, and their infos.

        Where states are plain numbers, to look at all rows costs less than to gather the states of some.
        """
        if self._layout.flat:
            ((tile, parts, info), *others) = self._rules.look()
            if isinstance(parts, np.ndarray) and not others:
                batch = self._pack.fill(None, tile, parts, self.num_envs)
                return batch, rows.tolist(), {key: value.take(rows) for key, value in info.items()}
        state = self._layout.state(self._rules.blocks, rows)
        parts, info = self._layout.look(self._world, np, self._params, state)
        return self._pack.fill(None, slice(None), parts, len(rows)), range(len(rows)), info

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """For each row a generator that will draw what the row draws next; using it does not move the row."""
        self._need_start("np_random")
        return tuple(self._draws.generator(row) for row in range(self.num_envs))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each row's generator."""
        self._need_start("np_random_seed")
        return tuple(self._seeds)

    def _need_start(self, wanted: str) -> None:
        if not self._started:
            raise ResetNeeded(f"call reset() before {wanted}")

    def get_state(self) -> Snapshot:
        """The present states of all rows, leaves of shape (..., num_envs), and their counters; a copy to look at."""
        self._need_start("get_state()")
        state = self._layout.state(self._rules.blocks)
        copied = type(state)(*(np.array(leaf) for leaf in state))
        finished = np.isin(np.arange(self.num_envs), self._finished_rows)
        counters = (self._now - self._began, self._returns.copy(), finished)
        return Snapshot(copied, *counters, self.observation_space)  # type: ignore[arg-type]

    def render(self) -> tuple[Any, ...] | None:
        """One picture a row, of its own memory, as the render mode wants it."""
        self._need_start("render()")
        if self.render_mode is None:
            gym.logger.warn("render() without a render mode: choose one in gymnasium.make_vec(id, render_mode=...)")
            return None
        return tuple(self._picture(row) for row in range(self.num_envs))

    def _picture(self, row: int) -> Any:
        state = self._layout.state(self._rules.blocks, row)
        if self.render_mode == "ansi":
            return self._world.ansi(self._params, state)  # type: ignore[misc]
        if self._canvas is None:
            self._canvas = world_canvas(self)
        counters = {"steps": int(self._now - self._began[row]), "episode_return": float(self._returns[row])}
        return self._canvas.frame(self._world.draw, self._params, state, row=row, **counters)

    def close_extras(self, **kwargs: Any) -> None:
        """Gives the memory of the pictures back."""
        if self._canvas is not None:
            self._canvas.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but what `_build` makes anew, and what it cannot know."""
        kept = {name: value for name, value in vars(self).items() if name not in _BUILT}
        return {"kept": kept, "blocks": self._rules.blocks, "draws": self._draws.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Builds the world from its name and arguments."""
        vars(self).update(state["kept"])
        self._build()
        self._draws.set_state(state["draws"])
        for block, kept in zip(self._rules.blocks, state["blocks"], strict=True):
            block[...] = kept
