"""What somebody reads whose own world has a slip: one sentence that names it, from every driver."""

from __future__ import annotations

import dataclasses
from typing import Any

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
