"""Probe envs whose values are known, learnt in seconds; without learning nothing is learnt."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from agents.apex.network import features

from .helpers import agent
from .probes import PROBES, EndsAfterFive, TimeLimited

SETTINGS = {
    "gamma": 0.9,
    "n_step": 2,
    "hidden_sizes": (32,),
    "learning_rate": 5e-3,
    "final_learning_rate": 1e-3,
    "annealing_steps": 2_000,
    "target_update_rate": 0.05,
    "max_epsilon": 1.0,
    "epsilon_alpha": 0.0,
    "samples_per_insert": 16.0,
    "evaluation_interval": 10_000,
    "keep_best": False,
}


def learnt(folder, probe, steps=2_500, **changes):
    """The largest difference between learnt and known values."""
    trained = agent(folder, probe, **{**SETTINGS, **changes}).learn(steps)
    obs = np.array(list(probe.values))
    if isinstance(probe.observation_space, gym.spaces.Box):
        obs = obs[:, None].astype(np.float32)
    with torch.no_grad():
        q = trained.policy(features(probe.observation_space, obs)).numpy()
    return float(np.abs(q - np.array(list(probe.values.values()))).max())


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_known_values_are_learnt(tmp_path, probe):
    steps = 5_000 if probe in (TimeLimited, EndsAfterFive) else 2_500
    tolerance = 0.5 if probe is TimeLimited else 0.15
    assert learnt(tmp_path, probe, steps) < tolerance


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_without_a_step_size_nothing_is_learnt(tmp_path, probe):
    assert learnt(tmp_path, probe, 600, learning_rate=0.0, final_learning_rate=0.0) > 0.5
