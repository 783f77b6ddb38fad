"""Cart-pole: a pole hinged to a cart that is pushed left or right (Barto, Sutton & Anderson 1983)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

Array = Any


class Params(NamedTuple):
    """The cart, the pole and the rules of the game."""

    gravity: float = 9.8  # m/s^2
    masscart: float = 1.0  # kg
    masspole: float = 0.1  # kg
    length: float = 0.5  # m, half the pole
    force_mag: float = 10.0  # N
    tau: float = 0.02  # s between two states
    cart_friction: float = 0.0  # N s/m, between cart and track
    x_threshold: float = 2.4  # m
    theta_threshold: float = 12 * 2 * math.pi / 360  # rad
    step_reward: float = 1.0  # while the pole stands
    fall_reward: float = 1.0  # on the step on which it falls

    @property
    def total_mass(self) -> float:
        """Mass of cart and pole in kg."""
        return self.masspole + self.masscart

    @property
    def polemass_length(self) -> float:
        """First moment of the pole about its hinge in kg m."""
        return self.masspole * self.length


class State(NamedTuple):
    """Where the cart and the pole are; each of shape (...)."""

    x: Array  # m
    x_dot: Array  # m/s
    theta: Array  # rad, 0 is upright
    theta_dot: Array  # rad/s


def initial_state(xp: Any, params: Params, u: Array, low: float = -0.05, high: float = 0.05) -> State:
    """A state near the upright equilibrium, each number uniform in [low, high); u of shape (4, ...)."""
    return State(*(low + (high - low) * u[i] for i in range(4)))


def accelerations(xp: Any, params: Params, state: State, action: Array) -> tuple[Array, Array]:
    """Accelerations of cart and pole, no friction at the hinge (Florian 2007, equations 23 and 24).

    Friction on the track is a force of its own, ``-cart_friction * x_dot``.

    Args:
        xp: The array namespace.
        params: The constants.
        state: Of shape (...).
        action: Of shape (...), 1 pushes right and 0 left.

    Returns:
        Of the cart in m/s^2 and of the pole in rad/s^2.
    """
    push = 2.0 * params.force_mag * action - params.force_mag  # exact for 0 and 1
    rough = params.cart_friction != 0  # recordings know it, and leave out what is not chosen
    force = xp.where(rough, push - params.cart_friction * state.x_dot, push)
    cos, sin = xp.cos(state.theta), xp.sin(state.theta)
    temp = (force + params.polemass_length * (state.theta_dot * state.theta_dot) * sin) / params.total_mass
    theta_acc = (params.gravity * sin - cos * temp) / (
        params.length * (4.0 / 3.0 - params.masspole * (cos * cos) / params.total_mass)
    )
    x_acc = temp - params.polemass_length * theta_acc * cos / params.total_mass
    return x_acc, theta_acc


def euler(xp: Any, params: Params, state: State, action: Array, u: Array | None = None) -> State:
    """One explicit Euler step: places move with the old speeds."""
    x_acc, theta_acc = accelerations(xp, params, state, action)
    return State(
        x=state.x + params.tau * state.x_dot,
        x_dot=state.x_dot + params.tau * x_acc,
        theta=state.theta + params.tau * state.theta_dot,
        theta_dot=state.theta_dot + params.tau * theta_acc,
    )


def semi_implicit(xp: Any, params: Params, state: State, action: Array, u: Array | None = None) -> State:
    """One semi-implicit Euler step: places move with the new speeds."""
    x_acc, theta_acc = accelerations(xp, params, state, action)
    x_dot = state.x_dot + params.tau * x_acc
    theta_dot = state.theta_dot + params.tau * theta_acc
    return State(
        x=state.x + params.tau * x_dot,
        x_dot=x_dot,
        theta=state.theta + params.tau * theta_dot,
        theta_dot=theta_dot,
    )


def outcome(xp: Any, params: Params, state: State, action: Array, next_state: State) -> tuple[Array, Array]:
    """The reward, and whether the cart left the track or the pole fell."""
    lost = (abs(next_state.x) > params.x_threshold) | (abs(next_state.theta) > params.theta_threshold)
    return xp.where(lost, params.fall_reward, params.step_reward), lost


def observe(xp: Any, params: Params, state: State) -> tuple[Array, ...]:
    """All there is to see: the state itself."""
    return state
