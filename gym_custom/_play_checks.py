"""Plays a world's rules in NumPy, a batch at a time, and looks at every value that comes out.

A tape of steps is recorded from random and stubborn play (and from the caller's states and policy), then read again:
in reverse order, in other batches, row by row. All arrays that the rules get are read-only, and every division by zero
is an error, so that the first fault of each kind ends the reading with one sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom.observations import ObservationPacker
from gym_custom.single import Snapshot
from gym_custom.state_layout import cast_leaf
from gym_custom.world import World, plain_params

ROWS = 11
STEPS = 200


class Fault(Exception):
    """One fault of a world, as a sentence."""


class Step(NamedTuple):
    """One step of all rows; leaves, actions and draws have the rows last."""

    state: Any
    action: np.ndarray
    u: np.ndarray | None
    next_state: Any
    terminated: np.ndarray  # (N,), bool


class Rules:
    """A world's rules as the NumPy drivers call them, but strict.

    Args:
        world: whose rules to call.
    """

    def __init__(self, world: World):
        self.world = world
        self.params = plain_params(world.params)
        self.packer = ObservationPacker(world.observation_space)

    def call(self, role: str, *arguments: Any) -> Any:
        """The result of one rule on read-only arguments.

        Raises:
            Fault: the rule raised, wrote into an argument, or divided by zero.
        """
        function = getattr(self.world, role)
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                return function(np, self.params, *(_frozen(argument) for argument in arguments))
        except FloatingPointError as error:
            raise Fault(f"{role}: {error}{self._culprit(role, arguments)}; rules are defined for every state") from None
        except Exception as error:
            written = isinstance(error, ValueError) and "read-only" in str(error)
            detail = "it writes into an argument in place" if written else f"{type(error).__name__}: {error}"
            raise Fault(f"{role}: {detail}") from error

    def _culprit(self, role: str, arguments: Sequence[Any]) -> str:
        """The first row on which the rule fails by itself, in words."""
        for row in range(rows_of(arguments[0])):
            alone = [take(argument, [row]) for argument in arguments]
            try:
                with np.errstate(divide="raise", over="raise", invalid="raise"):
                    getattr(self.world, role)(np, self.params, *alone)
            except FloatingPointError:
                return f" at {describe(alone[0])}"
        return ""

    def start(self, u: np.ndarray) -> Any:
        """Initial states from uniforms (reset_draws, N), as a driver keeps them."""
        return self.kept("initial_state", self.call("initial_state", u), u.shape[1])

    def next(self, state: Any, action: np.ndarray, u: np.ndarray | None) -> Any:
        """The next state, as a driver keeps it."""
        moved = self.kept("transition", self.call("transition", state, action, u), rows_of(state))
        if type(moved) is not type(state):
            raise Fault(f"transition returns {type(moved).__name__}, initial_state {type(state).__name__}")
        for name, new, old in zip(_names(state), moved, state, strict=True):
            if new.dtype != old.dtype:
                raise Fault(f"transition turns the leaf {name} from {old.dtype} into {new.dtype}")
        return moved

    def kept(self, role: str, state: Any, count: int) -> Any:
        """A rule's state with every leaf an array in the world's dtype and the rows last."""
        if not (isinstance(state, tuple) and hasattr(state, "_fields")):
            raise Fault(f"{role} returns {type(state).__name__}; a state is a NamedTuple of its own class")
        leaves = []
        for name, leaf in zip(_names(state), state, strict=True):
            leaf = np.asarray(cast_leaf(leaf, self.world.dtype))
            leaf = np.full(count, leaf) if leaf.ndim == 0 else leaf
            if leaf.shape[-1] != count:
                raise Fault(f"{role}: leaf {name} has shape {leaf.shape}; the last axis must be the {count} rows")
            leaves.append(leaf)
        return type(state)(*leaves)

    def result(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Reward and termination of a step, each (N,)."""
        count = rows_of(step.state)
        reward, terminated = map(np.asarray, self.call("outcome", step.state, step.action, step.next_state))
        if terminated.dtype != np.bool_:
            raise Fault(f"outcome: terminated is {terminated.dtype}, it must be bool")
        for name, value in (("reward", reward), ("terminated", terminated)):
            if value.shape not in ((), (count,)):
                raise Fault(f"outcome: {name} has shape {value.shape} for {count} rows; it must be ({count},)")
        if not np.isfinite(reward).all():
            raise Fault(f"outcome: a reward is {reward[~np.isfinite(reward)][0]}")
        return np.broadcast_to(reward, count), np.broadcast_to(terminated, count)


def rows_of(state: Any) -> int:
    """Number of rows of a state, of actions or of draws."""
    return int(np.shape(state[0] if isinstance(state, tuple) else state)[-1])


def take(value: Any, rows: Any) -> Any:
    """Some rows, or with an integer one row without batch axis, of a state or an array."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return type(value)(*(take(leaf, rows) for leaf in value))
    return value[..., rows]


def describe(state: Any) -> str:
    """One row of a state in one line."""
    row = state if np.ndim(state[0]) == 0 else take(state, 0)
    parts = (
        f"{name}={np.array2string(np.asarray(leaf), precision=4)}" for name, leaf in zip(_names(row), row, strict=True)
    )
    return f"{type(row).__name__}({', '.join(parts)})"


def _names(state: Any) -> Sequence[str]:
    return getattr(state, "_fields", [str(i) for i in range(len(state))])


def _frozen(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_frozen, value)) if hasattr(value, "_fields") else tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


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


def observation(rules: Rules, row: Any) -> Any:
    """The observation of one row, as the single env gives it."""
    parts, space = rules.call("observe", row), rules.world.observation_space
    sizes = [int(np.size(part)) for part in parts]
    if sum(sizes) != _numbers(space):
        raise Fault(f"observe: parts of sizes {sizes} do not fill {space}, which takes {_numbers(space)} numbers")
    with np.errstate(all="ignore"):
        return rules.packer.single(parts)


def _numbers(space: spaces.Space) -> int:
    """How many numbers an observation of a space holds."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return sum(map(_numbers, space.values() if isinstance(space, spaces.Dict) else space))
    return int(np.prod(space.shape or ()))


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
    for check in (_observations, _infos, _same_again, _any_batch, _row_alone, _keeps_dtype, _reset_without_options):
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
        for key, value in found.items():
            _check_entry(rules, key, np.asarray(value), rows_of(state))


def _check_entry(rules: Rules, key: str, value: np.ndarray, count: int) -> None:
    if value.dtype.kind not in "fiub" or value.shape not in ((), (count,)):
        raise Fault(f"info[{key!r}] is {value.dtype} of shape {value.shape}; it must be a number a row")
    if key in rules.world.labels and not (value.astype(int) < len(rules.world.labels[key])).all():
        raise Fault(f"info[{key!r}] is {value.max()}, but there are only {len(rules.world.labels[key])} labels")


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
                raise Fault(
                    f"{role} gives another result for the same input when it is called again: it keeps a memory or "
                    "draws random numbers of its own"
                )


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
                raise Fault(
                    f"{role} gives other bits for a row {where} than in the batch: rows are not independent, or "
                    "objects are added up by sum, mean, dot or @ (write the additions out)"
                )


def _keeps_dtype(rules: Rules, tape: list[Step]) -> None:
    dtype = np.dtype(rules.world.dtype)
    if dtype.kind != "f" or dtype == np.float64:
        return
    step = tape[0]
    u = None if step.u is None else np.minimum(step.u.astype(dtype), np.nextafter(dtype.type(1), dtype.type(0)))
    moved = rules.call("transition", step.state, step.action, u)
    for name, leaf in zip(_names(moved), moved, strict=True):
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
