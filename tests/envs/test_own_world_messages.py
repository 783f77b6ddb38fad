"""What somebody reads whose own world has a slip: one sentence that names it, from every driver."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import worlds
from gymnasium import spaces

from gym_custom import World, check_world
from gym_custom.checks import WorldCheckError
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv

drivers = pytest.mark.parametrize("driver", [SingleEnv, lambda world: BatchEnv(3, world)], ids=["single", "vector"])


def changed(**parts: Any) -> World:
    return dataclasses.replace(worlds.make_balloon(), **parts)


def play(env: Any) -> None:
    env.reset(seed=0)
    env.step(env.action_space.sample() * 0)


def with_a_typo_in_params(role: str) -> World:
    rule = getattr(worlds.make_balloon(), role)

    def wrong(xp, params, *rest):
        return params.strenght, rule(xp, params, *rest)

    return changed(**{role: wrong})


@drivers
@pytest.mark.parametrize("role", ["initial_state", "transition", "outcome", "observe", "info"])
def test_a_typo_in_a_param_is_named_beside_those_that_there_are(driver, role):
    with pytest.raises(AttributeError, match=r"^the world's params have no 'strenght'; they have strength, reach$"):
        play(driver(with_a_typo_in_params(role)))


def test_check_world_names_it_too():
    with pytest.raises(WorldCheckError, match="the world's params have no 'strenght'; they have strength, reach"):
        check_world(with_a_typo_in_params("observe"))


@drivers
def test_a_typo_in_a_function_is_named(driver):
    def wrong(xp, params, state):
        return xp.clipp(state.place, -8.0, 8.0), state.place

    with pytest.raises(AttributeError, match=r"has no .*'clipp'"):
        play(driver(changed(observe=wrong)))


@drivers
@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"reset_draws": 1}, "initial_state asks for more uniforms than the world's reset_draws=1 promises"),
        ({"reset_draws": 0}, "initial_state asks for more uniforms than the world's reset_draws=0 promises"),
        ({"step_draws": 1}, "transition asks for more uniforms than the world's step_draws=1 promises"),
        ({"step_draws": 0}, "transition asks for more uniforms than the world's step_draws=0 promises"),
    ],
)
def test_rules_that_ask_for_more_uniforms_than_promised(driver, parts, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        driver(changed(**parts))


@drivers
@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"initial_state": lambda xp, p, u: (u[0], u[1])},
            r"initial_state must return the world's State, a",
        ),
        ({"transition": lambda xp, p, s, a, u: s.place}, r"transition must return the world's Balloon, not "),
        ({"transition": lambda xp, p, s, a, u: (s.place,)}, r"transition must return the world's Balloon, not \("),
        ({"outcome": lambda xp, p, s, a, n: s.place}, r"outcome must return two values, reward and terminated, not "),
        ({"observe": lambda xp, p, s: s.place}, r"observe must return a tuple of parts, not "),
        ({"observe": lambda xp, p, s: (s.place,)}, r"observe: parts of sizes \[1\] do not fill Box.* takes 2 numbers"),
        ({"observe": lambda xp, p, s: (s.place,) * 3}, r"observe: parts of sizes \[1, 1, 1\] do not fill Box"),
        ({"info": lambda xp, p, s: s.place}, r"info must return a dict, not "),
        ({"action_space": spaces.MultiDiscrete([2, 2])}, r"the action space must be a Discrete or a Box, not Multi"),
    ],
)
def test_rules_that_return_something_else(driver, parts, sentence):
    with pytest.raises((TypeError, ValueError), match=f"^{sentence}"):
        driver(changed(**parts))


def if_positive(xp, number):
    return number if number > 0.0 else -number


BRANCHES = {
    "initial_state": lambda xp, p, u: worlds.Balloon(if_positive(xp, u[0] - 0.5), xp.astype(u[1] * 0, int)),
    "transition": lambda xp, p, s, a, u: s._replace(place=if_positive(xp, s.place - 0.1)),
    "outcome": lambda xp, p, s, a, n: (if_positive(xp, n.place), n.place > 2.0),
    "observe": lambda xp, p, s: (if_positive(xp, s.place), s.place * 0.0),
    "info": lambda xp, p, s: {"side": 0, "distance": if_positive(xp, s.place)},
}
CONVERTED = {
    "transition": lambda xp, p, s, a, u: s._replace(place=math.sin(s.place) + 0.0 * s.place),
    "outcome": lambda xp, p, s, a, n: (float(n.place), n.place > 2.0),
    "observe": lambda xp, p, s: ([0.0, 1.0][int(s.gusts) * 0] + s.place, s.place * 0.0),
}


@pytest.mark.parametrize(("role", "rule"), [*BRANCHES.items(), *CONVERTED.items()])
def test_many_rows_taken_for_one_number(role, rule):
    """One environment may do so; a batch says what to write instead, and its traceback shows the line."""
    world = changed(**{role: rule})
    play(SingleEnv(world))
    with pytest.raises(TypeError, match=r"^a rule branches on, or converts, .* use xp\.where, .*check_world names the"):
        play(BatchEnv(3, world))


def test_a_wrong_option_is_not_taken_for_a_wrong_rule():
    with pytest.raises(TypeError, match="converted") as error:
        BatchEnv(3, changed()).reset(seed=0, options={"place": np.zeros(2)})
    assert "a rule" not in str(error.value)


@drivers
def test_labels_are_for_entries_that_there_are(driver):
    with pytest.raises(ValueError, match=r"^labels are for entries of info; it has no 'sides', only \['side', 'calm'"):
        driver(changed(labels={"sides": ("left", "right")}))


@drivers
@pytest.mark.parametrize("index", [-1, 2, 7])
def test_an_index_without_a_label_is_named(driver, index):
    world = changed(info=lambda xp, p, s: {"side": xp.where(s.gusts >= 0, index, 0)})
    with pytest.raises(ValueError, match=rf"^info\['side'\] is {index}, but its 2 labels are for 0 to 1$"):
        play(driver(world))


@pytest.mark.parametrize("name", ["reset_draws", "step_draws", "max_step_draws"])
@pytest.mark.parametrize(("value", "error"), [("4", TypeError), (4.0, TypeError), (True, TypeError), (-1, ValueError)])
def test_numbers_of_draws_are_whole_numbers(name, value, error):
    with pytest.raises(error, match=f"^{name} must be a whole number of uniforms.* not {value!r}$"):
        changed(**{name: value})


def test_a_function_that_plain_numbers_lack_is_numpys():
    """`cbrt` is elementwise in NumPy and no function of `math` in every Python."""

    def observe(xp, params, state):
        return xp.clip(xp.cbrt(state.place), -8.0, 8.0), state.place * 0.0

    single, rows = SingleEnv(changed(observe=observe)), BatchEnv(1, changed(observe=observe))
    assert single.reset(seed=1)[0].tobytes() == rows.reset(seed=1)[0].tobytes()
    assert single.step(2)[0].tobytes() == rows.step([2])[0].tobytes()
