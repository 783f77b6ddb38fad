"""What Ape-X answers to senseless values: one sentence that names them, and nothing is lost."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from agents.apex import ApeX
from agents.apex.run import new_folder

from .helpers import agent, parameters, small


class Odd(gym.Env):
    """Two steps an episode, with whatever space, observation and reward the test wants."""

    action_space = spaces.Discrete(2)

    def __init__(self, space=None, observation=0.0, reward=1.0):
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,)) if space is None else space
        self._observation = np.full(2, observation, np.float32)
        self._reward, self._steps = reward, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._steps += 1
        return self._observation, self._reward, self._steps == 2, False, {}


@pytest.mark.parametrize("seed", [-1, None, 1.5, "x", True, float("nan"), 2**63, 10**40], ids=repr)
def test_a_senseless_seed_is_refused(tmp_path, seed):
    with pytest.raises(ValueError, match=r"seed must be an integer from 0 to 2\*\*63 - 1, not"):
        agent(tmp_path, seed=seed)


@pytest.mark.parametrize("config", [{}, {"n_step": 3}, "fast", 3], ids=repr)
def test_what_is_no_config_is_refused(config):
    with pytest.raises(TypeError, match="config must be an ApeXConfig or None, not"):
        ApeX("CartPole-v1", config)


@pytest.mark.parametrize("steps", [None, 1.5, "500", True, float("nan"), float("inf"), [500]], ids=repr)
def test_what_is_no_number_of_steps_is_refused_before_anything_is_written(tmp_path, steps):
    with pytest.raises(TypeError, match="total_timesteps must be an integer, not"):
        agent(tmp_path).learn(steps)
    assert not (tmp_path / "run").exists()


def test_steps_may_be_a_whole_float(tmp_path):
    assert agent(tmp_path).learn(2e2).num_timesteps >= 200


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), None], ids=repr)
def test_a_reward_that_is_no_number_is_named(tmp_path, reward):
    with pytest.raises(ValueError, match=r"the env gave the reward (nan|inf): rewards must be finite"):
        agent(tmp_path, lambda: Odd(reward=reward)).learn(300)


@pytest.mark.parametrize("observation", [float("nan"), float("inf")], ids=repr)
def test_an_observation_that_is_no_number_is_named(tmp_path, observation):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="an observation is not"):
        agent(tmp_path, lambda: Odd(observation=observation)).learn(300)


NO_NUMBERS = [
    spaces.Text(5),
    spaces.Sequence(spaces.Discrete(2)),
    spaces.Graph(spaces.Box(-1, 1, (2,)), None),
    spaces.OneOf((spaces.Discrete(2), spaces.Discrete(3))),
    spaces.Dict({}),
    spaces.Tuple(()),
    spaces.Box(-1, 1, (0,)),
    spaces.Box(0, 255, (0, 8, 3), np.uint8),
    spaces.MultiDiscrete(np.zeros(0, int)),
    spaces.Dict({"seen": spaces.Box(-1, 1, (2,)), "nothing": spaces.Box(-1, 1, (0,))}),
    spaces.Dict({"seen": spaces.Box(-1, 1, (2,)), "said": spaces.Text(5)}),
]


@pytest.mark.parametrize("space", NO_NUMBERS, ids=str)
def test_observations_that_no_network_reads_are_refused_at_once(space):
    with pytest.raises(ValueError, match=r"Ape-X cannot read .* legal are Box, Discrete"):
        ApeX(lambda: Odd(space))


def test_a_factory_of_something_else_is_refused():
    with pytest.raises(TypeError, match=r"must return a gymnasium\.Env, not 3"):
        ApeX(lambda: 3)


@pytest.mark.parametrize("target", ["", ".", "folder"])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="is no file"):
        agent(tmp_path).save(target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_save_makes_the_folders_it_needs(tmp_path):
    agent(tmp_path).save(tmp_path / "new" / "deep" / "run.apex")
    assert ApeX.load(tmp_path / "new/deep/run.apex").num_timesteps == 0


def test_weights_of_another_shape_change_nothing_and_are_told_in_one_line(tmp_path):
    ape = agent(tmp_path)
    before, policy = parameters(ape), {name: value.clone() for name, value in ape.policy.state_dict().items()}
    torch.save(agent(tmp_path, hidden_sizes=(16, 8)).policy.state_dict(), tmp_path / "other.pt")
    with pytest.raises(ValueError, match="holds no weights for this network") as caught:
        ape.load_weights(tmp_path / "other.pt")
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(parameters(ape), before)
    assert all(torch.equal(value, policy[name]) for name, value in ape.policy.state_dict().items())


def test_of_two_runs_that_begin_at_once_in_one_folder_only_one_makes_it(tmp_path):
    folder = str(tmp_path / "run")
    assert new_folder(folder, "CartPole-v1").is_dir()
    with pytest.raises(ValueError, match="holds another run"):  # before the first has written a word
        new_folder(folder, "CartPole-v1")
    with pytest.raises(ValueError, match="holds another run"):
        ApeX("CartPole-v1", small(tmp_path)).learn(500)
