"""How pedestrians walk: a social force model with a hard limit on how close they come.

Each wants to walk to a way-point at a desired speed and is pushed away by people, obstacles, walls and, if noticed,
the robot (Helbing & Molnar, "Social force model for pedestrian dynamics", 1995; exponential force of the gap as in
Helbing, Farkas & Vicsek, "Simulating dynamical features of escape panic", 2000, eq. 2), less by what lies behind
(Johansson, Helbing & Shukla, "Specification of a microscopic pedestrian model by evolutionary adjustment to video
tracking data", 2007). A share of each push points to the right: people keep to one side (Moussaid et al.,
"Experimental study of the behavioural mechanisms underlying self-organization in human crowds", 2009), which also
resolves head-on encounters.

Forces alone let a person who is pressed from behind through an obstacle now and then. So velocities are then limited:
no one may close more than half a gap within one substep, which keeps two walking people apart as well. Where several
press at once, what is taken away for one may close the gap to another: at walking speeds by less than a centimetre.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gym_custom.my_env.geometry import add_up, length
from gym_custom.my_env.state import ABSENT

Array = Any

_UNNOTICED = -100.0  # m, instead of the sum of the radii where a robot is not noticed: no force reaches that far
_TOGETHER = 4  # people whose pushes are worked out at a time: what lies between stays in the processor's cache


class Surroundings(NamedTuple):
    """What stays the same for the pedestrians during one step; K = P + O + 1 discs, pedestrians, obstacles, robot."""

    drive: Array  # (2, P, N) m/s, gain of velocity in a substep towards the way-point
    view: Array  # (2, 1, P, N) m/s, what a push in a substep loses by lying behind
    wall_low: Array  # (2, P, N) m/s, push of the left and lower walls in a substep at touch
    wall_high: Array  # (2, P, N) m/s, of the right and upper walls
    reach: Array  # (K, P, N) m, sum of the radii
    bound: Array  # (2, P, N) m, largest coordinate of a centre within the walls
    side: Array  # (2, 1, 1) tangential share of a push, to the right
    top_speed: Array  # (P, N) m/s


def choose_way_points(xp: Any, params: Any, state: Any) -> tuple[Array, Array]:
    """Way-points (2, P, N) for this step: whoever has reached one turns to the next, and then back."""
    here = length(xp, state.way_points - state.pedestrians) < params.arrival_distance  # (P, N)
    return (
        xp.where(here, state.next_way_points, state.way_points),
        xp.where(here, state.way_points, state.next_way_points),
    )


def look_around(xp: Any, params: Any, state: Any, way_points: Array, duration: float) -> Surroundings:
    """Gathers what stays the same during one step of substeps of a duration in seconds."""
    to_go = way_points - state.pedestrians  # (2, P, N)
    heading = to_go / xp.maximum(length(xp, to_go), params.arrival_distance)  # shorter than 1 when nearly there
    radii = state.pedestrian_radii
    robot = xp.where(state.notices > 0.0, radii + params.robot_radius, _UNNOTICED)
    bodies = xp.concatenate([radii, state.obstacle_radii], axis=0)
    push = params.force * duration
    view = heading * (-0.5 * (1.0 - params.anisotropy) * push)
    middle = _middle(params, duration)
    return Surroundings(
        drive=heading * (state.desired_speeds * (duration / params.relaxation_time)),
        view=view[:, None],
        wall_low=middle + view,
        wall_high=middle - view,
        reach=xp.concatenate([bodies[:, None] + radii, robot[None]], axis=0),
        bound=xp.where(radii > 0.0, state.room[:, None] - radii, ABSENT),
        side=xp.reshape(params.side, (2,) + (1,) * radii.ndim),
        top_speed=state.desired_speeds * (params.speed_excess * state.walks),
    )


def walk(
    xp: Any, params: Any, around: Surroundings, places: Array, velocity: Array, discs: Array, duration: float
) -> tuple[Array, Array]:
    """One substep of semi-implicit Euler.

    Args:
        xp: Array namespace.
        params: Constants.
        around: What stays the same during the step.
        places: (2, P, N) where the pedestrians are, m.
        velocity: (2, P, N) theirs, m/s.
        discs: (2, O + 1, N) where obstacles and the robot are, m.
        duration: Of the substep, s.

    Returns:
        New velocities, and ways within the substep that end at the walls, each (2, P, N).
    """
    count, bodies = places.shape[1], xp.concatenate([places, discs], axis=1)  # (2, K, N)
    if count <= _TOGETHER:
        return _walk(xp, params, around, places, velocity, bodies, duration)
    size = -(-count // -(-count // _TOGETHER))
    groups = [slice(first, first + size) for first in range(0, count, size)]
    walked = [
        _walk(xp, params, _around(around, who), places[:, who], velocity[:, who], bodies, duration) for who in groups
    ]
    velocities, ways = zip(*walked, strict=True)
    return xp.concatenate(velocities, axis=1), xp.concatenate(ways, axis=1)


def _around(around: Surroundings, who: slice) -> Surroundings:
    """What surrounds some of the pedestrians."""
    return Surroundings(
        drive=around.drive[:, who],
        view=around.view[:, :, who],
        wall_low=around.wall_low[:, who],
        wall_high=around.wall_high[:, who],
        reach=around.reach[:, who],
        bound=around.bound[:, who],
        side=around.side,
        top_speed=around.top_speed[who],
    )


def _walk(
    xp: Any, params: Any, around: Surroundings, places: Array, velocity: Array, bodies: Array, duration: float
) -> tuple[Array, Array]:
    """`walk` for some of the pedestrians among all bodies (2, K, N)."""
    away = places[:, None] - bodies[:, :, None]  # (2, K, P, N)
    distance = xp.maximum(length(xp, away), 1e-6)  # (K, P, N); nobody pushes himself, his own vector is 0
    away = away / distance
    gap = distance - around.reach
    gaps = xp.concatenate([gap, around.bound + places, around.bound - places], axis=0)  # (K + 4, P, N), last the walls'
    push, count = xp.exp(gaps * (-1.0 / params.force_range)), gap.shape[0]
    velocity = (
        velocity * (1.0 - duration / params.relaxation_time)
        + around.drive
        + _push_of_discs(params, around, away, push[:count], duration)
        + (push[count : count + 2] * around.wall_low - push[count + 2 :] * around.wall_high)
    )
    velocity = _limit_speed(xp, around, _keep_apart(xp, velocity, away, gap, duration))
    target = xp.maximum(xp.minimum(places + duration * velocity, around.bound), -around.bound)
    return velocity, target - places


def _middle(params: Any, duration: float) -> Any:
    return 0.5 * (1.0 + params.anisotropy) * params.force * duration


def _push_of_discs(params: Any, around: Surroundings, away: Array, push: Array, duration: float) -> Array:
    """(2, P, N): the sum of A push n w with push = exp(-gap / B), and a share of it to the right.

    w = lambda + (1 - lambda) (1 + cos phi) / 2 falls from 1 for what lies ahead to lambda for what lies behind. Walls
    push in the same way, but not to the side.
    """
    seen = away * around.view
    total = add_up(push * (seen[0] + seen[1] + _middle(params, duration)) * away)
    return total + total[::-1] * around.side


def _keep_apart(xp: Any, velocity: Array, away: Array, gap: Array, duration: float) -> Array:
    """Takes away what would close more than half a gap in `duration` seconds.

    Discs are convex: if the part of the motion along the present line of centres leaves them apart, all of it does.
    """
    outward = velocity[:, None] * away
    excess = xp.maximum(gap * (-0.5 / duration) - (outward[0] + outward[1]), 0.0)  # (K, P, N)
    return velocity + add_up(excess * away)


def _limit_speed(xp: Any, around: Surroundings, velocity: Array) -> Array:
    return velocity * xp.minimum(around.top_speed / xp.maximum(length(xp, velocity), 1e-6), 1.0)
