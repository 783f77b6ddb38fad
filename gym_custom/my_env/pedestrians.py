"""How pedestrians walk: a social force model with a hard limit on how close they come.

Each wants to walk to a way-point at a desired speed and is pushed away by people, obstacles, walls and, if noticed,
the robot (Helbing & Molnar, "Social force model for pedestrian dynamics", 1995, eq. 2-4 and 8; exponential force of
the gap as in Helbing, Farkas & Vicsek, "Simulating dynamical features of escape panic", 2000, eq. 2). A share of each
push points to the right: people keep to one side (Moussaid et al., "Experimental study of the behavioural mechanisms
underlying self-organization in human crowds", 2009), which also resolves head-on encounters.

Forces alone let a person who is pressed from behind through an obstacle now and then. So velocities are then limited:
no one may close more than half a gap within one substep, which keeps two walking people apart as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gym_custom.my_env.geometry import add_up, length

Array = Any

_UNNOTICED = -100.0  # m, added to the gap between a pedestrian and a robot not noticed: no force reaches that far


class Surroundings(NamedTuple):
    """What stays the same for the pedestrians during one step; K = P + 1 + O discs."""

    heading: Array  # (2, P, N) direction to the way-point, shorter than 1 when nearly there
    reach: Array  # (K, P, N) m, sum of the radii
    bound: Array  # (2, P, N) m, largest coordinate of a centre within the walls


def choose_way_points(xp: Any, params: Any, state: Any) -> tuple[Array, Array]:
    """Way-points (2, P, N) for this step: whoever has reached one turns to the next, and then back."""
    here = length(xp, state.way_points - state.pedestrians) < params.arrival_distance  # (P, N)
    return (
        xp.where(here, state.next_way_points, state.way_points),
        xp.where(here, state.way_points, state.next_way_points),
    )


def look_around(xp: Any, params: Any, state: Any) -> Surroundings:
    """Gathers what stays the same during one step."""
    to_go = state.way_points - state.pedestrians  # (2, P, N)
    heading = to_go / xp.maximum(length(xp, to_go), params.arrival_distance)
    radii = state.pedestrian_radii
    robot = xp.where(state.notices > 0.0, radii + params.robot_radius, _UNNOTICED)
    reach = xp.concatenate([radii[:, None] + radii, robot[None], state.obstacle_radii[:, None] + radii], axis=0)
    return Surroundings(heading, reach, state.room[:, None] - radii)


def velocities(xp: Any, params: Any, state: Any, around: Surroundings, duration: float) -> Array:
    """Velocities (2, P, N) of the pedestrians for the next `duration` seconds (semi-implicit Euler)."""
    others = xp.concatenate([state.pedestrians, state.position[:, None], state.obstacles], axis=1)  # (2, K, N)
    away = state.pedestrians[:, None] - others[:, :, None]  # (2, K, P, N)
    distance = xp.maximum(length(xp, away), 1e-6)  # (K, P, N); nobody pushes himself, his own vector is 0
    away = away / distance
    gap = distance - around.reach
    push = _repulsion(xp, params, gap, away[0] * around.heading[0] + away[1] * around.heading[1])
    force = add_up(push * away)  # (2, P, N)
    side = params.tangential_share * force
    drive = (state.desired_speeds * around.heading - state.velocities) / params.relaxation_time
    pull = drive + force + _wall_force(xp, params, state, around) + xp.stack([-side[1], side[0]])
    velocity = state.velocities + duration * pull
    return _limit_speed(xp, params, state, _keep_apart(xp, velocity, away, gap, duration))


def displacements(xp: Any, state: Any, around: Surroundings, velocity: Array, duration: float) -> Array:
    """Ways (2, P, N) of the pedestrians within `duration` seconds, ending at the walls."""
    target = xp.maximum(xp.minimum(state.pedestrians + duration * velocity, around.bound), -around.bound)
    return xp.where(state.walks > 0.0, target - state.pedestrians, 0.0)


def _repulsion(xp: Any, params: Any, gap: Array, away: Array) -> Array:
    """A exp(-gap / B) w, where w falls from 1 for what lies ahead to lambda for what lies behind.

    Args:
        xp: Array namespace.
        params: Constants.
        gap: Distance of the surfaces, m.
        away: Cosine between the walking direction and the push, -1 for what lies ahead.
    """
    middle, swing = 0.5 * (1.0 + params.anisotropy), 0.5 * (1.0 - params.anisotropy)
    return params.force * xp.exp(gap * (-1.0 / params.force_range)) * (middle - swing * away)


def _wall_force(xp: Any, params: Any, state: Any, around: Surroundings) -> Array:
    """(2, P, N): the pushes of the two walls of each axis."""
    low, high = around.bound + state.pedestrians, around.bound - state.pedestrians
    return _repulsion(xp, params, low, around.heading) - _repulsion(xp, params, high, -around.heading)


def _keep_apart(xp: Any, velocity: Array, away: Array, gap: Array, duration: float) -> Array:
    """Takes away what would close more than half a gap in `duration` seconds.

    Discs are convex: if the part of the motion along the present line of centres leaves them apart, all of it does.
    """
    outward = velocity[0] * away[0] + velocity[1] * away[1]  # (K, P, N)
    excess = xp.maximum(gap * (-0.5 / duration) - outward, 0.0)
    return velocity + add_up(excess * away)


def _limit_speed(xp: Any, params: Any, state: Any, velocity: Array) -> Array:
    top = params.speed_excess * state.desired_speeds * state.walks
    speed = xp.maximum(length(xp, velocity), 1e-6)
    return velocity * xp.minimum(top / speed, 1.0)
