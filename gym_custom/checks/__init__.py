"""`check_world`: the contract that the drivers rely on, as a function for worlds of one's own."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.checks.drivers import drawing, gymnasium_checker, jax_agrees, same_tree, vector_equals_sync
from gym_custom.checks.play import play_findings
from gym_custom.checks.source import source_findings
from gym_custom.checks.strict_rules import Fault, Rules
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
    in each autoreset mode, some steps in JAX (where it is installed) against NumPy's, and drawing, which must leave
    everything as it was.

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
    findings = [*source_findings(world, _records(world)), *play_findings(world, states, policy), *drawing(world)]
    if generators != _global_generators():
        findings.append("the rules or the picture draw from a global random generator; randomness comes through u only")
    if not same_tree(params, world.params):
        findings.append("the rules or the picture change params, which many environments share")
    if not findings:  # a faulty rule would only be reported again by each driver
        for check in (gymnasium_checker, vector_equals_sync, jax_agrees):
            findings += check(world)
    _refuse(findings)


def _refuse(findings: Sequence[str]) -> None:
    if findings:
        raise WorldCheckError(list(dict.fromkeys(findings)))


def _declarations(world: World) -> Iterator[str]:
    """What is wrong with the spaces and counts, before anything is called."""
    if not isinstance(world.action_space, spaces.Discrete | spaces.Box):
        yield f"the action space must be a Discrete or a Box, not {world.action_space}"
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
