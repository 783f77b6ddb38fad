"""Plays a world's rules in NumPy, a batch at a time, and looks at every value that comes out.

A tape of steps is recorded from random and stubborn play (and from the caller's states and policy), then read again:
in reverse order, in other batches, row by row. All arrays that the rules get are read-only, and every division by zero
is an error, so that the first fault of each kind ends the reading with one sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.checks.strict_rules import Fault, Rules, Step, describe, names_of, observation, rows_of, take
from gym_custom.drivers.state_layout import cast_leaf
from gym_custom.single import Snapshot
from gym_custom.world import World

AGAIN = (
    "{} gives another result for the same input when it is called again: it keeps a memory or draws random numbers "
    "of its own"
)
ROW = (
    "{} gives other bits for a row {} than in the batch: rows are not independent, or objects are added up by sum, "
    "mean, dot or @ (write the additions out)"
)
ROWS = 11
STEPS = 200


# --- recording


def record(rules: Rules, states: Sequence[Any] | None, policy: Callable[[Any], Any] | None) -> list[Step]:
    """Steps of random and stubborn play; then from the given states, and with the given policy.

    Finished rows take one more step, as a NEXT_STEP driver computes it, before they start over.
    """
    rng = np.random.default_rng(0)
    tape = _play(rules, rng, rules.start(_reset_draws(rules, rng)), STEPS, None)
    if states is not None and len(states):
        tape += _play(rules, rng, _stacked(rules, states), STEPS // 10, None)
    if policy is not None:
        tape += _play(rules, rng, rules.start(_reset_draws(rules, rng)), STEPS, policy)
    return tape


def short_tape(world: World) -> list[Step]:
    """Some steps of random play, for comparisons that cost more."""
    rules, rng = Rules(world), np.random.default_rng(1)
    return _play(rules, rng, rules.start(_reset_draws(rules, rng)), STEPS // 5, None)


def _play(rules: Rules, rng: np.random.Generator, state: Any, steps: int, policy: Any) -> list[Step]:
    tape: list[Step] = []
    count = rows_of(state)
    finished = np.zeros(count, np.bool_)
    action = None
    for _ in range(steps):
        action = _random_actions(rules, rng, count, action) if policy is None else _chosen(rules, state, policy)
        u = _extreme(rng.random((rules.world.step_draws, count))) if rules.world.step_draws else None
        step = Step(state, action, u, rules.next(state, action, u), finished)
        step = step._replace(terminated=rules.result(step)[1])
        tape.append(step)
        fresh = rules.start(_reset_draws(rules, rng, count))
        state = type(state)(*(np.where(finished, new, old) for new, old in zip(fresh, step.next_state, strict=True)))
        finished = step.terminated & ~finished
    return tape


def _reset_draws(rules: Rules, rng: np.random.Generator, count: int = ROWS) -> np.ndarray:
    return _extreme(rng.random((rules.world.reset_draws, count)))


def _extreme(u: np.ndarray) -> np.ndarray:
    """Uniforms whose first row of the batch is the smallest possible and whose second is the largest."""
    u[:, :1], u[:, 1:2] = 0.0, np.nextafter(1.0, 0.0)
    return u


def _random_actions(rules: Rules, rng: np.random.Generator, count: int, before: np.ndarray | None) -> np.ndarray:
    """Actions (..., N): even rows draw anew, odd rows keep their last one nine times in ten."""
    space = rules.world.action_space
    if isinstance(space, spaces.Discrete):
        drawn = rng.integers(space.start, space.start + space.n, count)
    else:
        assert isinstance(space, spaces.Box)
        shape = (*space.shape, count)
        low, high = np.maximum(space.low, -1e3)[..., None], np.minimum(space.high, 1e3)[..., None]
        drawn = np.where(
            rng.random(shape) < 0.2, np.where(rng.random(shape) < 0.5, low, high), rng.uniform(low, high, shape)
        )
    drawn = drawn.astype(rules.world.dtype)
    stubborn = (np.arange(count) % 2 == 1) & (rng.random(count) < 0.9)
    return drawn if before is None else np.where(stubborn, before, drawn)


def _chosen(rules: Rules, state: Any, policy: Callable[[Any], Any]) -> np.ndarray:
    actions = [np.asarray(policy(observation(rules, take(state, row)))) for row in range(rows_of(state))]
    return np.stack(actions, axis=-1).astype(rules.world.dtype)


def _stacked(rules: Rules, states: Sequence[Any]) -> Any:
    """Single states as one batch of at least ROWS rows, given ones repeated."""
    plain = [state.state if isinstance(state, Snapshot) else state for state in states]
    plain = [plain[i % len(plain)] for i in range(max(ROWS, len(plain)))]
    try:
        leaves = [np.stack([np.asarray(leaf) for leaf in column], axis=-1) for column in zip(*plain, strict=True)]
    except ValueError as error:
        raise Fault(f"states: {error}; give single states without batch axis, all of the same shapes") from None
    return rules.kept("states", type(plain[0])(*leaves), len(plain))


# --- reading


def play_findings(world: World, states: Sequence[Any] | None, policy: Callable[[Any], Any] | None) -> Iterator[str]:
    """Every fault that playing shows, at most one of each kind."""
    rules = Rules(world)
    try:
        tape = record(rules, states, policy)
    except Fault as fault:
        yield str(fault)
        return
    for check in (
        _starts,
        _observations,
        _infos,
        _same_again,
        _any_batch,
        _row_alone,
        _keeps_dtype,
        _reset_without_options,
    ):
        with _caught() as caught:
            check(rules, tape)
        yield from caught


@contextlib.contextmanager
def _caught() -> Iterator[list[str]]:
    findings: list[str] = []
    try:
        yield findings
    except Fault as fault:
        findings.append(str(fault))


def _starts(rules: Rules, tape: list[Step]) -> None:
    """The same draws must give the same starts: again, in another batch, and for one row alone."""
    u = _reset_draws(rules, np.random.default_rng(2))
    first = rules.start(u)
    if not _equal(first, rules.start(u)):
        raise Fault(AGAIN.format("initial_state"))
    few = np.arange(ROWS)[::-2]
    if not _equal(take(first, few), rules.start(u[:, few])):
        raise Fault(ROW.format("initial_state", "in another batch"))
    alone = rules.call("initial_state", u[:, 3])
    for name, leaf, kept in zip(names_of(first), alone, take(first, 3), strict=True):
        if not _equal(cast_leaf(leaf, rules.world.dtype), kept):
            raise Fault(ROW.format(f"initial_state ({name})", "alone"))


def _observations(rules: Rules, tape: list[Step]) -> None:
    for state in [tape[0].state, *(step.next_state for step in tape)]:
        for row in range(rows_of(state)):
            seen = observation(rules, take(state, row))
            if not rules.world.observation_space.contains(seen):
                raise Fault(
                    f"observe: {seen} is outside {rules.world.observation_space} at {describe(take(state, row))}"
                )


def _infos(rules: Rules, tape: list[Step]) -> None:
    if rules.world.info is None:
        return
    keys = None
    for state in [tape[0].state, *(step.next_state for step in tape)]:
        found = rules.call("info", state)
        keys = keys if keys is not None else list(found)
        if list(found) != keys:
            raise Fault(
                f"info: its keys come and go: {sorted(keys)} at the start, {sorted(found)} at {describe(state)}"
            )
        if unknown := sorted(set(rules.world.labels) - set(found)):
            raise Fault(f"labels name {unknown}, but info has only {sorted(found)}")
        for key, value in found.items():
            _check_entry(rules, key, np.asarray(value), rows_of(state))


def _check_entry(rules: Rules, key: str, value: np.ndarray, count: int) -> None:
    if value.dtype.kind not in "fiub" or value.shape not in ((), (count,)):
        raise Fault(f"info[{key!r}] is {value.dtype} of shape {value.shape}; it must be a number a row")
    labels = rules.world.labels.get(key)
    if labels is not None and not ((value >= 0) & (value < len(labels))).all():
        raise Fault(
            f"info[{key!r}] reaches from {value.min()} to {value.max()}, but there are only {len(labels)} labels"
        )


def _all_results(rules: Rules, step: Step) -> dict[str, Any]:
    moved = rules.call("transition", step.state, step.action, step.u)
    results = {"transition": rules.kept("transition", moved, rows_of(step.state)), "outcome": rules.result(step)}
    results["observe"] = tuple(rules.call("observe", step.state))
    if rules.world.info is not None:
        results["info"] = tuple(rules.call("info", step.state).values())
    return results


def _same_again(rules: Rules, tape: list[Step]) -> None:
    """The same inputs in reverse order must give the same bits."""
    first = [_all_results(rules, step) for step in tape]
    for step, expected in zip(reversed(tape), reversed(first), strict=True):
        for role, found in _all_results(rules, step).items():
            if not _equal(found, expected[role]):
                raise Fault(AGAIN.format(role))


def _any_batch(rules: Rules, tape: list[Step]) -> None:
    """Rows in another order and in a smaller batch must give the same bits."""
    for step in tape[::5]:
        rows = np.arange(rows_of(step.state))[::-2]
        _compare_rows(rules, step, rows, "in another batch")


def _row_alone(rules: Rules, tape: list[Step]) -> None:
    """A row without batch axis, as the single env and JAX's vmap have it, must give the same bits."""
    for at, step in enumerate(tape[::5]):
        _compare_rows(rules, step, at % rows_of(step.state), "alone")


def _compare_rows(rules: Rules, step: Step, rows: Any, where: str) -> None:
    part = Step(*(take(value, rows) for value in step))
    pairs = {
        "transition": ((part.state, part.action, part.u), (step.state, step.action, step.u)),
        "outcome": ((part.state, part.action, part.next_state), (step.state, step.action, step.next_state)),
        "observe": ((part.state,), (step.state,)),
    }
    for role, (few, all_rows) in pairs.items():
        found, expected = (rules.call(role, *arguments) for arguments in (few, all_rows))
        for new, old in zip(found, expected, strict=True):
            old = np.asarray(old)
            if not _equal(np.asarray(new), old[..., rows] if old.ndim else old):
                raise Fault(ROW.format(role, where))


def _keeps_dtype(rules: Rules, tape: list[Step]) -> None:
    dtype = np.dtype(rules.world.dtype)
    if dtype.kind != "f" or dtype == np.float64:
        return
    step = tape[0]
    u = None if step.u is None else np.minimum(step.u.astype(dtype), np.nextafter(dtype.type(1), dtype.type(0)))
    moved = rules.call("transition", step.state, step.action, u)
    for name, leaf in zip(names_of(moved), moved, strict=True):
        found = np.asarray(leaf).dtype
        if found.kind == "f" and found != dtype and np.ndim(leaf):
            raise Fault(
                f"transition promotes the leaf {name} of a {dtype} world to {found}; give where and products an "
                "operand of the state's dtype"
            )


def _reset_without_options(rules: Rules, tape: list[Step]) -> None:
    if rules.world.reset_with is None:
        return
    u = _reset_draws(rules, np.random.default_rng(1))
    with_none = rules.kept("reset_with", rules.call("reset_with", u, {}), ROWS)
    if not _equal(with_none, rules.start(u)):
        raise Fault("reset_with without options starts elsewhere than initial_state from the same draws")


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(_equal, x, y))
    return bool(np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind == "f"))
