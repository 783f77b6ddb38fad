"""Where everything stands when an episode begins, in one formula each: no rejection, no overlap by construction."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gym_custom.my_env.dynamics import smallest_gap, wrap
from gym_custom.my_env.geometry import length
from gym_custom.my_env.lidar import column
from gym_custom.my_env.observation import normal
from gym_custom.my_env.state import ABSENT, RUNNING, State

Array = Any

CELLS = 9  # of the 3 x 3 lattice of obstacles
PITCH, JITTER = 1.7, 0.3  # m, of the lattice
RING, RING_JITTER = 4.0, 0.3  # m, radius of the circle on which all start
CLEARANCE = 0.4  # rad, between a pedestrian's start or end and the robot's axis
APART = 0.72  # m, least distance of the centres of pedestrians who start in one line
ROBOT_DRAWS, OBSTACLE_DRAWS, PEDESTRIAN_DRAWS = 4, 3, 7


class Draws(NamedTuple):
    """The uniforms of a reset by their use."""

    robot: Array  # (4, N)
    cells: Array  # (9, N)
    obstacles: Array  # (3, O, N)
    pedestrians: Array  # (7, P, N)
    sensor: Array  # (S, N)


class Placement(NamedTuple):
    """Where everything stands."""

    position: Array  # (2, N)
    goal: Array  # (2, N)
    room: Array  # (2, N)
    starts: Array  # (2, P, N)
    ends: Array  # (2, P, N)
    obstacles: Array  # (2, O, N)
    pace: float = 1.0  # of the desired speeds
    walks: float = 1.0  # 0 where nobody moves


def count_draws(n_pedestrians: int, n_obstacles: int, sensor_draws: int) -> int:
    """Uniforms that a reset takes."""
    return ROBOT_DRAWS + CELLS + OBSTACLE_DRAWS * n_obstacles + PEDESTRIAN_DRAWS * n_pedestrians + sensor_draws


def initial_state(
    xp: Any, params: Any, u: Array, *, place: Any, slots: tuple[int, int], remember: Any, memory: int
) -> State:
    """The first state of an episode.

    Args:
        xp: Array namespace.
        params: Constants; n_pedestrians and n_obstacles may be smaller than the slots, the rest is absent.
        u: (reset_draws, N) uniforms.
        place: The scenario, one of SCENARIOS.
        slots: Pedestrians and obstacles that the shapes hold.
        remember: What the sensor keeps.
        memory: How many numbers it keeps.
    """
    draws = _split(xp, u, *slots)
    placed = place(xp, params, draws)
    _, present = _present(xp, draws.pedestrians, params.n_pedestrians)
    speeds = params.speed_mean + params.speed_deviation * normal(xp, draws.pedestrians[3], draws.pedestrians[4])[0]
    speeds = xp.minimum(xp.maximum(speeds, params.speed_low), params.speed_high) * placed.pace
    radii = params.radius_low + (params.radius_high - params.radius_low) * draws.pedestrians[6]
    spread = params.obstacle_radius_high - params.obstacle_radius_low
    _, standing = _present(xp, draws.obstacles, params.n_obstacles)
    starts = xp.where(present, placed.starts, ABSENT)
    ahead = placed.goal - placed.position
    heading = xp.arctan2(ahead[1], ahead[0]) + (draws.robot[1] - 0.5)
    zero = abs(0.0 * heading)  # (N,), without the sign that a negative heading would leave
    return begin(
        xp,
        params,
        State(
            position=placed.position,
            heading=wrap(xp, heading),
            speed=zero,
            turn_rate=zero,
            goal=placed.goal,
            room=placed.room,
            pedestrians=starts,
            velocities=0.0 * starts,
            way_points=xp.where(present, placed.ends, ABSENT),
            next_way_points=starts,
            desired_speeds=speeds,
            pedestrian_radii=xp.where(present, radii, 0.0),
            notices=xp.where(draws.pedestrians[5] < params.notice_prob, 1.0, 0.0 * speeds),
            walks=xp.where(present, placed.walks, 0.0 * speeds),
            obstacles=xp.where(standing, placed.obstacles, ABSENT),
            obstacle_radii=xp.where(standing, params.obstacle_radius_low + spread * draws.obstacles[2], 0.0),
            sensor=xp.zeros((memory, *u.shape[1:]), u.dtype),
            goal_distance=zero,
            first_goal_distance=zero,
            min_gap=zero,
            outcome=xp.zeros(heading.shape, int) + RUNNING,
            steps=zero,
            discomfort_steps=zero,
            path_length=zero,
        ),
        draws.sensor,
        remember,
    )


def begin(xp: Any, params: Any, state: State, u: Array, remember: Any) -> State:
    """The state with what follows from the places: distances, the smallest gap, and the sensor's memory."""
    distance = length(xp, state.goal - state.position)
    gap = smallest_gap(xp, params, state, length(xp, state.pedestrians - state.position[:, None])[None])[0]
    state = state._replace(goal_distance=distance, first_goal_distance=distance, min_gap=gap)
    return state._replace(sensor=remember(xp, params, state, u))


# The scenarios


def circle(xp: Any, params: Any, draws: Draws) -> Placement:
    """Robot and goal on opposite sides of a circle; pedestrians between them on both sides, who cross it."""
    angle = 2.0 * math.pi * draws.robot[0]
    position = RING * _direction(xp, angle)
    k, _ = _present(xp, draws.pedestrians, params.n_pedestrians)
    starts, ends = _ring(xp, angle, k, xp.maximum(0.0 * angle + params.n_pedestrians, 1.0), draws.pedestrians)
    return Placement(position, -position, _square_room(params, position), starts, ends, _lattice(xp, draws))


def static(xp: Any, params: Any, draws: Draws) -> Placement:
    """As `circle`, but nobody moves: pedestrians stand in the free cells of the lattice, the rest on the circle."""
    angle = 2.0 * math.pi * draws.robot[0]
    position = RING * _direction(xp, angle)
    people, inside = draws.pedestrians, CELLS - draws.obstacles.shape[1]
    k, _ = _present(xp, people, params.n_pedestrians)
    cells = _cell_centres(xp, draws)[:, draws.obstacles.shape[1] :][:, : people.shape[1]]
    cells = cells + JITTER * (2.0 * people[:2, :inside] - 1.0)
    ring, _ = _ring(xp, angle, k - inside, xp.maximum(0.0 * angle + params.n_pedestrians - inside, 1.0), people)
    starts = xp.concatenate([cells, ring[:, inside:]], axis=1)
    return Placement(
        position, -position, _square_room(params, position), starts, starts, _lattice(xp, draws), walks=0.0
    )


def square(xp: Any, params: Any, draws: Draws) -> Placement:
    """Across a square of 9 m; pedestrians walk at right angles to the robot's way, from both sides."""
    side, reach = 4.5, 3.3
    near, far = 4.0 * draws.robot[2] - 2.0, 4.0 * draws.robot[3] - 2.0
    position, goal = xp.stack([0.0 * near - side, near]), xp.stack([0.0 * far + side, far])
    people = draws.pedestrians
    k, _ = _present(xp, people, params.n_pedestrians)
    lane, up = xp.floor(k / 2.0), 1.0 - 2.0 * (k % 2.0)
    x = _in_line(xp, lane, xp.ceil(0.0 * near + params.n_pedestrians / 2.0), people[0], -reach, reach)
    y = -up * (RING + RING_JITTER * (2.0 * people[1] - 1.0))
    end = xp.minimum(xp.maximum(x + 0.8 * (people[2] - 0.5), -reach), reach)
    placed = Placement(
        position, goal, _square_room(params, position), xp.stack([x, y]), xp.stack([end, -y]), _lattice(xp, draws)
    )
    return _turned(xp, placed, 0.5 * math.pi * xp.floor(4.0 * draws.robot[0]))


def parallel(xp: Any, params: Any, draws: Draws) -> Placement:
    """All walk the robot's way, at six tenths of the usual speed: some start beside it, seven at most ahead of it."""
    people, front = draws.pedestrians, 7
    near, far = 0.6 * draws.robot[2] - 0.3, 4.0 * draws.robot[3] - 2.0
    position, goal = xp.stack([0.0 * near - 4.2, near]), xp.stack([0.0 * far + 4.2, far])
    k, _ = _present(xp, people, params.n_pedestrians)
    count = 0.0 * near + params.n_pedestrians
    ahead = _in_line(xp, k, xp.minimum(count, 1.0 * front), people[0], -4.4, 4.4)
    beside = _in_line(xp, k - front, xp.maximum(count - front, 1.0), people[0], 0.0, 6.8)
    beside = xp.where(beside < 3.4, beside - 4.4, beside - 2.4)
    in_front = k < front
    y = xp.where(in_front, ahead, beside)
    x = xp.where(in_front, -3.05, -4.2 + 0.0 * y) + 0.2 * (people[1] - 0.5)
    end = xp.minimum(xp.maximum(y + 0.8 * (people[2] - 0.5), -4.4), 4.4)
    placed = Placement(
        position,
        goal,
        _square_room(params, position),
        xp.stack([x, y]),
        xp.stack([0.0 * x + 4.3, end]),
        _lattice(xp, draws),
        0.6,
    )
    return _turned(xp, placed, 0.5 * math.pi * xp.floor(4.0 * draws.robot[0]))


def corridor(xp: Any, params: Any, draws: Draws) -> Placement:
    """Between walls 2.4 m apart, with obstacles half in the walls; pedestrians walk both ways, each on the right."""
    half, reach = (6.0, 1.2), 5.4
    near, far = 0.6 * draws.robot[2] - 0.3, 0.6 * draws.robot[3] - 0.3
    position, goal = xp.stack([0.0 * near - RING, near]), xp.stack([0.0 * far + RING, far])
    people, things = draws.pedestrians, draws.obstacles
    k, _ = _present(xp, people, params.n_pedestrians)
    way = 2.0 * (k % 2.0) - 1.0  # along x; the first comes towards the robot
    per_lane = xp.ceil(0.0 * near + params.n_pedestrians / 2.0)
    x = _in_line(xp, xp.floor(k / 2.0), per_lane, people[0], -2.6, reach)
    y = -way * (0.36 + 0.035 * people[1])  # the widest fit between the other lane and the obstacles
    m, _ = _present(xp, things, params.n_obstacles)
    slot = 5.2 / xp.maximum(0.0 * near + params.n_obstacles, 1.0)
    along = (m + 0.5) * slot - 2.6 + (things[0] - 0.5) * xp.minimum(xp.maximum(2.0 * slot - 0.92, 0.0), slot)
    pillars = xp.stack([along, half[1] * (1.0 - 2.0 * (m % 2.0)) + 0.0 * along])
    room = 0.0 * position + column(xp, xp.asarray(half, position.dtype), near)
    placed = Placement(position, goal, room, xp.stack([x, y]), xp.stack([way * reach + 0.0 * x, y]), pillars)
    return _turned(xp, placed, math.pi * xp.floor(2.0 * draws.robot[0]))


SCENARIOS = {"circle": circle, "square": square, "corridor": corridor, "parallel": parallel, "static": static}


# Their parts


def _split(xp: Any, u: Array, n_pedestrians: int, n_obstacles: int) -> Draws:
    first = ROBOT_DRAWS + CELLS
    second = first + OBSTACLE_DRAWS * n_obstacles
    third = second + PEDESTRIAN_DRAWS * n_pedestrians
    return Draws(
        u[:ROBOT_DRAWS],
        u[ROBOT_DRAWS:first],
        xp.reshape(u[first:second], (OBSTACLE_DRAWS, n_obstacles, *u.shape[1:])),
        xp.reshape(u[second:third], (PEDESTRIAN_DRAWS, n_pedestrians, *u.shape[1:])),
        u[third:],
    )


def _present(xp: Any, draws: Array, count: Array) -> tuple[Array, Array]:
    """Numbers (K, 1) of the slots of draws (D, K, N), and which of them (K, N) are among the first `count`."""
    numbers = xp.reshape(xp.arange(draws.shape[1], dtype=draws.dtype), (-1,) + (1,) * (draws.ndim - 2))
    return numbers, numbers + 0.0 * draws[0] < count


def _direction(xp: Any, angle: Array) -> Array:
    return xp.stack([xp.cos(angle), xp.sin(angle)])


def _square_room(params: Any, position: Array) -> Array:
    return 0.0 * position + params.half_width


def _cell_centres(xp: Any, draws: Draws) -> Array:
    """(2, 9, N): the cells of the lattice in random order."""
    order = xp.argsort(draws.cells, axis=0)
    cells = xp.stack([order % 3, order // 3]).astype(draws.cells.dtype)
    return PITCH * (cells - 1.0)


def _lattice(xp: Any, draws: Draws) -> Array:
    """(2, O, N): obstacles in different cells; a ring around the lattice always remains free."""
    return _cell_centres(xp, draws)[:, : draws.obstacles.shape[1]] + JITTER * (2.0 * draws.obstacles[:2] - 1.0)


def _ring(xp: Any, angle: Array, k: Array, count: Array, people: Array) -> tuple[Array, Array]:
    """Starts and ends (2, P, N) on the circle: a slot each, used in its middle half, clear of the robot's axis."""
    arc = math.pi - 2.0 * CLEARANCE
    along = (k + 0.25 + 0.5 * people[0]) * (2.0 * arc / count)
    first = along < arc
    start = xp.where(first, along, along - arc) + CLEARANCE  # from the robot, or from the goal
    end = xp.minimum(xp.maximum(start + 0.8 * (people[2] - 0.5), CLEARANCE), math.pi - CLEARANCE)
    radius = RING + RING_JITTER * (2.0 * people[1] - 1.0)
    begins = angle + xp.where(first, start, start + math.pi)
    ends = angle + xp.where(first, end + math.pi, end)
    return radius * _direction(xp, begins), radius * _direction(xp, ends)


def _in_line(xp: Any, k: Array, count: Array, u: Array, low: float, high: float) -> Array:
    """Places along a line, a slot each, with at least APART between them."""
    slot = (high - low) / xp.maximum(count, 1.0)
    return low + (k + 0.5) * slot + (u - 0.5) * xp.maximum(slot - APART, 0.0)


def _turned(xp: Any, placed: Placement, angle: Array) -> Placement:
    """Everything but the room turned about the centre."""
    cos, sin = xp.cos(angle), xp.sin(angle)
    names = ("position", "goal", "starts", "ends", "obstacles")
    points = {name: getattr(placed, name) for name in names}
    return placed._replace(
        **{n: xp.stack([p[0] * cos - p[1] * sin, p[0] * sin + p[1] * cos]) for n, p in points.items()}
    )


def least_distance_on_ring(count: int) -> float:
    """Smallest distance (m) of the centres of two of so many pedestrians who start on the circle."""
    slot = 2.0 * (math.pi - 2.0 * CLEARANCE) / max(count, 2)
    return 2.0 * (RING - RING_JITTER) * math.sin(0.25 * slot)
