"""A Gymnasium vector env as a stable-baselines3 VecEnv: one call steps all rows, no Python loop over envs."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn


class NativeVecEnv(VecEnv):
    """Adaptor from ``gymnasium.vector.VectorEnv`` in SAME_STEP mode to stable-baselines3's ``VecEnv``.

    Equal, value for value, to SB3's ``DummyVecEnv`` over the same rows: float32 rewards, one info dict a row with
    ``TimeLimit.truncated`` and, at an episode's end, ``terminal_observation``; ``reset_infos`` holds the reset's.

    The rows of a native vector env share one object. So an attribute has one value for all rows, and
    :meth:`env_method` calls the vector env's method once and hands its result to each row asked for.

    Args:
        env: the vector env; its ``metadata["autoreset_mode"]`` must be ``AutoresetMode.SAME_STEP``, because SB3
            expects the first observation of the next episode in the step that ends one.

    Raises:
        ValueError: if the vector env resets in another mode.
    """

    def __init__(self, env: VectorEnv) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"NativeVecEnv needs a vector env in AutoresetMode.SAME_STEP, got {mode}.")
        self.env = env
        self.spec = env.spec
        self._actions: np.ndarray | None = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> VecEnvObs:
        """Reset all rows with the seeds and options given since the last reset, which are used once."""
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        obs, infos = self.env.reset(seed=seeds, options=self._shared_options())  # type: ignore[arg-type]
        self.reset_infos = split_infos(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return obs

    def _shared_options(self) -> dict[str, Any] | None:
        first = self._options[0]
        if any(options != first for options in self._options):
            raise ValueError("The rows of a native vector env share the reset options: give one dict for all rows.")
        return dict(first) if first else None

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions (num_envs, ...) for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step all rows.

        Returns:
            Observations (num_envs, ...), rewards (num_envs,) float32, dones (num_envs,) bool, a list of info dicts.
        """
        obs, rewards, terminated, truncated, batch = self.env.step(self._actions)
        final_obs, final_infos = batch.pop("final_obs", None), batch.pop("final_info", {})
        batch.pop("_final_obs", None), batch.pop("_final_info", None)
        infos = split_infos(batch, self.num_envs)
        dones = terminated | truncated
        for row in dones.nonzero()[0].tolist():
            self.reset_infos[row] = infos[row]
            infos[row] = info_of_row(final_infos, row)
            infos[row]["terminal_observation"] = final_obs[row]
        for info in infos:
            info["TimeLimit.truncated"] = False
        for row in (truncated & ~terminated).nonzero()[0].tolist():
            infos[row]["TimeLimit.truncated"] = True
        return obs, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Close the vector env."""
        self.env.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """One RGB frame (H, W, 3) a row."""
        return list(self.env.render() or [None] * self.num_envs)  # type: ignore[arg-type]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute's value for each row asked for."""
        rows = list(self._get_indices(indices))
        if hasattr(self.env, "get_attr"):
            values = self.env.get_attr(attr_name)
            return [values[row] for row in rows]
        return [getattr(self.env, attr_name)] * len(rows)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all rows.

        Raises:
            ValueError: if only some rows are asked for.
        """
        if sorted(self._get_indices(indices)) != list(range(self.num_envs)):
            raise ValueError(f"The rows of a native vector env share the attribute {attr_name!r}: set it for all rows.")
        if hasattr(self.env, "set_attr"):
            self.env.set_attr(attr_name, [value] * self.num_envs)
        else:
            setattr(self.env, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any):
        """Call a method and give its result for each row asked for."""
        rows = list(self._get_indices(indices))
        if hasattr(self.env, "call"):
            results = self.env.call(method_name, *method_args, **method_kwargs)
            return [results[row] for row in rows]
        return [getattr(self.env, method_name)(*method_args, **method_kwargs)] * len(rows)

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Whether each row is wrapped: never, a native row has no wrappers."""
        return [False for _ in self._get_indices(indices)]


def split_infos(infos: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """One dict a row from a vector env's infos: arrays (num_envs, ...) and masks ``_key`` of who has the key.

    Numbers become Python's, as a single env returns them; nested dicts are split likewise.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, values in _entries(infos):
        values = split_infos(values, num_envs) if isinstance(values, dict) else _plain(values)
        present = infos.get(f"_{key}")
        if present is None or present.all():
            for row, value in zip(rows, values, strict=True):
                row[key] = value
        else:
            for index in present.nonzero()[0].tolist():
                rows[index][key] = values[index]
    return rows


def info_of_row(infos: dict[str, Any], row: int) -> dict[str, Any]:
    """``split_infos(infos, num_envs)[row]`` without the other rows."""
    return {
        key: info_of_row(values, row) if isinstance(values, dict) else _number(values[row])
        for key, values in _entries(infos)
        if f"_{key}" not in infos or infos[f"_{key}"][row]
    }


def _entries(infos: dict[str, Any]) -> list[tuple[str, Any]]:
    """The entries that are no masks of others."""
    return [(key, values) for key, values in infos.items() if not (key.startswith("_") and key[1:] in infos)]


def _plain(values: np.ndarray) -> Any:
    """Arrays (N,) as lists of Python's numbers; longer ones stay."""
    return values.tolist() if values.ndim == 1 else values


def _number(value: Any) -> Any:
    """NumPy's numbers as Python's; anything else stays."""
    return value.item() if isinstance(value, np.generic) else value


class NativeMonitor(VecMonitor):
    """SB3's ``VecMonitor``, looking only at rows whose episode has ended and summing in float64 as ``Monitor`` does."""

    def reset(self) -> VecEnvObs:
        """Reset all rows; their episodes begin anew."""
        obs = super().reset()
        self.episode_returns = np.zeros(self.num_envs)  # type: ignore[assignment]
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        """Step all rows; ended ones carry ``info["episode"]`` with return r, length l and seconds t."""
        obs, rewards, dones, infos = self.venv.step_wait()
        self.episode_returns += rewards
        self.episode_lengths += 1
        for row in dones.nonzero()[0].tolist():
            episode = {
                "r": round(float(self.episode_returns[row]), 6),
                "l": int(self.episode_lengths[row]),
                "t": round(time.time() - self.t_start, 6),
            }
            episode.update((key, infos[row][key]) for key in self.info_keywords)
            infos[row]["episode"] = episode
            self.episode_count += 1
            self.episode_returns[row], self.episode_lengths[row] = 0.0, 0
            if self.results_writer:
                self.results_writer.write_row(episode)
        return obs, rewards, dones, infos


def make_vec_env(
    env_id: str | EnvSpec,
    n_envs: int = 1,
    seed: int | None = None,
    *,
    monitor_dir: str | None = None,
    env_kwargs: dict[str, Any] | None = None,
) -> NativeMonitor:
    """The counterpart of SB3's ``make_vec_env`` on the env's own vector implementation.

    Where an id has no vector entry point, or one that cannot reset in the same step, its single envs are stepped by
    Gymnasium's ``SyncVectorEnv`` instead: slower, with the same values.

    Args:
        env_id: a registered id or its spec.
        n_envs: number of rows.
        seed: row i starts from ``seed + i`` at the first reset, as in SB3; None for fresh entropy.
        monitor_dir: where ``monitor.csv`` (episode return r, length l, seconds t) is written; None for no file.
        env_kwargs: constructor arguments; ``render_mode`` is ``"rgb_array"`` unless given.

    Returns:
        A monitor (a ``VecMonitor``) around a :class:`NativeVecEnv`, ready for any SB3 algorithm, ``VecNormalize`` and
        ``evaluate_policy``.
    """
    kwargs = {"render_mode": "rgb_array", **(env_kwargs or {})}
    venv = NativeVecEnv(same_step_env(env_id, n_envs, kwargs))
    venv.seed(seed)
    if monitor_dir is not None:
        os.makedirs(monitor_dir, exist_ok=True)
    return NativeMonitor(venv, monitor_dir)


def same_step_env(env_id: str | EnvSpec, n_envs: int, kwargs: dict[str, Any] | None = None) -> VectorEnv:
    """The id's own vector env in SAME_STEP mode, or single envs in a ``SyncVectorEnv`` where it has none.

    Args:
        env_id: a registered id or its spec.
        n_envs: number of rows.
        kwargs: constructor arguments.
    """
    spec = gym.spec(env_id) if isinstance(env_id, str) else env_id
    kwargs = kwargs or {}
    if _resets_in_the_same_step(spec):
        return gym.make_vec(env_id, n_envs, "vector_entry_point", autoreset_mode="SameStep", **kwargs)
    return gym.make_vec(env_id, n_envs, "sync", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP}, **kwargs)


def _resets_in_the_same_step(spec: EnvSpec) -> bool:
    """Whether the id's vector env lets the caller choose Gymnasium's autoreset mode."""
    entry_point = spec.vector_entry_point
    if entry_point is None:
        return False
    creator = entry_point if callable(entry_point) else load_env_creator(entry_point)
    parameters = inspect.signature(creator).parameters
    return "autoreset_mode" in parameters
