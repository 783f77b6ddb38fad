"""Q-learning of many agents in JAX: equal to value iteration, independent agents, flat memory, devices."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import nullcontext
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

import gym_custom
from agents.tabular import epsilon_greedy

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
import jax.numpy as jnp  # noqa: E402

from agents.tabular import parallel  # noqa: E402
from agents.tabular.parallel import loop, training  # noqa: E402
from gym_custom import functional  # noqa: E402

assert gym_custom.World  # importing registers the ids


def value_iteration(P, R, terminal, discount):
    """Optimal values of all pairs from transition probabilities (S, A, S) and expected rewards (S, A)."""
    q = np.zeros(R.shape)
    for _ in range(2000):
        new = R + discount * P @ np.where(terminal, 0.0, q.max(-1))
        if np.abs(new - q).max() < 1e-12:
            break
        q = new
    return q


def model_of(layout, **kwargs):
    env = gym.make("GridWorld-v0", layout=layout, **kwargs).unwrapped
    P, R = env.transition_model()[:2]
    P, R = np.asarray(P), np.asarray(R)
    expected = (P * R).sum(-1) if R.ndim == 3 else R
    cells = "".join(layout)
    return P, expected, np.array([cell in "GO#" for cell in cells])


def random_map(seed):
    """A solvable map with walls, pits, a start and a goal."""
    rng = np.random.default_rng(seed)
    while True:
        rows, cols = rng.integers(3, 5, 2)
        cells = rng.choice(list(".#O"), (rows, cols), p=[0.75, 0.15, 0.1])
        start, goal = rng.choice(rows * cols, 2, replace=False)
        cells.flat[start], cells.flat[goal] = "S", "G"
        if reaches(cells, start, goal):
            return ["".join(row) for row in cells]


def reaches(cells, start, goal) -> bool:
    rows, cols = cells.shape
    seen, queue = {int(start)}, deque([int(start)])
    while queue:
        row, col = divmod(queue.popleft(), cols)
        for r, c in ((row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)):
            if 0 <= r < rows and 0 <= c < cols and cells[r, c] in ".SG" and r * cols + c not in seen:
                seen.add(r * cols + c)
                queue.append(r * cols + c)
    return int(goal) in seen


def greedy_states(q, P, terminal, start):
    """States that the greedy policy may reach from the start."""
    seen, queue = set(), deque([start])
    while queue:
        state = queue.popleft()
        if state in seen or terminal[state]:
            continue
        seen.add(state)
        queue.extend(np.flatnonzero(P[state, q[state].argmax()] > 0).tolist())
    return sorted(seen)


def check_map(seed, agents=1000, steps=120_000):
    layout, slip = random_map(seed), [0.0, 0.2][seed % 2]
    rewards = {"step_reward": -0.05, "pit_reward": -1.0, "goal_reward": 1.0}
    P, R, terminal = model_of(layout, slip=slip, **rewards)
    optimal = value_iteration(P, R, terminal, 0.9)
    env = functional.make("GridWorld-v0", layout=layout, slip=slip, random_start=True, **rewards)
    result = parallel.train(env, jax.random.key(seed), agents, steps, "visits", 0.9, 1.0)
    mean = np.asarray(result.q_values, np.float64).reshape(agents, *optimal.shape).mean(0)
    states = greedy_states(optimal, P, terminal, "".join(layout).index("S"))
    return np.abs(mean.max(-1) - optimal.max(-1))[states].max(), layout


@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_value_iteration(seed):
    error, layout = check_map(seed, agents=200, steps=235 * loop.CHUNK)
    assert error < 2e-2, layout


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_value_iteration_on_random_maps(seed):
    error, layout = check_map(seed)
    assert error < 1e-2, layout


def test_a_constant_rate_keeps_the_noise_that_theory_expects():
    """One state and a reward of 0 or 1 each half the time: Q fluctuates with variance lr / (2 - lr) var(r)."""
    rate = 0.2
    result = parallel.train(Coin(), jax.random.key(0), 4000, 200, rate, 0.0, 1.0)
    q = np.asarray(result.q_values)[:, 0, 0]
    assert abs(q.mean() - 0.5) < 0.01
    assert np.isclose(q.var(), rate / (2 - rate) * 0.25, rtol=0.1)


class Coin:
    """One state, one action, rewards 0 and 1 by chance; it offers ``reset`` and ``step`` alone."""

    observation_space = gym.spaces.Discrete(1)
    action_space = gym.spaces.Discrete(1)

    def reset(self, key):
        return jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def step(self, key, state, action):
        false = jnp.zeros((), bool)
        reward = jax.random.bernoulli(key).astype(jnp.float32)
        return state, state, reward, false, false, {"final_observation": state}


class Cells:
    """A 2-cell world: action 0 leads to the goal, action 1 stays; truncated after ``limit`` steps."""

    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, limit, terminates):
        self.limit, self.terminates = limit, terminates

    def reset(self, key):
        return jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def step(self, key, steps, action):
        moved = action == 0
        terminated = moved & self.terminates
        truncated = steps + 1 >= self.limit
        last = moved.astype(jnp.int32)
        done = terminated | truncated
        info = {"final_observation": last}
        return jnp.where(done, 0, steps + 1), jnp.where(done, 0, last), moved * 1.0, terminated, truncated, info


def test_termination_masks_and_truncation_bootstraps_over_a_thousand_agents():
    ended = parallel.train(Cells(10, True), jax.random.key(0), 1000, 50, 1.0, 0.9, 1.0)
    assert (ended.q_values[:, 0, 0] == 1.0).all()
    assert (ended.q_values[:, 1] == 0.0).all()
    # without a terminal state cell 1 is acted in, and truncation must let its value through
    endless = parallel.train(Cells(2, False), jax.random.key(0), 1000, loop.CHUNK, 0.5, 0.5, 1.0)
    assert np.allclose(endless.q_values[:, 0, 0], 2.0, atol=1e-2)  # 1 + 0.5 + 0.25 + ...


def test_ties_break_alike_in_numpy_and_jax():
    u = np.random.default_rng(0).random((4000,), np.float32)
    q = np.tile(np.array([[0.0, 1.0, 1.0, -np.inf]], np.float32), (len(u), 1))
    ours = jax.jit(lambda q, u: epsilon_greedy(q, 0.25, u, jnp))(q, u)
    theirs = epsilon_greedy(q, np.float32(0.25), u)
    assert np.array_equal(ours, theirs)
    shares = np.bincount(theirs, minlength=4) / len(u)
    assert np.allclose(shares, [1 / 16, 7 / 16, 7 / 16, 1 / 16], atol=0.03)


@pytest.fixture(scope="module")
def grid():
    return functional.make("GridWorld-v0")


STEPS = 3 * loop.CHUNK + 32
"""Whole blocks and a rest."""


def train_three(grid, seed, rate=0.5, epsilon=0.3, **kwargs):
    """Three agents: what the tests compile but once."""
    return parallel.train(grid, jax.random.key(seed), 3, STEPS, rate, 0.9, epsilon, **kwargs)


def test_learns_the_default_grid_and_a_rate_of_zero_does_not(grid):
    steps = 80 * loop.CHUNK
    result = parallel.train(grid, jax.random.key(0), 30, steps, 0.1, 0.9, 0.1)
    assert result.q_values.shape == (30, 5, 5, 4)
    best = np.asarray(result.q_values.max(-1))
    assert np.allclose(np.maximum(best[:, 0, 1], best[:, 1, 0]), 1.0, atol=0.01)
    assert np.allclose(best[:, 4, 4], 0.9**7, atol=0.01)
    assert (result.reward_sum == result.episodes - count_truncated(result)).all()
    idle = parallel.train(grid, jax.random.key(0), 30, steps, 0.0, 0.9, 0.1)
    assert float(idle.q_values.max()) == 0


def count_truncated(result):
    return np.asarray(result.episodes) - np.asarray(result.curve.returns).sum(0).astype(int)


def test_an_agent_depends_on_its_key_alone(grid, monkeypatch):
    alone, other = train_three(grid, 5), train_three(grid, 6)
    assert not np.array_equal(alone.q_values[0], alone.q_values[1])
    assert not np.array_equal(alone.q_values, other.q_values)
    monkeypatch.setattr(training, "GROUP", 2)  # three groups of two, the last agent being another's double
    monkeypatch.setattr(loop, "NUM_POINTS", 1)  # longer blocks
    five = parallel.train(grid, jax.random.key(5), 5, STEPS + 1, 0.5, 0.9, 0.3, history_every=STEPS)
    assert five.q_values.shape == (5, 5, 5, 4)
    assert np.array_equal(alone.q_values, five.history.q_values[0, :3])
    ends = five.history.terminated | five.history.truncated
    assert np.array_equal(alone.episodes, ends[:STEPS, :3].sum(0))


def test_counted_visits_set_the_rate(grid):
    told = parallel.train(grid, jax.random.key(1), 2, 200, "visits", 0.9, 0.5, history_every=200)
    assert_replayed(told.history, 200, lambda visits: visits**-0.8)


def test_history_tells_every_step_and_changes_nothing(grid):
    plain, every = train_three(grid, 1), 100
    told = train_three(grid, 1, history_every=every)
    history = told.history
    assert plain.history is None
    assert np.array_equal(plain.q_values, told.q_values)
    assert history.observations.shape == (STEPS, 3, 2)
    assert history.q_values.shape == (STEPS // every, 3, 5, 5, 4)
    assert np.allclose(history.rewards.sum(0), told.reward_sum)
    assert np.array_equal((history.terminated | history.truncated).sum(0), told.episodes)
    assert_replayed(history, every, lambda visits: 0.5)


def assert_replayed(history, every, rate):
    """The first agent's tables are those that its steps give by hand."""
    table, visits, moves = np.zeros((5, 5, 4)), np.zeros((5, 5, 4)), [(0, 1), (1, 0), (0, -1), (-1, 0)]
    for t in range(len(history.q_values) * every):
        obs, action = tuple(np.asarray(history.observations[t, 0])), int(history.actions[t, 0])
        after, pair = tuple(np.clip(np.add(obs, moves[action]), 0, 4)), (*obs, action)
        visits[pair] += 1
        target = float(history.rewards[t, 0]) + 0.9 * (0 if history.terminated[t, 0] else table[after].max())
        table[pair] += rate(visits[pair]) * (target - table[pair])
        if (t + 1) % every == 0:
            assert np.allclose(table, history.q_values[(t + 1) // every - 1, 0], atol=1e-5)
    assert table.max() > 0


def test_the_curve_adds_up(grid):
    result = train_three(grid, 2)
    assert result.curve.steps.tolist() == [256, 512, 768, 800]
    assert np.array_equal(result.curve.episodes.sum(0), result.episodes)
    assert (result.episodes > 8).all()  # of 100 steps at most


def test_settings_may_be_arrays_over_agents(grid):
    result = train_three(grid, 0, jnp.array([0.0, 0.5, 0.5]), np.array([1.0, 1.0, 0.1]))
    best = np.asarray(result.q_values.max((1, 2, 3)))
    assert best[0] == 0
    assert (best[1:] > 0.4).all()
    assert result.reward_sum[2] > result.reward_sum[1]


def test_tables_are_float32_whatever_the_environment_is():
    with x64():
        env = functional.make("GridWorld-v0", dtype=jnp.float64)
        result = jax.eval_shape(lambda key: parallel.train(env, key, 2, 100), jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(result)} == {np.dtype(np.float32), np.dtype(np.int32)}


def x64(on: bool = True):
    return (jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64)(on)


def test_peak_memory_does_not_grow_with_the_steps(grid):
    def peak(steps):
        run = training.compile_training(loop.Setup(grid, steps, False, None), None)
        agents = loop.Agents(*[jax.random.split(jax.random.key(0), 1000)] * 2, *[jnp.full(1000, 0.1)] * 2)
        return run.lower(agents, jnp.float32(0.9)).compile().memory_analysis().temp_size_in_bytes

    assert peak(4_000 * loop.CHUNK) < 1.1 * peak(40 * loop.CHUNK)


def test_progress_bar_reaches_the_end_and_changes_nothing(grid, monkeypatch):
    seen = []
    bar = nullcontext(SimpleNamespace(update=seen.append))
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=lambda **kwargs: bar))
    shown = train_three(grid, 3, progress_bar=True)
    assert sum(seen) == 3 * STEPS
    assert np.array_equal(shown.q_values, train_three(grid, 3).q_values)


def test_ctrl_c_ends_a_compiled_run_and_leaves_no_traceback(grid, capfd):
    told = []

    def tell(steps):
        told.append(steps)
        if len(told) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    watched = parallel.Watched(tell)
    run = jax.jit(lambda key: parallel.train(grid, key, 2, 10**9, progress_bar=watched)).lower(jax.random.key(0))
    compiled = run.compile()
    with pytest.raises(KeyboardInterrupt):
        watched.run(lambda: compiled(jax.random.key(0)))
    assert 3 <= len(told) < 1_000
    assert "Traceback" not in "".join(capfd.readouterr())


def test_no_key_is_used_twice(grid):
    with jax.debug_key_reuse(True):
        parallel.train(grid, jax.random.key(0), 2, 2 * loop.CHUNK)
        parallel.train(Coin(), jax.random.key(0), 2, 2 * loop.CHUNK)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        *[
            ({name: bad}, error, f"{name} must be .* got {bad!r}")
            for name in ("num_agents", "num_steps", "history_every")
            for bad, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("a", TypeError), (True, TypeError))
        ],
        ({"num_steps": 2**31}, ValueError, "num_steps .* below"),
        ({"num_agents": 2**26}, ValueError, "train fewer at once"),
        ({"learning_rate": 2.0}, ValueError, "learning_rate"),
        ({"discount": "a"}, TypeError, "discount .* 'a'"),
        ({"epsilon": np.zeros(3)}, ValueError, "epsilon"),
        ({"devices": []}, TypeError, r"jax.devices\(\), got \[\]"),
        ({"devices": "cpu"}, TypeError, "got 'cpu'"),
        ({"devices": jax.devices("cpu")[:1] * 3}, ValueError, "multiple of the 3 devices"),
        ({"key": 0}, TypeError, r"jax.random.key\(0\), got 0"),
        ({"key": None}, TypeError, "got None"),
        ({"env": "GridWorld-v0"}, TypeError, "functional environment .* 'GridWorld-v0'"),
        ({"env": gym.make("GridWorld-v0")}, TypeError, "functional environment .* <TimeLimit"),
        ({"env": functional.make("GridWorld-v0", autoreset=False)}, ValueError, "autoreset"),
        ({"env": functional.make("NumpyCartPole-v1")}, TypeError, "Discrete or MultiDiscrete"),
    ],
)
def test_senseless_arguments_are_refused(grid, kwargs, error, match):
    with pytest.raises(error, match=match):
        parallel.train(**{"env": grid, "key": jax.random.key(0), "num_agents": 2, "num_steps": 10} | kwargs)


TWO_DEVICES = """
import jax, numpy as np
from agents.tabular import parallel
from gym_custom import functional
assert len(jax.devices()) == 2
env = functional.make("GridWorld-v0")
settings = 6, 512, "visits", 0.9, 0.3, 64
one = parallel.train(env, jax.random.key(0), *settings)
two = parallel.train(env, jax.random.key(0), *settings, progress_bar=True, devices=jax.devices())
assert len(two.q_values.sharding.device_set) == 2
assert all(jax.tree.leaves(jax.tree.map(lambda x, y: np.array_equal(x, y), one, two)))
"""


def test_two_devices_give_the_same_as_one():
    code = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n" + TWO_DEVICES
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)
