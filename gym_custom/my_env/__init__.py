"""A robot with a lidar among pedestrians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.my_env import dynamics, observation, scenarios
from gym_custom.my_env.draw import ansi, draw
from gym_custom.my_env.layout import legal_number, to_layout
from gym_custom.my_env.options import CASE_SEEDS, SELECTION_SEEDS, legal_count, legal_scenario, reset_with
from gym_custom.my_env.state import OUTCOMES, Params
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World

__all__ = ["CASE_SEEDS", "SELECTION_SEEDS", "MyEnv", "MyVectorEnv", "make_world"]

MOST_PEDESTRIANS, MOST_OBSTACLES = 14, 9
RAYS, CAMERA_RAYS = 36, 24


def make_world(
    n_pedestrians: int = 4,
    n_obstacles: int = 3,
    notice_prob: float = 0.75,
    scenario: str = "circle",
    observation: str = "lidar",
    continuous: bool = False,
    pedestrian_speed: Sequence[float] = (0.9, 0.2, 0.5, 1.3),
    pedestrian_radius: Sequence[float] = (0.3, 0.3),
    progress_weight: float = 60.0,
    time_penalty: float = 0.1,
    discomfort_weight: float = 1.0,
    discomfort_distance: float = 0.25,
    goal_reward: float = 60.0,
    collision_penalty: float = 60.0,
) -> World:
    """Makes the world; the arguments are described at `MyEnv`.

    Raises:
        ValueError: An argument has no legal value.
    """
    slots = (
        legal_count("n_pedestrians", n_pedestrians, MOST_PEDESTRIANS),
        legal_count("n_obstacles", n_obstacles, MOST_OBSTACLES),
    )
    if not isinstance(continuous, bool):
        raise ValueError(f"continuous must be True or False, not {continuous!r}")
    if not isinstance(observation, str) or observation not in _SENSORS:
        raise ValueError(f"observation must be one of {', '.join(map(repr, _SENSORS))}, not {observation!r}")
    sensor = _SENSORS[observation](*slots)
    mean, deviation, low, high = _speeds(pedestrian_speed)
    radius_low, radius_high = _radii(pedestrian_radius, slots[0])
    params = Params(
        n_pedestrians=float(slots[0]),
        n_obstacles=float(slots[1]),
        notice_prob=legal_number("notice_prob", notice_prob, 0.0, 1.0),
        speed_mean=mean,
        speed_deviation=deviation,
        speed_low=low,
        speed_high=high,
        radius_low=radius_low,
        radius_high=radius_high,
        side=np.array([-0.3, 0.3]),
        **sensor.settings,
        **{
            name: legal_number(name, value, 0.0, 1e6)
            for name, value in {
                "progress_weight": progress_weight,
                "time_penalty": time_penalty,
                "discomfort_weight": discomfort_weight,
                "goal_reward": goal_reward,
                "collision_penalty": collision_penalty,
            }.items()
        },
        discomfort_distance=legal_number("discomfort_distance", discomfort_distance, 1e-3, 10.0),
    )
    initial_state = partial(
        scenarios.initial_state,
        place=scenarios.SCENARIOS[legal_scenario(scenario)],
        slots=slots,
        remember=sensor.remember,
        memory=sensor.memory,
    )
    command = dynamics.continuous_command if continuous else dynamics.discrete_command
    return World(
        params=params,
        initial_state=initial_state,
        transition=partial(dynamics.transition, command=command, remember=sensor.remember),
        outcome=dynamics.outcome,
        observe=sensor.observe,
        action_space=spaces.Box(-1.0, 1.0, (2,), np.float32) if continuous else spaces.Discrete(9),
        observation_space=sensor.space,
        reset_draws=scenarios.count_draws(*slots, sensor.draws),
        step_draws=sensor.draws,
        info=dynamics.info,
        labels={"outcome": OUTCOMES},
        reset_with=partial(reset_with, initial_state=initial_state),
        draw=draw,
        ansi=ansi,
        render_fps=10,
    )


class _Sensor:
    """What belongs to one kind of observation."""

    def __init__(
        self,
        observe: Any,
        size: int | dict[str, int],
        settings: dict[str, Any],
        remember: Any = observation.keep_nothing,
        memory: int = 0,
        draws: int = 0,
    ):
        self.observe, self.settings = observe, settings
        self.remember, self.memory, self.draws = remember, memory, draws
        boxes: dict[str, spaces.Space] = {
            key: spaces.Box(-1.0, 1.0, (n,), np.float32)
            for key, n in ({"": size} if isinstance(size, int) else size).items()
        }
        self.space = boxes[""] if isinstance(size, int) else spaces.Dict(boxes)


def _rays(count: int = RAYS, cone: float | None = None, max_range: float = 6.0) -> dict[str, Any]:
    """Settings of rays over a full circle from ahead on, or over a cone from right to left (degrees)."""
    if cone is None:
        angles, ends = [2.0 * math.pi * k / count for k in range(count // 2)], [1.0, -1.0]
    else:
        angles, ends = [math.radians(cone) * (k / (count - 1) - 0.5) for k in range(count)], [1.0]
    return {"max_range": max_range, "ray_cos": np.cos(angles), "ray_sin": np.sin(angles), "ray_ends": np.array(ends)}


_NOISE = {"range_noise": 0.01, "relative_range_noise": 0.01, "drop_out": 0.03}
_SENSORS = {
    "lidar": lambda p, o: _Sensor(observation.lidar, 2 * RAYS + 6, _rays()),
    "lidar_stack": lambda p, o: _Sensor(observation.lidar_stack, 2 * RAYS + 6, _rays(), observation.keep_scan, RAYS),
    "partial": lambda p, o: _Sensor(
        observation.partial, RAYS + 6, _rays(RAYS, 120.0, 3.0) | _NOISE, observation.keep_noise, RAYS, 2 * RAYS
    ),
    "camera": lambda p, o: _Sensor(observation.camera, 3 * CAMERA_RAYS + 5, _rays(CAMERA_RAYS, 90.0)),
    "state": lambda p, o: _Sensor(observation.everything, 7 + 5 * p + 3 * o, _rays()),
    "dict": lambda p, o: _Sensor(observation.parts_by_name, {"lidar": 2 * RAYS, "odometry": 2, "goal": 3}, _rays()),
}


def _speeds(value: Any) -> tuple[float, ...]:
    """Mean, deviation, low and high of the desired speeds."""
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        raise ValueError(f"pedestrian_speed must be mean, deviation, low and high in m/s, not {value!r}")
    mean, deviation, low, high = (legal_number("pedestrian_speed", part, 0.0, 3.0) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_speed must have low <= high, not {value!r}")
    return mean, deviation, low, high


def _radii(value: Any, count: int) -> tuple[float, float]:
    """Least and largest radius of pedestrians; so many must fit on the circle."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"pedestrian_radius must be low and high in m, not {value!r}")
    low, high = (legal_number("pedestrian_radius", part, 0.1, 0.35) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_radius must have low <= high, not {value!r}")
    room = scenarios.least_distance_on_ring(count)
    if 2.0 * high > room:
        raise ValueError(f"{count} pedestrians of radius {high:g} m do not fit on the circle; at most {room / 2:.3f} m")
    return low, high


class MyEnv(SingleEnv):
    """A robot with a range finder drives to a goal through a room of pedestrians and obstacles.

    ## Description
    A square room, 10 m wide. The robot is a unicycle with limited acceleration; pedestrians walk to way-points of
    their own under social forces (Helbing & Molnar 1995; Helbing, Farkas & Vicsek 2000; with a share to the right as
    in Moussaid et al. 2009); obstacles are discs. A step lasts 0.2 s in two substeps, so 200 steps are 40 s; the
    direct trip takes about 41 steps. Collisions are swept: the world stops at the very moment of the first touch.
    All randomness is drawn at reset (but for the noise of `observation="partial"`), so a step is deterministic.

    **What is hidden, and why.** The robot sees ranges, its own motion and the goal. It does not see where pedestrians
    want to go, nor whether they have noticed it: `notice_prob` of them step aside for it, the others walk on as if
    it were not there. People cannot be asked, so a good policy has to infer both from how the ranges change.

    ## Action Space
    `Discrete(9)`: 3 * speed + turn, with speed 0, 0.5, 1.0 m/s and turn +1.5 (left), 0, -1.5 rad/s (right); 1 stops,
    7 is full ahead. With `continuous=True` a `Box(-1, 1, (2,))`: speed (a0 + 1) / 2 m/s and turn rate 1.5 a1 rad/s.
    Speed and turn rate approach the commanded ones by at most 2 m/s^2 and 6 rad/s^2.

    ## Observation Space
    `Box(-1, 1, (78,), float32)`:

    | index | observation | unit of 1 | min | max |
    |---|---|---|---|---|
    | 0-35 | range of ray k at 10 k degrees, ray 0 ahead, counter-clockwise | 6 m | 0 | 1 |
    | 36-71 | velocity along ray k of the pedestrian it meets, negative if approaching | 2 m/s | -1 | 1 |
    | 72 | distance to the goal | diagonal of the room | 0 | 1 |
    | 73, 74 | cosine and sine of the bearing of the goal | 1 | -1 | 1 |
    | 75 | speed | 1 m/s | 0 | 1 |
    | 76 | turn rate | 1.5 rad/s | -1 | 1 |
    | 77 | smallest range | 6 m | 0 | 1 |

    Other values of `observation`:

    - `"lidar_stack"`, (78,): as above with the ranges of the step before instead of velocities.
    - `"partial"`, (42,): 36 rays over a cone of 120 degrees from right to left, at most 3 m, with noise of
      1 cm + 1 % and 3 % drop-outs that read 3 m; then as 72 to 77.
    - `"camera"`, (77,): 24 rays over 90 degrees from right to left: ranges, whether each met a pedestrian, whether
      an obstacle; then goal (3), speed, turn rate.
    - `"state"`, (7 + 5 P + 3 O,), privileged: goal distance and position, speed, turn rate, cosine and sine of the
      heading; each pedestrian's position, velocity and radius, the nearest first; each obstacle's position and
      radius. All in the robot's frame; positions in room diagonals, velocities in 2 m/s, radii in m, zeros if absent.
    - `"dict"`: `goal` (72-74), `lidar` (0-71) and `odometry` (75, 76) apart.

    ## Rewards
    Each step earns `progress_weight` (60) times the progress as a share of the first distance to the goal, minus
    `time_penalty` (0.1), minus `discomfort_weight` (1) times clip(1 - gap / `discomfort_distance` (0.25 m), 0, 1)
    for the smallest gap to a pedestrian within the step; `goal_reward` (60) at the goal, minus `collision_penalty`
    (60) at a collision. A clean trip earns 112-113, standing still -20. The threshold of `MyEnv-v0` is 100.

    ## Starting State
    Robot and goal on opposite sides of a circle of radius 4 m, pedestrians on the two arcs between them, obstacles
    in cells of a 3 x 3 lattice. `reset(options=...)` takes for one episode: `scenario` ("circle", "square",
    "corridor", "parallel", "static"), `n_pedestrians`, `n_obstacles` (at most those of the constructor),
    `notice_prob`, `robot_pose` [x, y, heading], `goal` [x, y], `case` (0 to 499: the same as
    `seed=CASE_SEEDS[case]`), or `layout`, a dictionary as `layout()` gives it.

    ## Episode End
    Termination: the robot's centre is within 0.4 m of the goal, or the robot touches a pedestrian, an obstacle or a
    wall; the earlier wins. Truncation: after 200 steps.

    ## Info
    At reset and on every step: `goal_distance` (m), `min_gap` (m, to a pedestrian within this step; the lidar's range
    without pedestrians), `is_success`, `outcome` ("running", "success", "pedestrian", "obstacle", "wall"),
    `nav_time` (s), `path_length` (m), `spl` (success weighted by path length, Anderson et al. 2018),
    `discomfort_ratio` (share of steps with a gap below the discomfort distance), `hit_while_parked`.

    ## Arguments
    `n_pedestrians` (0-14), `n_obstacles` (0-9), `notice_prob`, `scenario`, `observation`, `continuous`,
    `pedestrian_speed` (mean, deviation, low, high in m/s), `pedestrian_radius` (low, high in m), and the weights of
    the reward. Registered with other settings: `MyEnvStatic-v0` (nobody walks there), `MyEnvDense-v0` (8 pedestrians,
    4 obstacles, half notice), `MyEnvHard-v0` (12, nobody notices, some are fast), `MyEnvPartial-v0`.

    ## Constants
    Radii 0.3 m. Social force: relaxation time 0.5 s, lambda 0.5, A = 8 m/s^2 and B = 0.25 m for people, obstacles and
    walls alike, tangential share 0.3, top speed 1.3 times the desired one. Besides, nobody closes more than half a
    gap within a substep, so nobody ever enters a pedestrian, an obstacle or a wall.

    ## Vectorized environment
    `gymnasium.make_vec("MyEnv-v0", num_envs=N)` makes `MyVectorEnv`, equal to a `SyncVectorEnv` to the bit.

    ## Version History
    * v0: first version.
    """

    world = "gym_custom.my_env:make_world"

    def layout(self) -> dict[str, Any]:
        """Where everything is now, in the form that ``reset(options={"layout": ...})`` takes."""
        return to_layout(self.get_state().state)


class MyVectorEnv(BatchEnv):
    """Many of `MyEnv` at once; the page is there."""

    world = "gym_custom.my_env:make_world"
