"""The drivers against each other and against Gymnasium's: single and vector env, JAX, pictures."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from gym_custom.checks.play import short_tape
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World


def gymnasium_checker(world: World) -> Iterator[str]:
    """Gymnasium's ``check_env``; its remark on infinite bounds is no fault."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(SingleEnv(world=world), skip_render_check=True)
        except Exception as error:
            yield f"Gymnasium's check_env: {error}"
    for warning in caught:
        if "infinity" not in str(warning.message):
            yield f"Gymnasium's check_env warns: {warning.message}"


def vector_equals_sync(world: World) -> Iterator[str]:
    """The vector env against Gymnasium's ``SyncVectorEnv`` of the single one, to the last bit."""
    for mode in AutoresetMode:
        ours = BatchEnv(num_envs=3, world=world, max_episode_steps=20, autoreset_mode=mode)
        theirs = SyncVectorEnv([lambda: TimeLimit(SingleEnv(world=world), 20)] * 3, autoreset_mode=mode)
        ours.action_space.seed(0)
        pairs = [(ours.reset(seed=0), theirs.reset(seed=0))]
        for step in range(70):
            if not same_tree(*pairs[-1]):
                yield f"the vector env differs from SyncVectorEnv of the single env, {mode.value}, step {step}"
                break
            pairs.append(_step_both(ours, theirs, mode, pairs[-1][0]))


def _step_both(ours: Any, theirs: Any, mode: AutoresetMode, last: tuple) -> tuple[Any, Any]:
    finished = last[2] | last[3] if len(last) == 5 else np.zeros(ours.num_envs, np.bool_)
    if mode is AutoresetMode.DISABLED and finished.any():
        masks = [{"reset_mask": finished.copy()} for _ in range(2)]
        return ours.reset(options=masks[0]), theirs.reset(options=masks[1])
    actions = ours.action_space.sample()
    return ours.step(actions), theirs.step(actions)


def jax_agrees(world: World) -> Iterator[str]:
    """JAX must be able to trace the rules, parameters included, and come to NumPy's states; left out without JAX."""
    if importlib.util.find_spec("jax") is None:
        return
    from gym_custom import functional

    env, tape = functional.JaxEnv(world, autoreset=False), short_tape(world)
    step = functional.compiled_step(env)
    for moment in tape[::10]:
        u = np.full((env.num_draws, len(moment.terminated)), 0.5)
        u[: world.step_draws] = moment.u if moment.u is not None else 0.5
        action = moment.action.astype(world.action_space.dtype)
        try:
            found = step(u, moment.state, action, env.params)
        except Exception as error:
            yield f"JAX cannot trace the rules: {type(error).__name__}: {str(error).splitlines()[0]}"
            return
        if (leaf := _unlike(found, moment.next_state)) is not None:
            yield f"transition comes to another {leaf} in JAX than in NumPy; JAX counts in 32 bits and clamps indices"
            return


def _unlike(found: Any, expected: Any) -> str | None:
    """The first leaf in which more than a fifth of the rows differ by more than float32 explains."""
    for name, new, old in zip(expected._fields, found, expected, strict=True):
        close = np.isclose(np.asarray(new), old, rtol=1e-3, atol=1e-3, equal_nan=True)
        if close.size and close.all(axis=tuple(range(close.ndim - 1))).mean() < 0.8:
            return str(name)
    return None


def drawing(world: World) -> Iterator[str]:
    """Pictures that leave state and play as they were, two of one state alike."""
    for mode, rule in (("rgb_array", world.draw), ("ansi", world.ansi)):
        if rule is not None:
            try:
                yield from _drawn(world, mode)
            except DependencyNotInstalled:
                continue
            except Exception as error:
                yield f"{'draw' if mode == 'rgb_array' else 'ansi'}: {type(error).__name__}: {error}"


def _drawn(world: World, mode: str) -> Iterator[str]:
    name = "draw" if mode == "rgb_array" else mode
    env, unseen = SingleEnv(world=world, render_mode=mode), SingleEnv(world=world)
    env.action_space.seed(0)
    result: tuple = env.reset(seed=0)
    expected: tuple = unseen.reset(seed=0)
    for _ in range(12):
        before = env.get_state()
        picture, again = env.render(), env.render()
        if not same_tree(before.state, env.get_state().state):
            yield f"{name} changes the state"
            return
        if not same_tree(picture, again):
            yield f"{name} makes two different pictures of one state"
        if not same_tree(result, expected):
            yield f"{name} changes what happens next"
            return
        if len(result) == 5 and result[2]:
            result, expected = env.reset(), unseen.reset()
        action = env.action_space.sample()
        result, expected = env.step(action), unseen.step(action)
    env.close()


def same_tree(x: Any, y: Any) -> bool:
    """Equal to the last bit through dicts, tuples and arrays; NaN equals NaN."""
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(same_tree(x[key], y[key]) for key in x)
    if isinstance(x, tuple | list):
        return len(x) == len(y) and all(map(same_tree, x, y))
    a, b = np.asarray(x), np.asarray(y)
    if a.dtype == object:
        return a.shape == b.shape and all(p is q or same_tree(p, q) for p, q in zip(a.flat, b.flat, strict=True))
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
