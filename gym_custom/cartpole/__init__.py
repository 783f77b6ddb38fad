"""The cart-pole of Gymnasium, as one set of rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.arguments import legal_choice, legal_flag, legal_number
from gym_custom.cartpole import dynamics
from gym_custom.cartpole.draw import draw
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World

_DEFAULT = dynamics.Params()
_INTEGRATORS = {"euler": dynamics.euler, "semi-implicit": dynamics.semi_implicit}
_PRECISIONS = {"float64": np.float64, "float32": np.float32}
_MAY_BE_ZERO = ("gravity", "force_mag", "cart_friction")
_FARTHEST = 1e9  # from zero, of a start that is asked for
_RANGES = {"float64": (1e-12, 1e9), "float32": (1e-3, 1e3)}
"""Between these no step of a running episode leaves the range of numbers of that precision."""


def make_world(
    gravity: float = _DEFAULT.gravity,
    masscart: float = _DEFAULT.masscart,
    masspole: float = _DEFAULT.masspole,
    length: float = _DEFAULT.length,
    force_mag: float = _DEFAULT.force_mag,
    tau: float = _DEFAULT.tau,
    integrator: str = "euler",
    x_threshold: float = _DEFAULT.x_threshold,
    theta_threshold: float = _DEFAULT.theta_threshold,
    cart_friction: float = _DEFAULT.cart_friction,
    sutton_barto_reward: bool = False,
    precision: str = "float64",
) -> World:
    """Makes the world; the arguments are described at `CartPoleEnv`.

    Raises:
        ValueError: A number is out of range, or a name is none of the legal ones.
        TypeError: An argument is of another type.
    """
    numbers = {
        "gravity": gravity,
        "masscart": masscart,
        "masspole": masspole,
        "length": length,
        "force_mag": force_mag,
        "tau": tau,
        "x_threshold": x_threshold,
        "theta_threshold": theta_threshold,
        "cart_friction": cart_friction,
    }
    dtype = _PRECISIONS[legal_choice("precision", precision, _PRECISIONS)]
    least, most = _RANGES[precision]
    for name, value in numbers.items():
        numbers[name] = legal_number(name, value, 0.0 if name in _MAY_BE_ZERO else least, most)
    sutton_barto_reward = legal_flag("sutton_barto_reward", sutton_barto_reward)
    step_reward, fall_reward = (0.0, -1.0) if sutton_barto_reward else (1.0, 1.0)
    params = dynamics.Params(**numbers, step_reward=step_reward, fall_reward=fall_reward)
    return World(
        params=params,
        initial_state=dynamics.initial_state,
        transition=_INTEGRATORS[legal_choice("integrator", integrator, _INTEGRATORS)],
        outcome=dynamics.outcome,
        observe=dynamics.observe,
        action_space=spaces.Discrete(2),
        observation_space=_observation_space(params),
        reset_draws=4,
        reset_with=reset_with,
        draw=draw,
        scalar=True,
        dtype=dtype,
        render_fps=max(1, round(1 / params.tau)),
    )


def reset_with(xp: Any, params: Any, u: Any, options: dict[str, Any]) -> dynamics.State:
    """Starts uniformly between the options ``low`` and ``high`` (by default -0.05 and 0.05), as Gymnasium does."""
    low, high = (_option(name, options.get(name, usual)) for name, usual in (("low", -0.05), ("high", 0.05)))
    if low > high:
        raise ValueError(f"options['low'] = {low} must not exceed options['high'] = {high}")
    return dynamics.initial_state(xp, params, u, low, high)


def _observation_space(params: dynamics.Params) -> spaces.Box:
    """Gymnasium's bounds, twice the thresholds; infinite where one step could go beyond them."""
    usual = dynamics.Params(x_threshold=params.x_threshold, theta_threshold=params.theta_threshold)
    same_physics = params[:7] == usual[:7]
    x, theta = (
        2 * getattr(_DEFAULT, name) if same_physics and getattr(params, name) <= getattr(_DEFAULT, name) else np.inf
        for name in ("x_threshold", "theta_threshold")
    )
    high = np.array([x, np.inf, theta, np.inf], np.float32)
    return spaces.Box(-high, high, dtype=np.float32)


def _option(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not -_FARTHEST <= number <= _FARTHEST:
        raise ValueError(f"options[{name!r}] must be a number from {-_FARTHEST:g} to {_FARTHEST:g}, not {value!r}")
    return number


class CartPoleEnv(SingleEnv):
    """A pole on a cart that is to be kept upright: Gymnasium's CartPole-v1, step for step from the same seed.

    ## Description
    A pole is hinged to a cart that moves on a track without friction. The pole starts almost upright, and pushes
    to the left and right must keep it there. The problem is that of Barto, Sutton & Anderson, "Neuronlike adaptive
    elements that can solve difficult learning control problems" (1983); the equations are Florian's, "Correct
    equations for the dynamics of the cart-pole system" (2007).

    ## Action Space
    `Discrete(2)`: 0 pushes the cart to the left, 1 to the right, always with the same force.

    ## Observation Space
    `Box`, shape `(4,)`, float32:

    | index | observation | unit | min | max |
    |---|---|---|---|---|
    | 0 | position of the cart | m | -4.8 | 4.8 |
    | 1 | velocity of the cart | m/s | -inf | inf |
    | 2 | angle of the pole, 0 is upright | rad | -0.419 (-24 degrees) | 0.419 |
    | 3 | angular velocity of the pole | rad/s | -inf | inf |

    With other physics or wider thresholds than the default, position and angle are unbounded too.

    ## Rewards
    1 on every step, that on which the pole falls included. With `sutton_barto_reward` 0 on every step and -1 on
    that on which the pole falls. The threshold of `NumpyCartPole-v1` is 475, that of `-v0` 195.

    ## Starting State
    All four numbers are uniform in [-0.05, 0.05); `reset(options={"low": ..., "high": ...})` chooses another range
    for this one episode.

    ## Episode End
    Termination: the cart is beyond `x_threshold`, or the pole beyond `theta_threshold`. Truncation: after 500 steps
    (`NumpyCartPole-v0`: 200).

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | `gravity` | 9.8 | m/s^2 |
    | `masscart`, `masspole` | 1.0, 0.1 | kg |
    | `length` | 0.5 | m, half the pole |
    | `force_mag` | 10.0 | N |
    | `tau` | 0.02 | s between two states |
    | `integrator` | "euler" | or "semi-implicit" |
    | `x_threshold` | 2.4 | m |
    | `theta_threshold` | 0.2094 | rad, 12 degrees |
    | `cart_friction` | 0.0 | N s/m between cart and track |
    | `sutton_barto_reward` | False | see Rewards |
    | `precision` | "float64" | or "float32": the vector environment is faster, each step within 1e-5 |

    Numbers are from 1e-12 to 1e9, with `precision="float32"` from 0.001 to 1000; gravity, force and friction may be 0.

    ## Vectorized environment
    `gymnasium.make_vec("NumpyCartPole-v1", num_envs=N)` makes a `CartPoleVectorEnv`.

    ## Version History
    * v1: 500 steps
    * v0: 200 steps
    """

    world = "gym_custom.cartpole:make_world"


class CartPoleVectorEnv(BatchEnv):
    """Many cart-poles at once; the rules and arguments are those of `CartPoleEnv`."""

    world = CartPoleEnv.world
