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

_FINAL = ("final_obs", "final_info", "_final_obs", "_final_info")
"""What Gymnasium's vector envs say of ended episodes, beside the infos of those that begin."""


class NativeVecEnv(VecEnv):
    """Adaptor from ``gymnasium.vector.VectorEnv`` in SAME_STEP mode to stable-baselines3's ``VecEnv``.

    Equal, value for value, to SB3's ``DummyVecEnv`` over the same rows: float32 rewards, one info dict a row with
    ``TimeLimit.truncated`` and, at an episode's end, ``terminal_observation``; ``reset_infos`` holds the reset's.

    The rows of a native vector env share one object. So an attribute has one value for all rows, and
    :meth:`env_method` calls the vector env's method once and hands its result to each row asked for.

    Attributes:
        exact_rewards: (num_envs,), of the last step as the vector env gave them, in float64.
        ended: rows whose episode the last step ended.

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
        self.exact_rewards = np.zeros(env.num_envs)
        self.ended: list[int] = []
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
        obs, self.exact_rewards, terminated, truncated, batch = self.env.step(self._actions)
        dones = terminated | truncated
        self.ended = dones.nonzero()[0].tolist()
        final_obs, final_infos, *_ = [batch.pop(key, None) for key in _FINAL] if self.ended else (None, None)
        infos = split_infos(batch, self.num_envs)
        if self.ended:
            self._hand_over(infos, final_obs, final_infos or {})
        for info in infos:
            info["TimeLimit.truncated"] = False
        for row in self.ended:
            infos[row]["TimeLimit.truncated"] = bool(truncated[row] and not terminated[row])
        return obs, self.exact_rewards.astype(np.float32), dones, infos

    def _hand_over(self, infos: list[dict[str, Any]], final_obs: Any, final_infos: dict[str, Any]) -> None:
        """Put the last infos of ended episodes in the place of those of the next, which are the resets'."""
        for row, info in zip(self.ended, split_infos(final_infos, self.num_envs, self.ended), strict=True):
            self.reset_infos[row], infos[row] = infos[row], info
            info["terminal_observation"] = final_obs[row]

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


def split_infos(infos: dict[str, Any], num_envs: int, rows: list[int] | None = None) -> list[dict[str, Any]]:
    """One dict a row from a vector env's infos: arrays (num_envs, ...) and masks ``_key`` of who has the key.

    Numbers become Python's, as a single env returns them; nested dicts are split likewise.

    Args:
        infos: of the vector env.
        num_envs: its number of rows.
        rows: those that are asked for; None for all.
    """
    everyone: dict[str, Any] = {}
    some: list[tuple[str, Any, list[int]]] = []
    for key, values in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue
        values = split_infos(values, num_envs, rows) if isinstance(values, dict) else _plain(_at(values, rows))
        present = _at(infos.get(f"_{key}"), rows)
        if present is None or present.all():
            everyone[key] = values
        else:
            some.append((key, values, present.nonzero()[0].tolist()))
    if everyone:
        split = [dict(zip(everyone, row, strict=True)) for row in zip(*everyone.values(), strict=True)]
    else:
        split = [{} for _ in range(num_envs if rows is None else len(rows))]
    for key, values, having in some:
        for index in having:
            split[index][key] = values[index]
    return split


def _at(values: Any, rows: list[int] | None) -> Any:
    return values if rows is None or values is None else values[rows]


def _plain(values: np.ndarray) -> Any:
    """Arrays (N,) as lists of Python's numbers; longer ones stay."""
    return values.tolist() if values.ndim == 1 else values


class NativeMonitor(VecMonitor):
    """SB3's ``VecMonitor``, looking only at rows whose episode has ended.

    Returns are sums of the env's own rewards in float64, as those of ``Monitor`` are, not of the float32 ones that
    algorithms get: these would be off in the sixth decimal after a few hundred steps.
    """

    venv: NativeVecEnv

    def reset(self) -> VecEnvObs:
        """Reset all rows; their episodes begin anew."""
        obs = super().reset()
        self.episode_returns = np.zeros(self.num_envs)  # type: ignore[assignment]
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        """Step all rows; ended ones carry ``info["episode"]`` with return r, length l and seconds t."""
        obs, rewards, dones, infos = self.venv.step_wait()
        self.episode_returns += self.venv.exact_rewards
        self.episode_lengths += 1
        if self.venv.ended:
            self._close_episodes(self.venv.ended, infos)
        return obs, rewards, dones, infos

    def _close_episodes(self, rows: list[int], infos: list[dict[str, Any]]) -> None:
        now, returns, lengths = round(time.time() - self.t_start, 6), self.episode_returns, self.episode_lengths
        self.episode_count += len(rows)
        for row in rows:
            episode = {"r": round(float(returns[row]), 6), "l": int(lengths[row]), "t": now}
            returns[row], lengths[row] = 0.0, 0
            for key in self.info_keywords:
                episode[key] = infos[row][key]
            infos[row]["episode"] = episode
            if self.results_writer:
                self.results_writer.write_row(episode)


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
