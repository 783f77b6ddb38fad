"""A robot with a lidar among pedestrians."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.arguments import legal_choice, legal_flag, legal_integer, legal_number
from gym_custom.my_env import dynamics, scenarios
from gym_custom.my_env.arguments import legal_radii, legal_speeds, legal_weights
from gym_custom.my_env.draw import ansi, draw
from gym_custom.my_env.layout import to_layout
from gym_custom.my_env.options import CASE_SEEDS, SELECTION_SEEDS, reset_with
from gym_custom.my_env.scenarios import SCENARIOS
from gym_custom.my_env.sensors import SENSORS
from gym_custom.my_env.state import OUTCOMES, Params
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World

__all__ = ["CASE_SEEDS", "SELECTION_SEEDS", "MyEnv", "MyVectorEnv", "make_world"]

MOST_PEDESTRIANS, MOST_OBSTACLES = 14, 9


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
        TypeError: An argument is of another type.
    """
    slots = (
        legal_integer("n_pedestrians", n_pedestrians, 0, MOST_PEDESTRIANS),
        legal_integer("n_obstacles", n_obstacles, 0, MOST_OBSTACLES),
    )
    sensor = SENSORS[legal_choice("observation", observation, SENSORS)](*slots)
    params = Params(
        n_pedestrians=float(slots[0]),
        n_obstacles=float(slots[1]),
        notice_prob=legal_number("notice_prob", notice_prob, 0.0, 1.0),
        **legal_speeds(pedestrian_speed),
        **legal_radii(pedestrian_radius, slots[0]),
        side=np.array([-0.3, 0.3]),
        **sensor.settings,
        **legal_weights(
            progress_weight=progress_weight,
            time_penalty=time_penalty,
            discomfort_weight=discomfort_weight,
            goal_reward=goal_reward,
            collision_penalty=collision_penalty,
        ),
        discomfort_distance=legal_number("discomfort_distance", discomfort_distance, 1e-3, 10.0),
    )
    initial_state = partial(
        scenarios.initial_state,
        place=SCENARIOS[legal_choice("scenario", scenario, SCENARIOS)],
        slots=slots,
        remember=sensor.remember,
        memory=sensor.memory,
    )
    continuous = legal_flag("continuous", continuous)
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


class MyEnv(SingleEnv):
    """A robot with a range finder drives to a goal through a room of pedestrians and obstacles.

    ## Description
    A square room, 10 m wide. The robot is a unicycle with limited acceleration; pedestrians walk to way-points of
    their own and back under social forces; obstacles are discs. A step lasts 0.2 s in two substeps, so 200 steps are
    40 s; the direct trip takes about 41 steps. Collisions are swept: the world stops at the very moment of the first
    touch, and nothing passes through anything between two steps. All randomness is drawn at reset (but for the noise
    of `observation="partial"`), so a step is deterministic.

    **What is hidden, and why.** The robot sees ranges, its own motion and the goal. It does not see where pedestrians
    want to go, how fast they would like to walk, nor whether they have noticed it: a share `notice_prob` of them
    steps aside for it, the others walk on as if it were not there. People in a hall cannot be asked, and a robot that
    knew would not have to be careful. So the world is partially observed by design: a good policy infers intentions
    from how ranges change and keeps a way out for the case that nobody gives way. `observation="state"` shows
    positions and velocities, still no intentions; what a sensor costs is the difference to it.

    ## Action Space
    `Discrete(9)`, the action being 3 * speed level + turn:

    | action | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
    |---|---|---|---|---|---|---|---|---|---|
    | speed (m/s) | 0 | 0 | 0 | 0.5 | 0.5 | 0.5 | 1 | 1 | 1 |
    | turn rate (rad/s) | 1.5 | 0 | -1.5 | 1.5 | 0 | -1.5 | 1.5 | 0 | -1.5 |

    Positive turns left; 1 stops, 7 is full ahead. With `continuous=True` a `Box(-1, 1, (2,), float32)`: speed
    (a0 + 1) / 2 m/s and turn rate 1.5 a1 rad/s. Speed and turn rate approach the commanded ones by at most 2 m/s^2
    and 6 rad/s^2.

    ## Observation Space
    `Box(-1, 1, (78,), float32)`; values are given in the unit named:

    | index | meaning | unit | min | max |
    |---|---|---|---|---|
    | 0-35 | range of ray k at 10 k degrees, ray 0 ahead, counter-clockwise | 6 m | 0 | 1 |
    | 36-71 | velocity along ray k of the pedestrian it meets, negative if approaching, else 0 | 2 m/s | -1 | 1 |
    | 72 | distance to the goal | diagonal of the room | 0 | 1 |
    | 73, 74 | cosine and sine of the bearing of the goal | 1 | -1 | 1 |
    | 75 | speed | 1 m/s | 0 | 1 |
    | 76 | turn rate | 1.5 rad/s | -1 | 1 |
    | 77 | smallest range | 6 m | 0 | 1 |

    Other values of `observation`, each a `Box(-1, 1, ..., float32)` too:

    `"lidar_stack"`, (78,): as above, but 36-71 are the ranges of the step before, in 6 m, from 0 to 1.

    `"partial"`, (42,), narrow, short-sighted and noisy (normal noise of 1 cm + 1 %, and 3 % of the rays read 3 m); this
    is `MyEnvPartial-v0`:

    | index | meaning | unit | min | max |
    |---|---|---|---|---|
    | 0-35 | range of ray k at -60 + 120 k / 35 degrees, right to left | 3 m | 0 | 1 |
    | 36-41 | as 72-77 above, the smallest range of these | | -1 | 1 |

    `"camera"`, (77,):

    | index | meaning | unit | min | max |
    |---|---|---|---|---|
    | 0-23 | range of ray k at -45 + 90 k / 23 degrees, right to left | 6 m | 0 | 1 |
    | 24-47 | 1 where ray k meets a pedestrian | 1 | 0 | 1 |
    | 48-71 | 1 where ray k meets an obstacle | 1 | 0 | 1 |
    | 72-76 | as 72-76 above | | -1 | 1 |

    `"state"`, (7 + 5 P + 3 O,) for P pedestrians and O obstacles, in the robot's frame; zeros for those absent:

    | index | meaning | unit | min | max |
    |---|---|---|---|---|
    | 0 | distance to the goal | diagonal of the room | 0 | 1 |
    | 1, 2 | position of the goal, ahead and to the left | diagonal of the room | -1 | 1 |
    | 3, 4 | speed, turn rate | 1 m/s, 1.5 rad/s | -1 | 1 |
    | 5, 6 | cosine and sine of the heading in the room | 1 | -1 | 1 |
    | 7 + 5 k to 11 + 5 k | k-th nearest pedestrian: position, velocity, radius | diagonal, 2 m/s, 1 m | -1 | 1 |
    | then 3 each | k-th nearest obstacle: position, radius | diagonal, 1 m | -1 | 1 |

    `"dict"`: a `Dict` of `goal` (3,) (72-74), `lidar` (72,) (0-71) and `odometry` (2,) (75, 76).

    ## Rewards
    Each step earns `progress_weight` (60) times the progress as a share of the first distance to the goal, minus
    `time_penalty` (0.1), minus `discomfort_weight` (1) times clip(1 - gap / `discomfort_distance` (0.25 m), 0, 1)
    for the smallest gap to a pedestrian within the step (linear, as that of Chen et al. 2017); `goal_reward` (60) at
    the goal, minus `collision_penalty` (60) at a collision. Progress is a potential (Ng, Harada & Russell 1999): over
    an episode it adds up to the share of the way that was made good, however the robot went. A clean trip earns
    112-113, standing still -20. The threshold of `MyEnv-v0` is 100.

    ## Starting State
    Robot and goal on opposite sides of a circle of radius 4 m, the heading within 0.5 rad of the goal; pedestrians on
    the two arcs between them, who walk to about the opposite point of the circle and back; obstacles in different
    cells of a 3 x 3 lattice. Nothing overlaps by construction, and a ring around the lattice is always free.

    `reset(options=...)` takes for one episode: `scenario`, `n_pedestrians`, `n_obstacles` (at most those of the
    constructor), `notice_prob`, `robot_pose` [x, y, heading], `goal` [x, y], `case` (0 to 499: the same as
    `seed=CASE_SEEDS[case]`), or `layout`, a dictionary as `layout()` gives it: JSON, in which `robot` and `goal` must
    stand, and of each pedestrian its `position`. Scenarios:

    | name | what happens |
    |---|---|
    | `"circle"` | as described |
    | `"square"` | the robot crosses a square of 9 m, pedestrians walk at right angles to its way |
    | `"corridor"` | between walls 2.4 m apart, pedestrians walk both ways, each on the right |
    | `"parallel"` | all walk the robot's way, at six tenths of their usual speed |
    | `"static"` | nobody moves |

    ## Episode End
    Termination: the robot's centre is within 0.4 m of the goal, or the robot touches a pedestrian, an obstacle or a
    wall; the earlier wins. Truncation: after 200 steps.

    ## Info
    The same keys at reset and on every step:

    | key | meaning |
    |---|---|
    | `goal_distance` | m |
    | `min_gap` | smallest gap to a pedestrian within this step, m; the lidar's range without pedestrians |
    | `outcome` | "running", "success", "pedestrian", "obstacle" or "wall"; "running" at truncation is a timeout |
    | `is_success` | whether the goal is reached |
    | `nav_time` | s since the start |
    | `path_length` | m driven |
    | `spl` | success times first distance / the larger of it and the path (Anderson et al. 2018, with a disc as goal) |
    | `discomfort_ratio` | share of steps with a gap below the discomfort distance |
    | `hit_while_parked` | whether a pedestrian walked into the robot while it stood still |

    ## Arguments
    | argument | default | meaning |
    |---|---|---|
    | `n_pedestrians`, `n_obstacles` | 4, 3 | how many, at most 14 and 9 |
    | `notice_prob` | 0.75 | probability that a pedestrian reacts to the robot: how hard it is |
    | `scenario` | `"circle"` | see Starting State |
    | `observation` | `"lidar"` | see Observation Space |
    | `continuous` | False | whether actions are a `Box` |
    | `pedestrian_speed` | (0.9, 0.2, 0.5, 1.3) | m/s: mean, deviation, low, high of a clipped normal distribution |
    | `pedestrian_radius` | (0.3, 0.3) | m: low and high of a uniform distribution, from 0.1 to 0.35 |
    | weights | | the six that Rewards names |

    Registered with other settings:

    | id | settings |
    |---|---|
    | `MyEnvStatic-v0` | no pedestrians |
    | `MyEnvDense-v0` | 8 pedestrians, 4 obstacles, half notice |
    | `MyEnvHard-v0` | 12 pedestrians, nobody notices, radius 0.2-0.35 m, speed (1.0, 0.3, 0.4, 1.6) |
    | `MyEnvPartial-v0` | `observation="partial"` |

    ## Dynamics
    - Robot: for constant speed v and turn rate w during h seconds, half = w h / 2 and chord = v h sin(half) / half;
      it moves by chord in the direction heading + half: the exact arc (Thrun, Burgard & Fox 2005, section 5.3).
    - Pedestrians: acceleration (v0 e - u) / tau + sum of A exp(-gap / B) n w(phi), with the desired speed v0, the
      direction e to the way-point, tau = 0.5 s, A = 8 m/s^2, B = 0.25 m for people, obstacles, walls and a noticed
      robot alike (Helbing & Molnar 1995; the exponential of the gap: Helbing, Farkas & Vicsek 2000, eq. 2), and
      w = lambda + (1 - lambda) (1 + cos phi) / 2, lambda = 0.5, so that what lies behind counts less (Johansson,
      Helbing & Shukla 2007); phi is the angle between e and the direction to whatever pushes. A share of 0.3 of each
      push of a disc points to the right, since people keep to one side (Moussaid et al. 2009).
      Semi-implicit Euler; top speed 1.3 v0. Besides, nobody closes more than half a gap within a substep, which
      forces alone do not ensure: under the registered settings nobody enters a pedestrian, an obstacle or a wall by
      more than 1 cm. Only where many hurry, 14 people who all walk faster than 1.5 m/s, do they squeeze each other.
    - Rays and touches: a ray from the origin in direction q meets a disc with centre p and radius r where
      |p - q t| = r; a moving disc touches another where the same holds for the sum of the radii. One function solves
      both, so what the robot sees, what it hits and what is drawn agree (Ericson 2005, section 5.5). The robot's
      radius is 0.3 m, those of obstacles are 0.25-0.45 m.

    ## Vectorized environment
    `gymnasium.make_vec("MyEnv-v0", num_envs=N)` makes `MyVectorEnv`, equal to a `SyncVectorEnv` to the bit.
    `reset(seed=CASE_SEEDS[:N])` starts N of the 500 fixed evaluation cases; `SELECTION_SEEDS` are 100 others, to
    choose checkpoints with.

    ## References
    - D. Helbing and P. Molnar, "Social force model for pedestrian dynamics", Physical Review E 51, 1995.
    - D. Helbing, I. Farkas and T. Vicsek, "Simulating dynamical features of escape panic", Nature 407, 2000.
    - A. Johansson, D. Helbing and P. Shukla, "Specification of a microscopic pedestrian model by evolutionary
      adjustment to video tracking data", Advances in Complex Systems 10, 2007.
    - M. Moussaid et al., "Experimental study of the behavioural mechanisms underlying self-organization in human
      crowds", Proceedings of the Royal Society B 276, 2009.
    - A. Y. Ng, D. Harada and S. Russell, "Policy invariance under reward transformations", ICML 1999.
    - S. Thrun, W. Burgard and D. Fox, "Probabilistic robotics", MIT Press 2005.
    - C. Ericson, "Real-time collision detection", Morgan Kaufmann 2005.
    - Y. F. Chen, M. Liu, M. Everett and J. P. How, "Decentralized non-communicating multiagent collision avoidance with
      deep reinforcement learning", ICRA 2017.
    - P. Anderson et al., "On evaluation of embodied navigation agents", arXiv 1807.06757, 2018.

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
