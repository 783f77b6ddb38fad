"""Recorded rules against the rules themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_custom.drivers.batch_rules import CalledRules, batch_rules
from gym_custom.drivers.recorded_rules import RecordedRules, TiledRules
from gym_custom.drivers.scalar_math import scalar_namespace
from gym_custom.drivers.state_layout import StateLayout
from gym_custom.recording.binding import Scratch, bind
from gym_custom.recording.plain_python import compiled
from gym_custom.recording.program import record
from gym_custom.recording.symbols import Table
from gym_custom.world import load_world, plain_params

TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6])

UNARY = [
    lambda xp, a: -a,
    lambda xp, a: abs(a),
    lambda xp, a: xp.sin(a),
    lambda xp, a: xp.floor(a),
    lambda xp, a: xp.where(a > 0.25, a, -a),
    lambda xp, a: xp.where(xp.logical_not(a > 0.25), 1.0, a),
    lambda xp, a: xp.where(a > 0.0, 2.0, 2.0) * a,
    lambda xp, a: xp.clip(a, -0.5, 0.5),
    lambda xp, a: xp.astype(a, int) * 0.5,
    lambda xp, a: xp.sqrt(xp.maximum(a, 0.0)),
    lambda xp, a: 3 - a,
    lambda xp, a: 1.1 / (a * a + 0.1),
]
BINARY = [
    lambda xp, a, b: a + b,
    lambda xp, a, b: a - b,
    lambda xp, a, b: a * b,
    lambda xp, a, b: a / (abs(b) + 1.0),
    lambda xp, a, b: xp.minimum(a, b),
    lambda xp, a, b: xp.where((a < b) & (a != 0.5), a, b * 2.0),
    lambda xp, a, b: xp.where((a >= b) | (b == 1.0), b, xp.cos(a)),
]


def rule_of(recipe: list[tuple[int, int, int]]):
    """A rule of three inputs that applies the recipe's functions one after the other and returns its last values."""

    def rule(xp, *inputs):
        values = list(inputs)
        for function, i, j in recipe:
            a, b = values[i % len(values)], values[j % len(values)]
            unary = function < len(UNARY)
            values.append(UNARY[function](xp, a) if unary else BINARY[function - len(UNARY)](xp, a, b))
        return (*values[-3:], inputs[0], 4.0, values[-1] > 0.0)

    return rule


recipes = st.lists(
    st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(
    recipe=recipes, dtype=st.sampled_from([np.float64, np.float32]), rows=st.integers(1, 40), seed=st.integers(0, 99)
)
def test_replaying_gives_the_bits_of_the_rule(recipe, dtype, rows, seed):
    rule = rule_of(recipe)
    inputs = [column.astype(dtype) for column in np.random.default_rng(seed).uniform(-1.0, 1.0, (3, rows))]
    wanted = [np.broadcast_to(value, rows) for value in rule(np, *inputs)]
    program = record(rule, [dtype] * 3)
    outputs = [np.full(rows, 77).astype(value.dtype) for value in wanted]
    plan = bind(program, inputs, outputs, Scratch())
    kept = [column.copy() for column in inputs]
    for _ in range(2):  # a plan may be run again
        for function, operands in plan:
            function(*operands)
        for found, value in zip(outputs, wanted, strict=True):
            assert np.array_equal(found, value)
            assert found.dtype == value.dtype
    assert all(map(np.array_equal, inputs, kept))


@settings(max_examples=150, deadline=None)
@given(recipe=recipes, numbers=st.tuples(*[st.floats(-1.0, 1.0)] * 3))
def test_the_compiled_rule_gives_the_numbers_of_the_rule(recipe, numbers):
    rule, xp = rule_of(recipe), scalar_namespace()
    program = record(rule, [np.float64] * 3)
    assert compiled(program, xp, [3, None, None, 1])(*numbers) == _grouped(rule(xp, *numbers))


def _grouped(values):
    return values[:3], values[3], values[4], values[5:]


ARRAYS = [  # of (2, 3, n) arrays a and b, each gives such an array
    lambda xp, a, b: a + b[:1],
    lambda xp, a, b: xp.where(a > b, a, b * 0.5),
    lambda xp, a, b: xp.where(a[:, 0][:, None] > 0.0, 1.0, b),
    lambda xp, a, b: xp.where(a > 0.0, a, xp.where(b > 0.0, 0.25, a * b)),
    lambda xp, a, b: xp.stack([a[0] - b[1], a[1] * 2.0]),
    lambda xp, a, b: xp.concatenate([a[:, :1], b[:, 1:] + 1.0], axis=1),
    lambda xp, a, b: xp.concatenate([(a[:, 0] - b[:, 0])[:, None], xp.sin(a)[:, :2]], axis=1),
    lambda xp, a, b: xp.concatenate([a[0][None] * b[0][None], (b[1] * 3.0)[None]], axis=0),
    lambda xp, a, b: a - xp.min(b, axis=1)[:, None],
    lambda xp, a, b: xp.where(xp.any(a > b, axis=0), a, 0.0),
    lambda xp, a, b: xp.reshape(xp.concatenate([a, b])[::-1][:2], (2, 3, *a.shape[2:])),
    lambda xp, a, b: xp.take_along_axis(a, xp.argsort(b, axis=1), axis=1),
    lambda xp, a, b: xp.moveaxis(xp.stack([a[:, 1], b[:, 2], a[:, 0]]), 0, 1),
    lambda xp, a, b: a.astype(int) + b,
    lambda xp, a, b: -b,
]


@settings(max_examples=150, deadline=None)
@given(
    recipe=st.lists(
        st.tuples(st.integers(0, len(ARRAYS) - 1), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20
    ),
    batch=st.sampled_from([(), (1,), (7,), (600,)]),
    seed=st.integers(0, 99),
)
def test_replaying_rules_of_arrays_gives_the_bits_of_the_rule(recipe, batch, seed):
    def rule(xp, *inputs):
        values = list(inputs)
        for function, i, j in recipe:
            values.append(ARRAYS[function](xp, values[i % len(values)], values[j % len(values)]))
        return (*values[-3:], values[-1][:, 1], inputs[0], 4.0)

    inputs = list(np.random.default_rng(seed).uniform(-1.0, 1.0, (3, 2, 3, *batch)))
    wanted = [np.asarray(value) for value in rule(np, *inputs)]
    program = record(rule, [(np.dtype(float), (2, 3, *batch))] * 3)
    outputs = [np.full(value.shape, 77).astype(value.dtype) for value in wanted]
    outputs[4] = inputs[0]
    kept = [array.copy() for array in inputs]
    plan = bind(program, inputs, outputs, Scratch())
    for _ in range(2):
        for function, operands in plan:
            function(*operands)
        for found, value in zip(outputs, wanted, strict=True):
            assert np.array_equal(found, value)
    assert all(map(np.array_equal, inputs, kept))


def test_parts_of_a_join_are_computed_in_their_place():
    def rule(xp, a):
        return (xp.sqrt(xp.concatenate([xp.stack([xp.sin(a), xp.cos(a)]), xp.exp(a)[None]])),)

    program = record(rule, [(np.dtype(float), (4,))])
    plan = bind(program, [np.ones(4)], [np.zeros((3, 4))], Scratch())
    assert [function for function, _ in plan] == [np.sin, np.cos, np.exp, np.sqrt]


def test_equal_operations_are_recorded_once_and_useless_ones_not_at_all():
    def rule(xp, a, b):
        xp.exp(b)
        return (xp.sin(a) + xp.sin(a), xp.where(a > 0.0, 1.0, 1.0))

    program = record(rule, [np.float64] * 2)
    assert [instruction.name for instruction in program.instructions] == ["sin", "add"]
    assert program.outputs[1] == 1.0


@pytest.mark.parametrize("drags", [False, True, np.True_])
def test_what_a_constant_condition_does_not_choose_is_not_computed(drags):
    def rule(xp, a, b):
        return (xp.where(drags, a * 0.1, xp.sin(a)), xp.where(drags, 1.0, 2), xp.where(drags, a, b))

    program = record(rule, [np.float32, np.float64])
    names = {instruction.name for instruction in program.instructions}
    assert names == ({"multiply", "astype"} if drags else {"sin"})
    a, b = np.array([0.1, 0.7, -3.0], np.float32), np.array([1.0, 2.0, 3.0])
    outputs = [np.empty(3, np.float32), np.empty(3), np.empty(3)]
    for function, operands in bind(program, [a, b], outputs, Scratch()):
        function(*operands)
    for output, expected in zip(outputs, rule(np, a, b), strict=True):
        assert (output == expected).all()


def test_buffers_are_used_again():
    def rule(xp, a):
        for _ in range(50):
            a = xp.sin(a) * 0.5 + xp.cos(a)
        return (a,)

    scratch, out = Scratch(), np.zeros(8)
    bind(record(rule, [np.float64]), [np.ones(8)], [out], scratch)
    assert len(scratch._all) <= 3


def test_tables_are_looked_up():
    program = record(lambda xp, i: (Table(TABLE)[i + 1] * 2, Table(TABLE)[-i]), [np.int64])
    index, outputs = np.array([0, 3, 6]), [np.zeros(3, np.int64), np.zeros(3, np.int64)]
    for function, operands in bind(program, [index], outputs, Scratch()):
        function(*operands)
    assert outputs[0].tolist() == [2, 10, 12]
    assert outputs[1].tolist() == [3, 9, 4]
    assert compiled(program, scalar_namespace(), [None, None])(3) == (10, 9)


@pytest.mark.parametrize(
    "rule",
    [
        lambda xp, a: (a if a > 0 else -a,),
        lambda xp, a: (a.min(axis=0),),
        lambda xp, a: (xp.concatenate([a, a]),),
        lambda xp, a: (a[0],),
        lambda xp, a: ([1, 2, 3][a],),
        lambda xp, a: (float(a),),
        lambda xp, a: (sum(a),),
        lambda xp, a: (np.sum(a),),
        lambda xp, a: (a**2,),
        lambda xp, a: (xp.cumsum(a),),
        lambda xp, a: (xp.where(np.array([True, False]), a, 0.0),),
    ],
)
def test_what_cannot_be_recorded_is_said_so(rule):
    assert record(rule, [np.float64]) is None


@pytest.mark.parametrize(
    ("name", "kwargs", "kind"),
    [
        ("NumpyCartPole-v1", {}, RecordedRules),
        ("NumpyCartPole-v1", {"precision": "float32"}, RecordedRules),
        ("GridWorld-v0", {"slip": 0.3, "random_goal": True}, RecordedRules),
        ("worlds:make_balloon", {}, RecordedRules),
        ("worlds:make_swarm", {}, TiledRules),
        ("MyEnv-v0", {}, TiledRules),
        ("MyEnvPartial-v0", {}, TiledRules),
        ("MyEnv-v0", {"observation": "state"}, TiledRules),
        ("worlds:make_swarm", {"counted": True}, CalledRules),
    ],
)
def test_elementwise_worlds_are_replayed(name, kwargs, kind):
    world, _ = load_world(name, **kwargs)
    params = plain_params(world.params)
    assert type(batch_rules(world, params, StateLayout(world, params), 3)) is kind
