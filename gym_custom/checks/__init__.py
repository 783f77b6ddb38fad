"""`check_world`: the contract that the drivers rely on, as a function for worlds of one's own."""

from __future__ import annotations

import copy
import importlib.util
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from gym_custom.checks.play import play_findings
from gym_custom.checks.source import source_findings
from gym_custom.checks.strict_rules import Fault, Rules
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World


class WorldCheckError(AssertionError):
    """A world breaks its contract.

    Attributes:
        findings: One sentence a fault.
    """

    def __init__(self, findings: Sequence[str]):
        self.findings = list(findings)
        count = "1 fault" if len(self.findings) == 1 else f"{len(self.findings)} faults"
        super().__init__(f"{count} in this world:\n" + "\n".join(f"- {finding}" for finding in self.findings))


def check_world(world: World, states: Sequence[Any] | None = None, policy: Callable[[Any], Any] | None = None) -> None:
    """Checks all that a world promises, and reports everything that it finds at once.

    Reads the source of the rules and of the functions that they call: modules other than math, typing and functools,
    branches on state, writes in place, sums along objects, selections by mask. Plays them with random and stubborn
    actions on read-only arrays, one step beyond each end: observations within the space, finite rewards, the same
    info keys, no division by zero, the same bits when asked again, in another order, in another batch and for one row
    alone. Then compares the drivers: Gymnasium's checker on the single env, the vector env against ``SyncVectorEnv``
    in each autoreset mode, drawing that leaves everything as it was, and, where JAX is installed, tracing.

    What it cannot find: faults in states that neither play nor ``states`` nor ``policy`` reaches and that no source
    shows; faults in other settings of ``make_world`` than the one given; a branch on a state value that hides behind
    ``getattr`` or a container; rules that are consistent but wrong. It compares with itself: that the physics is right,
    only an independent source can tell.

    Args:
        world: What ``make_world`` returns.
        states: Single states (without batch axis, or what ``env.unwrapped.get_state()`` returned) to play from too,
            such as those that random play never reaches.
        policy: ``observation -> action``, played too, from the usual start.

    Raises:
        WorldCheckError: With a sentence for each fault.
        TypeError: ``world`` is no `World`.
    """
    if not isinstance(world, World):
        raise TypeError(f"check_world takes a World, such as make_world() returns, not {world!r}")
    _refuse(list(_declarations(world)))
    params, generators = copy.deepcopy(world.params), _global_generators()
    findings = [*source_findings(world, _records(world)), *play_findings(world, states, policy), *_drawing(world)]
    if generators != _global_generators():
        findings.append("the rules or the picture draw from a global random generator; randomness comes through u only")
    if not same_tree(params, world.params):
        findings.append("the rules or the picture change params, which many environments share")
    if not findings:  # a faulty rule would only be reported again by each driver
        for check in (_gymnasium_checker, _vector_equals_sync, _jax_traces):
            findings += check(world)
    _refuse(findings)


def _refuse(findings: Sequence[str]) -> None:
    if findings:
        raise WorldCheckError(list(dict.fromkeys(findings)))


def _declarations(world: World) -> Iterator[str]:
    """What is wrong with the spaces and counts, before anything is called."""
    if not isinstance(world.action_space, spaces.Discrete | spaces.Box):
        yield f"the action space must be a Discrete or a Box, not {world.action_space}"
    for name in ("reset_draws", "step_draws"):
        count = getattr(world, name)
        if not isinstance(count, int) or count < 0:
            yield f"{name} must be a whole number of uniforms, not {count!r}"
    if world.max_step_draws is not None and world.max_step_draws < world.step_draws:
        yield f"max_step_draws ({world.max_step_draws}) must not be less than step_draws ({world.step_draws})"
    if world.labels and world.info is None:
        yield f"labels name {sorted(world.labels)}, but there is no info"


def _records(world: World) -> list[type]:
    """The classes of params and State, whose methods are read too."""
    try:
        rules = Rules(world)
        return [type(world.params), type(rules.start(np.full((world.reset_draws, 2), 0.5)))]
    except Fault:
        return [type(world.params)]


def _global_generators() -> tuple[Any, ...]:
    return repr(np.random.get_state(legacy=False)), random.getstate()


def _gymnasium_checker(world: World) -> Iterator[str]:
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


def _vector_equals_sync(world: World) -> Iterator[str]:
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


def _jax_traces(world: World) -> Iterator[str]:
    """Whether JAX can trace the rules, parameters included; without JAX this is left out."""
    if importlib.util.find_spec("jax") is None:
        return
    from gym_custom import functional

    env = functional.JaxEnv(world)
    shape = functional.jax.eval_shape
    try:
        state, _ = shape(env.reset_from, np.zeros(env.num_reset_draws, np.float32), env.params)
        action = np.asarray(world.action_space.sample())
        shape(env.step_from, np.zeros(env.num_draws, np.float32), state, action, env.params)
    except Exception as error:
        yield f"JAX cannot trace the rules: {type(error).__name__}: {str(error).splitlines()[0]}"


def _drawing(world: World) -> Iterator[str]:
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
