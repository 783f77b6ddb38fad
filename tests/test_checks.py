# ruff: noqa: E501  (one planted fault a line)
"""`check_world` on planted faults, one of each kind, and on every world of the package."""

from __future__ import annotations

import functools
import importlib
import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_custom
from gym_custom import check_world, load_world
from gym_custom.checks import WorldCheckError

IDS = sorted(i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom"))

# A sound world with an array leaf: a walker on a line, and nine lamps that grow dim. The planted faults replace a part.
SOUND = '''
import functools
import math
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gym_custom import World
from gym_custom.rendering import Palette


class Params(NamedTuple):
    pull: float = 0.1
    goal: float = 1.0


class State(NamedTuple):
    x: Any       # (...)
    lamps: Any   # (9, ...)
    streak: Any  # (...), steps in a row on which the walker stood still


class Count:
    """Remembers how often it was asked."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls


COUNT = Count()


def initial_state(xp, params, u):
    return State(0.5 * u[0] - 0.25, 1.0 * u[1:], 0.0 * u[0])


def transition(xp, params, state, action, u=None):
    x = state.x + params.pull * (action - 1.0)
    streak = xp.where(action == 1.0, xp.minimum(state.streak + 1.0, 1000.0), 0.0 * state.streak)
    return State(x, 0.9 * state.lamps, streak)


def outcome(xp, params, state, action, next_state):
    light = functools.reduce(lambda a, b: a + b, [next_state.lamps[i] for i in range(9)])
    return light, abs(next_state.x) >= params.goal


def observe(xp, params, state):
    return state.x, state.lamps


def info(xp, params, state):
    return {"streak": state.streak}


def draw(canvas, params, state):
    canvas.begin((80, 40), (-2.0, -1.0, 2.0, 1.0))
    canvas.circle((float(state.x), 0.0), 0.3, Palette.AGENT)


def make_world(**changes):
    box = spaces.Box(-2.0, 2.0, (10,), np.float32)
    rules = dict(initial_state=initial_state, transition=transition, outcome=outcome, observe=observe, info=info)
    return World(Params(), **{**rules, "action_space": spaces.Discrete(3), "observation_space": box,
                              "reset_draws": 10, "draw": draw, **changes})
'''

numbers = itertools.count()


@pytest.fixture
def written(tmp_path, monkeypatch) -> Callable[..., Any]:
    """Writes the sound world with parts replaced as a module of its own and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(*replacements: tuple[str, str]) -> Any:
        source = SOUND
        for old, new in replacements:
            assert source.count(old) == 1, old
            source = source.replace(old, new)
        name = f"planted_{next(numbers)}"
        (tmp_path / f"{name}.py").write_text(source)
        return importlib.import_module(name)

    yield write
    for name in [name for name in sys.modules if name.startswith("planted_")]:
        del sys.modules[name]


def findings(world: gym_custom.World, **arguments: Any) -> str:
    with pytest.raises(WorldCheckError) as error:
        check_world(world, **arguments)
    assert all(finding in str(error.value) for finding in error.value.findings)
    return "\n".join(error.value.findings)


MORE_OF_THE_SAME = ("MyEnvDense-v0", "MyEnvHard-v0", "MyEnvStatic-v0")  # MyEnv-v0 with other counts


@pytest.mark.parametrize("env_id", [pytest.param(i, marks=[pytest.mark.slow] * (i in MORE_OF_THE_SAME)) for i in IDS])
def test_every_world_of_the_package_passes(env_id):
    check_world(load_world(env_id)[0])


long = functools.partial(pytest.param, marks=pytest.mark.slow)
SETTINGS = [
    ("NumpyCartPole-v1", {"precision": "float32"}),
    ("NumpyCartPole-v1", {"integrator": "semi-implicit", "cart_friction": 0.5, "gravity": 0.0}),
    ("GridWorld-v0", {"layout": "cliff", "slip": 0.3}),
    ("GridWorld-v0", {"layout": "four_rooms", "random_start": True, "random_goal": True, "observation": "goal"}),
    ("GridWorld-v0", {"layout": "small", "observation": "index"}),
    long("MyEnv-v0", {"continuous": True, "scenario": "corridor"}),
    long("MyEnv-v0", {"observation": "state", "n_pedestrians": 9, "n_obstacles": 9}),
    long("MyEnv-v0", {"observation": "camera", "n_pedestrians": 0, "n_obstacles": 0}),
]


@pytest.mark.parametrize(("env_id", "kwargs"), SETTINGS)
def test_other_settings_pass_too(env_id, kwargs):
    check_world(load_world(env_id, **kwargs)[0])


def test_a_list_may_grow_and_a_sum_may_begin_at_zero(written):
    grown = "    parts = [x]\n    parts += [streak]\n    total = 0.0\n    for part in parts:\n        total += part\n"
    check_world(written(("    return State(x, 0.9 *", grown + "    return State(x, 0.9 *")).make_world())


def test_the_sound_world_passes(written):
    check_world(written().make_world())


def test_something_else_than_a_world_is_refused(written):
    with pytest.raises(TypeError, match="takes a World"):
        check_world("NumpyCartPole-v1")


STEP = "    x = state.x + params.pull * (action - 1.0)\n"
LIGHT = "functools.reduce(lambda a, b: a + b, [next_state.lamps[i] for i in range(9)])"

# what is planted: (part of the sound world, what stands there instead, what the finding says)
PLANTED = {
    "branch": (STEP, STEP + "    if state.x is not None and state.x > 1e9:\n        x = 0.0 * x\n", "branches on a state value with 'if'"),
    "conditional expression": (STEP, STEP + "    x = x if u is None else (x if u[0] > 2 else x)\n", "with 'if'"),
    "and": (STEP, STEP + "    x = x * ((u is None or u[0] > 3) and 1.0)\n", "with 'or'"),
    "not": (STEP, STEP + "    far = [not v for v in [x] if u is not None]\n", "with 'not'"),
    "chained comparison": (STEP, STEP + "    far = u is not None and 0 < u[0] < 1\n", "with 'and'"),
    "while": (STEP, STEP + "    while u is not None and u[0] < 0.5:\n        u = u + 1.0\n", "with 'while'"),
    "assert": (STEP, STEP + "    assert u is None or u[0] < 2\n", "with 'assert'"),
    "branch on a parameter": (STEP, STEP + "    x = x if params.pull > 0 else 0.0 * x\n", "params.pull > 0"),
    "branch in a function called": (STEP, "    x = helper(state.x, params.pull * (action - 1.0))\n", "helper branches"),
    "builtin max": (STEP, STEP + "    x = x if u is None else max(x, u[0])\n", r"calls max\(\) on a state value"),
    "math": (STEP, STEP + "    x = x if u is None else math.sin(x)\n", "calls math.sin on a state value"),
    "invert": ("abs(next_state.x) >= params.goal", "~(abs(next_state.x) < params.goal)", "~True is -2"),
    "write in place": (STEP, STEP + "    state.lamps[0] = 1.0\n", r"writes into state.lamps\[0\] in place"),
    "write by operator": (STEP, "    x = state.x\n    x += params.pull * (action - 1.0)\n", "writes into x in place"),
    "write by method": (STEP, STEP + "    state.lamps.sort(0)\n", "in place"),
    "write by out": (STEP, STEP + "    xp.add(x, 1.0, out=x)\n", "in place"),
    "sum": (LIGHT, "xp.sum(next_state.lamps, axis=0)", "adds up along objects with xp.sum"),
    "method mean": (LIGHT, "next_state.lamps.mean(axis=0)", "adds up along objects"),
    "matrix product": (LIGHT, "xp.ones(9) @ next_state.lamps", "adds up along objects with @"),
    "mask selection": (STEP, STEP + "    few = x if u is None else x[x > 0]\n", "selects with a mask"),
    "data-dependent shape": (STEP, STEP + "    few = None if u is None else xp.nonzero(x)\n", "shape depends on the state"),
    "own random numbers": (STEP, STEP + "    x = x + 0.0 * np.random.random()\n", "uses np.random.random"),
    "random numbers of xp": (STEP, STEP + "    x = x + 0.0 * xp.random.random()\n", "draws random numbers itself"),
    "another library": (STEP, "    x = np.add(state.x, params.pull * (action - 1.0))\n", "uses np.add; rules may use xp, math, typing"),
    "import inside": (STEP, STEP + "    import random\n", "uses random"),
    "memory": (STEP, "    global LAST\n    LAST = action\n" + STEP, "keeps a memory outside the state"),
    "memory in a list": (STEP, "    HISTORY.append(action)\n" + STEP, "keeps a memory outside the state"),
    "call order": ("return light, abs", "return light + COUNT(), abs", "outcome gives another result for the same input"),
    "hidden random numbers": ("return state.x, state.lamps", "return state.x + 1e-3 * (COUNT() % 7), state.lamps", "observe gives another result"),
    "hidden random numbers at the start": ("0.5 * u[0] - 0.25", "0.5 * u[0] - 0.25 + 1e-3 * (COUNT() % 7)", "initial_state gives another result"),
    "starts that know their neighbours": ("0.5 * u[0] - 0.25", "0.5 * u[0] - 0.25 * xp.max(u[0])", "initial_state gives other bits for a row in another batch"),
    "starts that sum": ("0.5 * u[0] - 0.25", "0.01 * getattr(xp, 'su' + 'm')(u, axis=0) - 0.25", r"initial_state( \(x\))? gives other bits for a row"),
    "sum that the source hides": (LIGHT, "getattr(xp, 'su' + 'm')(next_state.lamps, axis=0)", "other bits for a row"),
    "neighbours": (LIGHT, "next_state.lamps[0] - xp.max(next_state.x)", "rows are not independent"),
    "division by zero on a finished state": (STEP, STEP + "    x = x + 0.0 / xp.maximum(params.goal - abs(state.x), 0.0)\n", r"transition: .*encountered in divide at State\(x="),
    "root of a negative": (LIGHT, "xp.sqrt(params.goal - abs(next_state.x))", "outcome: invalid value encountered in sqrt"),
    "info keys that come and go": ('{"streak": state.streak}', '{"streak": state.streak, **({"odd": state.x} if COUNT() % 2 else {})}', "its keys come and go"),
    "info that is no number": ('{"streak": state.streak}', '{"streak": "a word"}', "must be a number a row"),
    "draw that changes the state": ('    canvas.circle', '    state.lamps[...] = 0.0\n    canvas.circle', "draw changes the state"),
    "draw that fails": ("float(state.x)", "float(state.y)", "draw: AttributeError"),
    "draw of two minds": ("0.3, Palette", "0.1 * (1 + COUNT() % 3), Palette", "two different pictures of one state"),
    "observation that does not fit": ("return state.x, state.lamps", "return state.x, state.lamps, state.x, state.x[None]", "do not fill"),
    "termination that is no bool": ("abs(next_state.x) >= params.goal", "1.0 * (abs(next_state.x) >= params.goal)", "it must be bool"),
    "termination that is forgotten": ("return light, abs(next_state.x) >= params.goal", "return light", "outcome returns one ndarray; it must return two"),
    "outcome of three": ("return light, abs", "return light, light, abs", "outcome returns 3 values; it must return two"),
    "state that changes its kind": ("return State(x, 0.9 * state.lamps, streak)", "return (x, 0.9 * state.lamps, streak)", "a state is a NamedTuple"),
    "too few draws": ("1.0 * u[1:]", "1.0 * u[1:] + 0.0 * u[12]", "initial_state: IndexError"),
    "batch axis first": ("1.0 * u[1:]", "(1.0 * u[1:]).T", "the last axis must be the 11 rows"),
    "a global of NumPy": (STEP, STEP + "    x = x * SCALE\n", "uses SCALE"),
}  # fmt: skip

EXTRA = '''

LAST, HISTORY, SCALE = None, [], np.float64(1.0)


def helper(x, push):
    """A function that the rules call."""
    return x + push if push is None else (x + push if push < 1e9 else x)


class Params(NamedTuple):'''


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(written, fault):
    old, new, expected = PLANTED[fault]
    world = written(("\n\nclass Params(NamedTuple):", EXTRA), (old, new)).make_world()
    with np.errstate(all="ignore"):
        report = findings(world)
    assert re.search(expected, report), report


def test_a_finding_names_file_line_and_function(written):
    module = written((STEP, STEP + "    if x > 1e9:\n        x = 0.0 * x\n"))
    line = module.__loader__.get_source(module.__name__).split("\n").index("    if x > 1e9:") + 1
    assert (
        f"{module.__name__}.py:{line}: transition branches on a state value with 'if' (x > 1000000000.0)"
        in findings(module.make_world())
    )


def test_all_findings_are_reported_at_once(written):
    module = written((STEP, STEP + "    x += 0.0\n"), (LIGHT, "xp.sum(next_state.lamps, axis=0)"))
    report = findings(module.make_world())
    assert "in place" in report
    assert "adds up" in report


def test_an_observation_out_of_bounds(written):
    module = written(("return state.x, state.lamps", "return 3.0 * state.x, state.lamps"))
    assert "is outside Box" in findings(module.make_world())


FAR = ("return state.x, state.lamps", "return xp.where(abs(state.x) > 5.0, 9.0, 0.0), state.lamps")
LONG = ("return state.x, state.lamps", "return xp.where(state.streak > 120.0, 9.0, 0.0), state.lamps")


def test_an_observation_out_of_bounds_where_only_given_states_lead(written):
    module = written(FAR)
    check_world(module.make_world())
    far = module.State(6.0, np.ones(9), 0.0)
    assert "is outside Box" in findings(module.make_world(), states=[far])


def test_an_observation_out_of_bounds_where_only_a_policy_leads(written):
    module = written(LONG)
    check_world(module.make_world())
    assert "is outside Box" in findings(module.make_world(), policy=lambda observation: 1)


def test_states_of_other_shapes_are_refused_with_a_sentence(written):
    module = written()
    states = [module.State(0.0, np.ones(9), 0.0), module.State(0.0, np.ones(8), 0.0)]
    assert "single states without batch axis" in findings(module.make_world(), states=states)


def test_a_rule_that_needs_64_bits(written):
    wild = STEP + "    x = 0.5 * x + 1e-8 * ((xp.astype(1e4 * (state.lamps[0] + 1.0), int) * 1103515245) >> 20)\n"
    assert "comes to another x in JAX" in findings(written((STEP, wild)).make_world())


def test_snapshots_of_an_env_serve_as_states():
    env = gym.make("NumpyCartPole-v1").unwrapped
    env.reset(seed=0)
    check_world(load_world("NumpyCartPole-v1")[0], states=[env.get_state()])


def test_a_float32_world_that_promotes(written):
    good = written(("0.0 * state.streak)", "xp.zeros_like(state.streak))"))
    check_world(good.make_world(dtype=np.float32))
    bad = written(("params.pull * (action - 1.0)", "xp.where(action > 1.0, 0.1, -0.1)"))
    assert "promotes the leaf x of a float32 world to float64" in findings(bad.make_world(dtype=np.float32))


def test_reset_with_that_forgets_a_draw(written):
    module = written()
    moved = module.make_world(reset_with=lambda xp, params, u, options: module.initial_state(xp, params, 0.5 * u))
    assert "reset_with without options starts elsewhere" in findings(moved)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"action_space": gym.spaces.MultiBinary(3)}, "must be a Discrete or a Box"),
        ({"step_draws": 2, "max_step_draws": 1}, "must not be less than step_draws"),
        ({"info": None, "labels": {"outcome": ("a", "b")}}, "there is no info"),
        ({"labels": {"streak": ("none", "one")}}, "only 2 labels"),
        ({"labels": {"streaks": ("none", "one")}}, "labels name ['streaks'], but info has only"),
    ],
)
def test_a_declaration_that_does_not_fit(written, changes, expected):
    assert expected in findings(written().make_world(**changes))


def test_what_a_constructor_has_settled_may_be_branched_on(written):
    module = written(
        (STEP, STEP + "    if fast:\n        x = x + 0.0\n"), ("action, u=None", "action, u=None, *, fast=False")
    )
    check_world(module.make_world(transition=functools.partial(module.transition, fast=True)))


def test_rules_without_a_readable_source_are_reported(written):
    module = written()
    scope: dict[str, Any] = {}
    exec("def observe(xp, params, state):\n    return state.x, state.lamps\n", scope)
    assert "cannot be read" in findings(module.make_world(observe=scope["observe"]))


@pytest.mark.serial
def test_a_world_in_a_script_of_its_own_passes(tmp_path):
    script = tmp_path / "my_script.py"
    script.write_text(
        SOUND + "\nif __name__ == '__main__':\n    from gym_custom import check_world\n    check_world(make_world())\n"
    )
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
