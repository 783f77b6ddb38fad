"""Starting an episode by hand: the options of a reset, and the fixed evaluation cases."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gym_custom.arguments import legal_choice, legal_integer, legal_number, shown
from gym_custom.my_env.dynamics import wrap
from gym_custom.my_env.layout import from_layout, numbers, refuse_no_way, refuse_overlaps, repeated
from gym_custom.my_env.scenarios import SCENARIOS, begin, count_draws
from gym_custom.my_env.state import State

CASE_SEEDS = tuple(range(2_000_000_000, 2_000_000_500))
"""The 500 fixed evaluation cases, far from the seeds that people train with."""
SELECTION_SEEDS = tuple(range(1 << 30, (1 << 30) + 100))
"""100 others, to choose checkpoints with: the first of those from which agents are evaluated during training."""

OPTIONS = ("scenario", "n_pedestrians", "n_obstacles", "notice_prob", "robot_pose", "goal", "layout", "case")


def reset_with(xp: Any, params: Any, u: Any, options: dict[str, Any], *, initial_state: partial[State]) -> State:
    """The first state of an episode as the options want it.

    Args:
        xp: NumPy.
        params: Constants.
        u: (reset_draws, N) uniforms.
        options: See OPTIONS.
        initial_state: The usual beginning.

    Raises:
        ValueError: An option is unknown, out of range or contradicts another, or things overlap.
    """
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"unknown reset option {shown(name)}; legal are {', '.join(OPTIONS)}")
    if "case" in options:
        u = _case_draws(options["case"], u)
    if "layout" in options:
        return _laid_out(xp, params, u, options, initial_state)
    changed = _changed_params(params, options, initial_state.keywords["slots"])
    if "scenario" in options:
        name = legal_choice("options['scenario']", options["scenario"], SCENARIOS)
        initial_state = partial(initial_state, place=SCENARIOS[name])
    state = initial_state(xp, changed, u)
    if "robot_pose" in options or "goal" in options:
        state = _begun(xp, params, u, _moved(params, state, options), initial_state)
    return state


def _laid_out(xp: Any, params: Any, u: Any, options: dict[str, Any], initial_state: partial[State]) -> State:
    """The state that the option ``layout`` describes."""
    if len(options) > 1 + ("case" in options):
        raise ValueError("options['layout'] says where everything is and goes with no other option but 'case'")
    state = from_layout(params, options["layout"], initial_state.keywords["slots"], u.shape[1:])
    empty = np.zeros((initial_state.keywords["memory"], *u.shape[1:]))
    return _begun(xp, params, u, state._replace(sensor=empty), initial_state)


def _begun(xp: Any, params: Any, u: Any, state: State, initial_state: partial[State]) -> State:
    """The state as an episode begins in it, with the draws that the usual beginning would leave for the sensor."""
    people, things = initial_state.keywords["slots"]
    return begin(xp, params, state, u[count_draws(people, things, 0) :], initial_state.keywords["remember"])


def _case_draws(case: Any, u: np.ndarray) -> np.ndarray:
    """The uniforms that ``reset(seed=CASE_SEEDS[case])`` would draw, the same for every row."""
    seed = CASE_SEEDS[legal_integer("options['case']", case, 0, len(CASE_SEEDS) - 1)]
    drawn: Any = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random(u.shape[0])
    return np.broadcast_to(drawn.reshape(-1, *(1,) * (u.ndim - 1)), u.shape)


def _changed_params(params: Any, options: dict[str, Any], slots: tuple[int, int]) -> SimpleNamespace:
    changed = dict(vars(params))
    for name, most in zip(("n_pedestrians", "n_obstacles"), slots, strict=True):
        if name in options:
            changed[name] = float(legal_integer(f"options[{name!r}]", options[name], 0, most))
    if "notice_prob" in options:
        changed["notice_prob"] = legal_number("options['notice_prob']", options["notice_prob"], 0.0, 1.0)
    return SimpleNamespace(**changed)


def _moved(params: Any, state: State, options: dict[str, Any]) -> State:
    """The state with the robot or the goal elsewhere."""
    batch = state.heading.shape
    if "robot_pose" in options:
        x, y, heading = numbers("options['robot_pose']", options["robot_pose"], 3)
        state = state._replace(position=repeated([x, y], batch), heading=repeated(wrap(np, np.float64(heading)), batch))
    if "goal" in options:
        state = state._replace(goal=repeated(numbers("options['goal']", options["goal"], 2), batch))
    rows = [State(*(leaf[..., row] for leaf in state)) for row in range(batch[0])] if batch else [state]
    for row in rows:
        refuse_overlaps(params, row)
        refuse_no_way(row)
    return state
