"""A world's rules, called as the NumPy drivers call them, but on read-only arrays and with errors for bad numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gym_custom.drivers.observations import ObservationPacker, numbers_in
from gym_custom.drivers.state_layout import cast_leaf
from gym_custom.world import World, plain_params


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
        for name, new, old in zip(names_of(state), moved, state, strict=True):
            if new.dtype != old.dtype:
                raise Fault(f"transition turns the leaf {name} from {old.dtype} into {new.dtype}")
        return moved

    def kept(self, role: str, state: Any, count: int) -> Any:
        """A rule's state with every leaf an array in the world's dtype and the rows last."""
        if not (isinstance(state, tuple) and hasattr(state, "_fields")):
            raise Fault(f"{role} returns {type(state).__name__}; a state is a NamedTuple of its own class")
        leaves = []
        for name, leaf in zip(names_of(state), state, strict=True):
            leaf = np.asarray(cast_leaf(leaf, self.world.dtype))
            leaf = np.full(count, leaf) if leaf.ndim == 0 else leaf
            if leaf.shape[-1] != count:
                raise Fault(f"{role}: leaf {name} has shape {leaf.shape}; the last axis must be the {count} rows")
            leaves.append(leaf)
        return type(state)(*leaves)

    def result(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Reward and termination of a step, each (N,)."""
        count = rows_of(step.state)
        values = self.call("outcome", step.state, step.action, step.next_state)
        if not isinstance(values, tuple) or len(values) != 2:
            what = f"{len(values)} values" if isinstance(values, tuple) else f"one {type(values).__name__}"
            raise Fault(f"outcome returns {what}; it must return two: reward, terminated")
        reward, terminated = map(np.asarray, values)
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
        f"{name}={np.array2string(np.asarray(leaf), precision=4)}"
        for name, leaf in zip(names_of(row), row, strict=True)
    )
    return f"{type(row).__name__}({', '.join(parts)})"


def names_of(state: Any) -> Sequence[str]:
    """The names of a state's leaves, numbers where it is a plain tuple."""
    return getattr(state, "_fields", [str(i) for i in range(len(state))])


def _frozen(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_frozen, value)) if hasattr(value, "_fields") else tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def observation(rules: Rules, row: Any) -> Any:
    """The observation of one row, as the single env gives it."""
    parts, space = rules.call("observe", row), rules.world.observation_space
    sizes = [int(np.size(part)) for part in parts]
    if sum(sizes) != numbers_in(space):
        raise Fault(f"observe: parts of sizes {sizes} do not fill {space}, which takes {numbers_in(space)} numbers")
    with np.errstate(all="ignore"):
        return rules.packer.single(parts)
