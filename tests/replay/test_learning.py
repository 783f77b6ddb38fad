"""Does it help to learn? Each claim with its control."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from agents.replay import HindsightMemory, PrioritizedMemory, UniformMemory
from agents.types import Experience, Transition


def cliff_walk(length):
    """All transitions of the blind cliff-walk (Schaul et al. 2016, appendix B.1): 2**(length + 1) - 2 rows.

    In each state one action goes on, the other ends the episode; only the last right one is rewarded.
    """
    state, action = [], []
    for place in range(length):
        for move in (0, 1):
            state += [place] * 2 ** (length - 1 - place)
            action += [move] * 2 ** (length - 1 - place)
    state, action = np.array(state), np.array(action)
    goes_on = (action == 1) & (state < length - 1)
    reward = ((action == 1) & (state == length - 1)).astype(float)
    return Transition(state, action, reward, np.where(goes_on, 1 - 1 / length, 0.0), np.where(goes_on, state + 1, 0))


def updates_until_learnt(length, priority_exponent, seed, limit=10**6):
    """Single updates of a table until the right action's values are right within 0.05 on average."""
    rows = cliff_walk(length)
    memory = PrioritizedMemory(
        Discrete(length), Discrete(2), capacity=len(rows.reward), priority_exponent=priority_exponent, seed=seed
    )
    memory.append(rows)
    truth = (1 - 1 / length) ** np.arange(length - 1, -1, -1)
    values = np.random.default_rng(seed).normal(size=(length, 2)) * 0.1
    for done in range(0, limit, 16):
        batch = memory.sample(16)
        errors = np.empty(16)
        for row, (state, action, reward, discount, next_state) in enumerate(zip(*batch.transition, strict=True)):
            errors[row] = reward + discount * values[next_state].max() - values[state, action]
            values[state, action] += 0.25 * batch.weights[row] * errors[row]
        memory.update_priorities(batch.ids, np.abs(errors))
        if np.sqrt(np.mean((values[:, 1] - truth) ** 2)) < 0.05:
            return done
    return limit


@pytest.mark.parametrize("length", [9, pytest.param(12, marks=pytest.mark.slow)])
def test_blind_cliff_walk_needs_clearly_fewer_updates_with_priorities(length):
    prioritized = np.median([updates_until_learnt(length, 0.6, seed) for seed in range(10)])
    uniform = np.median([updates_until_learnt(length, 0.0, seed) for seed in range(10)])
    assert prioritized < 0.5 * uniform


class BitFlip:
    """Flip one bit a step until all are as the goal says (Andrychowicz et al. 2017, section 3.1)."""

    def __init__(self, num_bits, rng):
        self.num_bits, self.rng = num_bits, rng

    def reset(self):
        self.bits, self.goal = self.rng.integers(0, 2, (2, self.num_bits)).astype(np.int8)
        return self.observe()

    def observe(self):
        return {"bits": self.bits.copy(), "goal": self.goal.copy()}

    def step(self, action):
        self.bits[action] ^= 1
        done = bool((self.bits == self.goal).all())
        return self.observe(), done - 1.0, done


def hits(achieved, goal):
    return (achieved == goal).all(1)


def miss_reward(achieved, goal, info):
    return hits(achieved, goal) - 1.0


def solved_share(num_bits, hindsight, seed, num_episodes, prioritized=False):
    """Share of greedy episodes that reach the goal, after Q-learning with a value table over which bits are wrong."""
    rng = np.random.default_rng(seed)
    env = BitFlip(num_bits, rng)
    bits = MultiBinary(num_bits)
    memory = (PrioritizedMemory if prioritized else UniformMemory)(
        Dict({"bits": bits, "goal": bits}), Discrete(num_bits), capacity=20_000, seed=seed
    )
    if hindsight:
        memory = HindsightMemory(
            memory, achieved="bits", desired="goal", reward_function=miss_reward, termination_function=hits
        )
    values = np.full((2**num_bits, num_bits), -float(num_bits))  # nothing reaches the goal, until seen
    powers = 2 ** np.arange(num_bits)

    def key(obs):
        return (obs["bits"] != obs["goal"]) @ powers

    def play(epsilon):
        obs, steps = env.reset(), []
        for time in range(num_bits):
            row = values[key(obs)]
            explore = rng.random() < epsilon
            action = int(rng.integers(num_bits) if explore else rng.choice(np.flatnonzero(row == row.max())))
            after, reward, done = env.step(action)
            steps.append((obs, action, reward, done, time == num_bits - 1 and not done, after))
            obs = after
            if done:
                return steps, True
        return steps, False

    for _ in range(num_episodes):
        obs, action, reward, terminated, truncated, after = zip(*play(0.2)[0], strict=True)
        stacked = [{name: np.stack([one[name] for one in part]) for name in part[0]} for part in (obs, after)]
        memory.append(Experience(stacked[0], *map(np.array, (action, reward, terminated, truncated)), stacked[1]))
        for _ in range(4):
            batch = memory.sample(64)
            rows = batch.transition
            target = rows.reward + rows.discount * values[key(rows.next_obs)].max(1)
            error = target - values[key(rows.obs), rows.action]
            values[key(rows.obs), rows.action] += 0.5 * batch.weights * error
            memory.update_priorities(batch.ids, np.abs(error))
    return np.mean([play(0.0)[1] for _ in range(200)])


@pytest.mark.parametrize("prioritized", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bit_flipping_is_solved_with_hindsight_and_not_without(prioritized):
    assert solved_share(12, True, 0, 600, prioritized) > 0.6
    assert solved_share(12, False, 0, 600, prioritized) < 0.3


def grid_share(hindsight, seed, size, num_episodes, n_step=2):
    """Share of greedy episodes that reach a random goal in GridWorld, with a value table over (place, goal)."""
    rng = np.random.default_rng(seed)
    env = gym.make("gym_custom:GridWorld-v0", size=size, random_start=True, random_goal=True, observation="goal")
    memory = UniformMemory(env.observation_space, env.action_space, capacity=50_000, seed=seed)
    if hindsight:
        memory = HindsightMemory(
            memory, achieved="achieved_goal", desired="desired_goal", reward_function=env.unwrapped.compute_reward,
            termination_function=lambda achieved, goal: env.unwrapped.compute_terminated(achieved, goal, None),
        )  # fmt: skip
    values = np.zeros((size, size, size, size, 4))

    def key(obs):
        return (*np.moveaxis(obs["achieved_goal"], -1, 0), *np.moveaxis(obs["desired_goal"], -1, 0))

    def play(epsilon):
        obs, steps, reached = env.reset(seed=int(rng.integers(2**31)))[0], [], False
        for _ in range(30):
            row = values[key(obs)]
            explore = rng.random() < epsilon
            action = int(rng.integers(4) if explore else rng.choice(np.flatnonzero(row == row.max())))
            after, reward, reached, _, _ = env.step(action)
            steps.append((obs, action, reward, reached, False, after))
            obs = after
            if reached:
                break
        steps[-1] = (*steps[-1][:4], not reached, steps[-1][5])
        return steps, reached

    for _ in range(num_episodes):
        obs, action, reward, terminated, truncated, after = zip(*play(0.3)[0], strict=True)
        stacked = [{name: np.stack([one[name] for one in part]) for name in part[0]} for part in (obs, after)]
        memory.append(Experience(stacked[0], *map(np.array, (action, reward, terminated, truncated)), stacked[1]))
        for _ in range(10):
            rows = memory.sample(256, n_step=n_step, discount=0.95).transition
            target = rows.reward + rows.discount * values[key(rows.next_obs)].max(-1)
            where = (*key(rows.obs), rows.action)
            values[where] += 0.7 * (target - values[where])
    return np.mean([play(0.0)[1] for _ in range(100)])


@pytest.mark.parametrize(("size", "num_episodes"), [(6, 150), pytest.param(8, 400, marks=pytest.mark.slow)])
def test_gridworld_with_random_goals_is_solved_with_hindsight_and_not_without(size, num_episodes):
    assert grid_share(True, 0, size, num_episodes) > 0.75
    assert grid_share(False, 0, size, num_episodes) < 0.6


def test_an_agent_of_images_and_vectors_gets_a_prioritized_memory_and_new_settings_on_the_live_object():
    """The worked example of MATLAB's rlPrioritizedReplayMemory page, on an env of this test's own."""
    env = Pendulum()
    memory = UniformMemory(env.observation_space, env.action_space)  # by default, rows are drawn uniformly
    fill(memory, env, 50)
    assert (memory.sample(32).weights == 1).all()

    memory = PrioritizedMemory(env.observation_space, env.action_space, seed=0)
    memory.num_annealing_steps = 1e4
    memory.priority_exponent = 0.5
    memory.initial_importance_sampling_exponent = 0.5
    fill(memory, env, 200)
    for k in range(100):
        batch = memory.sample(32)
        assert batch.transition.obs["image"].shape == (32, 50, 50, 1)
        memory.update_priorities(batch.ids, np.abs(batch.transition.reward))
        assert memory.importance_sampling_exponent == pytest.approx(0.5 + 0.5 * (k + 1) / 1e4)
    np.testing.assert_allclose(memory.tree.leaves[:200], (memory.priorities + 1e-6) ** 0.5)
    assert memory.capacity == 10_000
    assert len(memory) == 200


class Pendulum(gym.Env):
    """A pendulum that is seen as a picture and a speed."""

    observation_space = Dict({"image": Box(0, 255, (50, 50, 1), np.uint8), "speed": Box(-9, 9, (1,), np.float32)})
    action_space = Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed = self.np_random.uniform(-np.pi, np.pi), 0.0
        return self._observe(), {}

    def step(self, action):
        self.speed = float(np.clip(self.speed + 0.1 * (np.sin(self.angle) + (action - 2) / 2), -8, 8))
        self.angle += 0.05 * self.speed
        return self._observe(), -abs(np.sin(self.angle / 2)), False, False, {}

    def _observe(self):
        image = np.zeros((50, 50, 1), np.uint8)
        image[int(25 - 20 * np.cos(self.angle)), int(25 + 20 * np.sin(self.angle))] = 255
        return {"image": image, "speed": np.array([self.speed], np.float32)}


def fill(memory, env, num_steps):
    obs, _ = env.reset(seed=0)
    for step in range(num_steps):
        after, reward, terminated, truncated, _ = env.step(step % 5)
        one = [{name: value[None] for name, value in part.items()} for part in (obs, after)]
        flags = np.array([[step % 5], [terminated], [truncated]])
        memory.append(Experience(one[0], flags[0], np.array([reward]), flags[1] > 0, flags[2] > 0, one[1]))
        obs = after
