"""Tiny envs with known values, each of which isolates one kind of fault; and some whose steps fail or are slow."""

from __future__ import annotations

import time

import gymnasium as gym
import numpy as np

BOX = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)


class Probe(gym.Env):
    """A short episode over observations -1, 0 or 1."""

    observation_space = BOX
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.seen = self.first()
        return np.array([self.seen], np.float32), {}

    def step(self, action):
        self.time += 1
        reward, self.seen, over = self.rule(int(action))
        return np.array([self.seen], np.float32), float(reward), over, False, {}

    def first(self):
        return 0.0

    def random_sign(self):
        return float(self.np_random.choice([-1.0, 1.0]))


class ConstantReward(Probe):
    """One step, reward 1: the value is 1. Fails if the end of an episode is not seen."""

    values = {0.0: [1.0, 1.0]}

    def rule(self, action):
        return 1.0, 0.0, True


class ObservedReward(Probe):
    """One step, the reward is what was observed. Fails if observations are mixed up."""

    values = {-1.0: [-1.0, -1.0], 1.0: [1.0, 1.0]}

    def first(self):
        return self.random_sign()

    def rule(self, action):
        return self.seen, self.seen, True


class TwoSteps(Probe):
    """Reward 1 at the second step: the first observation is worth the discount. Fails with a wrong discount."""

    values = {0.0: [0.9, 0.9], 1.0: [1.0, 1.0]}

    def rule(self, action):
        return (1.0, 1.0, True) if self.time == 2 else (0.0, 1.0, False)


class ActionMatters(Probe):
    """One step, action 1 pays 1 and action 0 costs 1. Fails if actions are mixed up."""

    values = {0.0: [-1.0, 1.0]}

    def rule(self, action):
        return 2.0 * action - 1.0, 0.0, True


class BothMatter(Probe):
    """One step, the action that agrees with the observation pays 1, the other costs 1."""

    values = {-1.0: [1.0, -1.0], 1.0: [-1.0, 1.0]}

    def first(self):
        return self.random_sign()

    def rule(self, action):
        return self.seen * (2.0 * action - 1.0), self.seen, True


class TimeLimited(Probe):
    """Reward 1 for ever, cut after five steps: the value is 1 / (1 - discount). Fails if cutting counts as ending."""

    values = {0.0: [10.0, 10.0]}

    def rule(self, action):
        return 1.0, 0.0, False

    def step(self, action):
        obs, reward, terminated, _, info = super().step(action)
        return obs, reward, terminated, self.time >= 5, info


class EndsAfterFive(Probe):
    """The same, but really over after five steps; time is observed. Values from the last step backwards."""

    observation_space = gym.spaces.Discrete(6)
    values = {k: [sum(0.9**i for i in range(5 - k))] * 2 for k in range(5)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.time += 1
        return self.time, 1.0, self.time == 5, False, {}


PROBES = [ConstantReward, ObservedReward, TwoSteps, ActionMatters, BothMatter, TimeLimited, EndsAfterFive]


class Failing(Probe):
    """Raises at its fiftieth step."""

    total = 0

    def rule(self, action):
        self.total += 1
        if self.total >= 50:
            raise RuntimeError("the wheel came off")
        return 1.0, 0.0, self.time >= 10


class Slow(Probe):
    """Twenty milliseconds a step: fifty steps a second."""

    def rule(self, action):
        time.sleep(0.02)
        return 1.0, 0.0, self.time >= 10


class Quick(Probe):
    """The same without the wait."""

    def rule(self, action):
        return 1.0, 0.0, self.time >= 10


class Counting(gym.Env):
    """Observes how many steps it has taken; never ends."""

    observation_space = gym.spaces.Box(0.0, np.inf, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.array([0.0]), {}

    def step(self, action):
        self.count += 1
        return np.array([float(self.count)]), 1.0, False, False, {}
