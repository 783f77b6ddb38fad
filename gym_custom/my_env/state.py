"""What a moment of the robot's world consists of, and the numbers that rule it."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any

RUNNING, SUCCESS, PEDESTRIAN, OBSTACLE, WALL = range(5)
OUTCOMES = ("running", "success", "pedestrian", "obstacle", "wall")
ABSENT = 60.0  # m, where discs stand that a setting leaves out: beyond every room and every ray


class Params(NamedTuple):
    """Constants of the world; metres, seconds, radians."""

    # Time and robot
    dt: float = 0.2  # s, one step
    robot_radius: float = 0.3  # m
    max_speed: float = 1.0  # m/s
    max_turn_rate: float = 1.5  # rad/s
    max_acceleration: float = 2.0  # m/s^2
    max_turn_acceleration: float = 6.0  # rad/s^2
    goal_radius: float = 0.4  # m
    half_width: float = 5.0  # m, of the square room

    # Who is there
    n_pedestrians: float = 4.0
    n_obstacles: float = 3.0
    notice_prob: float = 0.75
    speed_mean: float = 0.9  # m/s
    speed_deviation: float = 0.2
    speed_low: float = 0.5
    speed_high: float = 1.3
    radius_low: float = 0.3  # m, of a pedestrian
    radius_high: float = 0.3
    obstacle_radius_low: float = 0.25
    obstacle_radius_high: float = 0.45

    # How pedestrians walk (Helbing & Molnar 1995; Helbing, Farkas & Vicsek 2000; Moussaid et al. 2009)
    relaxation_time: float = 0.5  # s
    force: float = 8.0  # m/s^2 at touch
    force_range: float = 0.25  # m
    anisotropy: float = 0.5  # lambda, the weight of what lies behind
    side: Array = (-0.3, 0.3)  # share of each push that points to the right: of its y in x, of its x in y
    speed_excess: float = 1.3  # top speed over desired speed
    arrival_distance: float = 0.5  # m, at which a way-point counts as reached

    # What the robot sees
    max_range: float = 6.0  # m
    ray_cos: Array = ()  # (A,), directions of the axes of the rays in the robot's frame
    ray_sin: Array = ()  # (A,)
    ray_ends: Array = ()  # [1, -1] where each axis carries two opposite rays, else [1]
    range_noise: float = 0.0  # m, standard deviation at range 0
    relative_range_noise: float = 0.0  # added to it a metre of range
    drop_out: float = 0.0  # probability that a ray reads the maximum

    # What a step earns
    progress_weight: float = 60.0
    time_penalty: float = 0.1
    discomfort_weight: float = 1.0
    discomfort_distance: float = 0.25  # m
    goal_reward: float = 60.0
    collision_penalty: float = 60.0


class State(NamedTuple):
    """One moment: the batch is the last axis or absent; P pedestrians, O obstacles, S numbers of sensor memory."""

    position: Array  # (2, N) m, of the robot
    heading: Array  # (N,) rad in [-pi, pi), 0 along x, counter-clockwise
    speed: Array  # (N,) m/s, forward
    turn_rate: Array  # (N,) rad/s
    goal: Array  # (2, N) m
    room: Array  # (2, N) m, half widths along x and y
    pedestrians: Array  # (2, P, N) m
    velocities: Array  # (2, P, N) m/s
    way_points: Array  # (2, P, N) m, where they walk to now
    next_way_points: Array  # (2, P, N) m, and then
    desired_speeds: Array  # (P, N) m/s
    pedestrian_radii: Array  # (P, N) m, 0 where absent
    notices: Array  # (P, N) 1 where a pedestrian reacts to the robot, else 0
    walks: Array  # (P, N) 0 where a pedestrian stands at rest for the whole episode, else 1
    obstacles: Array  # (2, O, N) m
    obstacle_radii: Array  # (O, N) m, 0 where absent
    sensor: Array  # (S, N) what the sensor must remember: the last scan, or the noise of this one
    goal_distance: Array  # (N,) m
    first_goal_distance: Array  # (N,) m, at the episode's start
    min_gap: Array  # (N,) m, smallest gap to a pedestrian within the last step
    outcome: Array  # (N,) integer, an index of OUTCOMES
    steps: Array  # (N,) since the episode began
    discomfort_steps: Array  # (N,) those with min_gap below the discomfort distance
    path_length: Array  # (N,) m
