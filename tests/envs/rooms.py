"""Rooms of the robot among pedestrians, as batches of states and as environments in a given layout."""

import gymnasium as gym
import numpy as np

import gym_custom  # noqa: F401
from gym_custom.world import plain_params

IDS = ["MyEnv-v0", "MyEnvStatic-v0", "MyEnvDense-v0", "MyEnvHard-v0", "MyEnvPartial-v0"]
STOP, AHEAD = 1, 7


def start(world, seeds, params=None):
    u = np.stack([np.random.default_rng(seed).random(world.reset_draws) for seed in seeds], axis=1)
    return world.initial_state(np, params or plain_params(world.params), u)


def step(world, state, action, rng=None):
    u = rng.random((world.step_draws, *state.heading.shape)) if world.step_draws else None
    return world.transition(np, plain_params(world.params), state, np.asarray(action, float), u)


def made(layout, **kwargs):
    """An environment in a given layout, and its first observation."""
    env = gym.make("MyEnv-v0", **kwargs).unwrapped
    return env, env.reset(seed=0, options={"layout": layout})[0]


def walker(x, y, vx=0.0, vy=0.0, to=None, **more):
    there = to or [x, y]
    return {"position": [x, y], "velocity": [vx, vy], "waypoints": [there, there], **more}
