"""Worlds that exist for tests only: each has what the registered ones lack."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom.world import World


class Wind(NamedTuple):
    """How strongly the wind blows."""

    strength: float = 0.3
    reach: float = 2.0


class Balloon(NamedTuple):
    """A balloon on a line, blown about."""

    place: Any  # (...)
    gusts: Any  # (...), int, strong gusts so far


def balloon_start(xp, params, u):
    return Balloon(place=u[0] - 0.5, gusts=xp.astype(xp.floor(u[1] * 3), int))


def balloon_step(xp, params, state, action, u):
    gust = u[0] < 0.25
    push = xp.where(gust, params.strength, params.strength * u[1])
    place = state.place + (action - 1.0) * 0.4 + xp.sin(3.0 * state.place) * push
    return Balloon(place=place, gusts=state.gusts + xp.where(gust, 1, 0))


def balloon_outcome(xp, params, state, action, next_state):
    lost = abs(next_state.place) > params.reach
    return xp.where(lost, -1.0, xp.maximum(0.0, 1.0 - abs(next_state.place))), lost


def balloon_observe(xp, params, state):
    return xp.clip(state.place, -8.0, 8.0), xp.astype(state.gusts % 2 == 0, float)


def balloon_info(xp, params, state):
    return {"side": xp.where(state.place < 0.0, 0, 1), "calm": state.gusts == 0, "distance": abs(state.place)}


def balloon_reset_with(xp, params, u, options):
    return balloon_start(xp, params, u)._replace(place=u[0] * 0.0 + float(options["place"]))


def make_balloon(strength=0.3, precision="float64"):
    """A recordable world that draws in its steps, with integers in its state, labels in its info and an option."""
    return World(
        params=Wind(strength=strength),
        initial_state=balloon_start,
        transition=balloon_step,
        outcome=balloon_outcome,
        observe=balloon_observe,
        info=balloon_info,
        labels={"side": ("left", "right")},
        reset_with=balloon_reset_with,
        action_space=spaces.Discrete(3),
        observation_space=spaces.Box(-8.0, 8.0, (2,), np.float32),
        reset_draws=2,
        step_draws=2,
        max_step_draws=2,
        scalar=True,
        dtype=np.dtype(precision).type,
    )


class Swarm(NamedTuple):
    """Bees about a flower."""

    places: Any  # (2, B, ...)
    closest: Any  # (...)
    seen: Any  # (B, ...), bool


def _swarm(xp, places):
    distance = xp.sqrt(places[0] * places[0] + places[1] * places[1])
    return Swarm(places=places, closest=distance.min(axis=0), seen=distance < 1.0)


def swarm_start(xp, params, u):
    return _swarm(xp, (2.0 * u - 1.0).reshape(2, -1, *u.shape[1:]))


def swarm_step(xp, params, state, action, u=None):
    centre = reduce(add, [state.places[:, i] for i in range(state.places.shape[1])]) / state.places.shape[1]
    pull = 0.1 * (centre[:, None] - state.places)
    return _swarm(xp, state.places + pull + 0.2 * action[:, None])


def swarm_outcome(xp, params, state, action, next_state):
    return -next_state.closest, next_state.closest > 1.5


def swarm_observe(xp, params, state):
    return xp.astype(state.seen, int)[0], state.places[0], state.places[1], state.closest


def swarm_info(xp, params, state):
    return {"all_seen": state.seen.all(axis=0), "is_success": state.closest < 0.1}


def swarm_info_counted(xp, params, state):
    return swarm_info(xp, params, state) | {"count": xp.count_nonzero(state.seen, axis=0)}


def make_swarm(bees=9, counted=False):
    """A world of arrays with a box of actions and a nested observation; counted, it cannot be recorded."""
    box = spaces.Box(-np.inf, np.inf, (2, bees), np.float64)
    return World(
        params=Wind(),
        initial_state=swarm_start,
        transition=swarm_step,
        outcome=swarm_outcome,
        observe=swarm_observe,
        info=swarm_info_counted if counted else swarm_info,
        action_space=spaces.Box(-1.0, 1.0, (2,), np.float32),
        observation_space=spaces.Dict(
            {"a": spaces.Discrete(2), "b": box, "c": spaces.Box(0.0, np.inf, (1,), np.float32)}
        ),
        reset_draws=2 * bees,
    )
