"""Ape-X in a comparison where envs say which actions are legal."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from comparison import apex_runs
from comparison.cells import Cell
from comparison.curve import CurveWriter, read_curve
from comparison.evaluation import greedy_episodes
from comparison.films import frames
from gymnasium import spaces

from agents.apex import ApeX

ID = "OneDoor-v0"


class OneDoor(gym.Env):
    """Four steps; of three doors the last alone is open, and another one ends the test."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}
    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Discrete(3)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(2, np.float32), {"action_mask": np.array([0, 0, 1], np.int8)}

    def step(self, action):
        assert action == 2
        self._steps += 1
        return np.zeros(2, np.float32), 1.0, self._steps == 4, False, {"action_mask": np.array([0, 0, 1], np.int8)}

    def render(self):
        return np.zeros((4, 4, 3), np.uint8)


@pytest.fixture
def cell():
    """Of an id that is known during the test."""
    gym.register(ID, OneDoor)
    yield Cell("apex", ID, 0, 5_000, 500, 3)
    del gym.registry[ID]


def test_the_closing_evaluation_heeds_masks(cell, tmp_path):
    curve = CurveWriter(tmp_path, {}, tmp_path / "tensorboard")
    apex_runs._judge_last(ApeX(ID, apex_runs.configuration(cell)), cell, curve)
    assert read_curve(tmp_path).mean_returns.tolist() == [4.0]


def test_a_restored_policy_heeds_masks_in_tests_and_films(cell, tmp_path):
    torch.save(ApeX(ID, apex_runs.configuration(cell)).policy.state_dict(), tmp_path / apex_runs.BEST)
    policy = apex_runs.load_policy(cell, tmp_path)
    episodes = greedy_episodes(policy, ID, [1, 2, 3])
    assert episodes.returns.tolist() == [4.0] * 3
    assert episodes.lengths.tolist() == [4] * 3
    assert len(frames(policy, ID)) == 5
