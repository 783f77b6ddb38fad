"""The range finder against ray-by-ray arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_custom.my_env import make_world
from gym_custom.my_env.layout import to_layout
from gym_custom.my_env.lidar import scan
from gym_custom.my_env.state import State
from gym_custom.world import plain_params

WORLD = make_world(n_pedestrians=5, n_obstacles=4)
PARAMS = plain_params(WORLD.params)
RAYS = 36


def place(robot=(0.0, 0.0, 0.0), pedestrians=(), obstacles=(), room=(5.0, 5.0)):
    """A state with discs (x, y, r) and, for pedestrians, a velocity; no test of overlaps."""
    state = WORLD.initial_state(np, PARAMS, np.full(WORLD.reset_draws, 0.5))
    people = [*pedestrians, *[(100.0, 100.0, 0.0, 0.0, 0.0)] * (5 - len(pedestrians))]
    things = [*obstacles, *[(100.0, 100.0, 0.0)] * (4 - len(obstacles))]
    people, things = np.array(people, float).T, np.array(things, float).T
    return state._replace(
        position=np.array(robot[:2]), heading=np.float64(robot[2]), room=np.array(room),
        pedestrians=people[:2], pedestrian_radii=people[2], velocities=people[3:],
        obstacles=things[:2], obstacle_radii=things[2],
    )  # fmt: skip


def ray_to_disc(origin, angle, disc):
    """Textbook: project the centre onto the ray, then step back by half the chord."""
    dx, dy = disc[0] - origin[0], disc[1] - origin[1]
    if math.hypot(dx, dy) <= disc[2]:
        return 0.0
    along = dx * math.cos(angle) + dy * math.sin(angle)
    across = dx * math.sin(angle) - dy * math.cos(angle)
    if abs(across) > disc[2] or along < 0.0:
        return math.inf
    return along - math.sqrt(disc[2] ** 2 - across**2)


def ray_to_walls(origin, angle, room):
    """Textbook: the wall of each axis that the ray points at."""
    found = math.inf
    for place, direction, half in zip(origin[:2], (math.cos(angle), math.sin(angle)), room, strict=True):
        if abs(direction) > 1e-12:
            found = min(found, (math.copysign(half, direction) - place) / direction)
    return found


def oracle(robot, discs, room, max_range=6.0):
    angles = [robot[2] + 2 * math.pi * k / RAYS for k in range(RAYS)]
    return np.array(
        [min([max_range, ray_to_walls(robot, a, room), *(ray_to_disc(robot, a, d) for d in discs)]) for a in angles]
    )


coordinate = st.floats(-4.5, 4.5)
disc = st.tuples(coordinate, coordinate, st.floats(0.05, 0.8))


@settings(max_examples=400, deadline=None)
@given(
    robot=st.tuples(coordinate, coordinate, st.floats(-math.pi, math.pi)),
    people=st.lists(disc, max_size=5),
    things=st.lists(disc, max_size=4),
    room=st.tuples(st.floats(4.6, 12.0), st.floats(4.6, 12.0)),
)
def test_ranges_equal_the_textbook(robot, people, things, room):
    found = scan(np, PARAMS, place(robot, [(*p, 0.0, 0.0) for p in people], things, room)).ranges
    discs = [*people, *things]
    # a ray that just grazes may count as a hit or as a miss
    lower = oracle(robot, [(x, y, r + 1e-7) for x, y, r in discs], room)
    upper = oracle(robot, [(x, y, r - 1e-7) for x, y, r in discs], room)
    assert (found >= lower - 1e-5).all()
    assert (found <= upper + 1e-5).all()


def test_a_tangent_ray_ends_where_it_touches_or_passes():
    above = scan(np, PARAMS, place(obstacles=[(2.0, 0.3 - 1e-9, 0.3)])).ranges[0]
    assert above == pytest.approx(2.0, abs=1e-3)
    assert scan(np, PARAMS, place(obstacles=[(2.0, 0.3 + 1e-9, 0.3)])).ranges[0] == pytest.approx(5.0)


def test_inside_a_disc_every_range_is_zero():
    assert scan(np, PARAMS, place(obstacles=[(0.1, 0.0, 0.5)])).ranges == pytest.approx(np.zeros(RAYS), abs=1e-8)


def test_straight_into_walls_and_corners():
    ranges = scan(np, PARAMS, place(room=(4.0, 3.0))).ranges
    assert ranges[[0, 9, 18, 27]] == pytest.approx([4.0, 3.0, 4.0, 3.0])
    corner = scan(np, PARAMS, place((0.0, 0.0, math.pi / 4), room=(3.0, 3.0))).ranges[0]
    assert corner == pytest.approx(3.0 * math.sqrt(2.0))


def test_an_empty_hall_reads_the_maximum_everywhere():
    assert (scan(np, PARAMS, place(room=(14.0, 14.0))).ranges == 6.0).all()


def test_turning_by_one_ray_shifts_the_scan_by_one():
    people, things = [(1.5, 0.7, 0.3, 0.4, -0.2)], [(-2.0, 1.0, 0.4), (0.5, -2.5, 0.3)]
    before = scan(np, PARAMS, place((0.3, -0.4, 0.2), people, things))
    after = scan(np, PARAMS, place((0.3, -0.4, 0.2 + 2 * math.pi / RAYS), people, things))
    for first, second in zip(before, after, strict=True):
        assert np.allclose(np.roll(first, -1), second, atol=1e-9)


def test_rays_run_counter_clockwise_from_ahead():
    ranges = scan(np, PARAMS, place((0.0, 0.0, math.pi / 2), obstacles=[(0.0, 2.0, 0.3)])).ranges
    assert np.argmin(ranges) == 0
    ranges = scan(np, PARAMS, place(obstacles=[(0.0, 2.0, 0.3)])).ranges
    assert np.argmin(ranges) == RAYS // 4


def test_range_rates_are_the_walkers_speed_along_the_ray():
    seen = scan(np, PARAMS, place(pedestrians=[(2.0, 0.0, 0.3, -0.8, 0.5)], obstacles=[(-2.0, 0.0, 0.3)]))
    assert seen.rates[0] == pytest.approx(-0.8)
    assert seen.rates[18] == 0.0
    assert seen.pedestrian[0]
    assert seen.obstacle[18]
    assert not seen.pedestrian[18]
    assert np.count_nonzero(seen.rates) == np.count_nonzero(seen.pedestrian)


def test_the_nearer_of_two_walkers_gives_the_rate_and_an_obstacle_hides_one():
    people = [(3.0, 0.0, 0.3, 1.0, 0.0), (2.0, 0.0, 0.3, -0.5, 0.0)]
    assert scan(np, PARAMS, place(pedestrians=people)).rates[0] == -0.5
    assert scan(np, PARAMS, place(pedestrians=people, obstacles=[(1.0, 0.0, 0.3)])).rates[0] == 0.0


def test_a_batch_has_the_bits_of_each_row():
    rng = np.random.default_rng(0)
    batch = WORLD.initial_state(np, PARAMS, rng.random((WORLD.reset_draws, 37)))
    whole = scan(np, PARAMS, batch)
    for row in range(37):
        one = scan(np, PARAMS, State(*(leaf[..., row] for leaf in batch)))
        assert all(np.array_equal(a[..., row], b) for a, b in zip(whole, one, strict=True))


def test_ranges_grow_as_an_obstacle_moves_away():
    ranges = [scan(np, PARAMS, place(obstacles=[(d, 0.1, 0.3)])).ranges[0] for d in np.linspace(0.4, 4.0, 40)]
    assert (np.diff(ranges) > 0).all()
    assert to_layout(place())["pedestrians"] == []
