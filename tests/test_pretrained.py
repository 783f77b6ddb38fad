"""Trained policies that come along: what they score, that NumPy is enough, and how files are made and read."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

import gym_custom
from agents import pretrained
from agents.apex import ApeX, ApeXConfig
from agents.pretrained.files import Saved, read, space_from_json, space_to_json, write
from agents.pretrained.policies import NetworkPolicy, TablePolicy

assert gym_custom.World
ROOT = Path(__file__).resolve().parents[1]
IDS = pretrained.available()


def play(env_id: str, predict, seeds) -> np.ndarray:
    """Returns of one greedy episode from each seed."""
    returns = []
    for seed in seeds:
        env = gym.make(env_id)
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(predict(observation))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return np.array(returns)


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
@pytest.mark.parametrize("env_id", IDS)
def test_a_policy_earns_what_its_file_says_and_an_untrained_one_does_not(env_id):
    about, policy = pretrained.about(env_id), pretrained.load(env_id)
    returns = play(env_id, lambda observation: policy.predict(observation)[0], range(5))
    spread = 4 * about["std_return"] / np.sqrt(5)
    assert abs(returns.mean() - about["mean_return"]) <= spread + 1e-6
    still = ApeX(env_id, ApeXConfig.preset(env_id), seed=1)
    assert play(env_id, lambda observation: still.predict(observation)[0], range(5)).mean() < about["mean_return"]


@pytest.mark.parametrize("env_id", IDS)
def test_a_file_is_small_and_says_how_it_was_made(env_id):
    assert (pretrained.DATA / f"{env_id}.npz").stat().st_size < 400 * 1024
    about = pretrained.about(env_id)
    assert about["env"].rpartition("-v")[0] == env_id.rpartition("-v")[0]
    assert {"algorithm", "env_steps", "seed", "settings", "episodes", "mean_return", "std_return"} <= set(about)


def test_the_solved_ids_are_solved():
    assert {"NumpyCartPole-v0", "NumpyCartPole-v1", "GridWorld-v0"} <= set(IDS)
    for env_id in ("NumpyCartPole-v0", "NumpyCartPole-v1", "GridWorld-v0"):
        assert pretrained.about(env_id)["mean_return"] >= gym.spec(env_id).reward_threshold


@pytest.fixture
def agent() -> ApeX:
    return ApeX("NumpyCartPole-v1", ApeXConfig(cluster="inline", num_actors=1, hidden_sizes=(16, 8)), seed=3)


def test_an_agents_file_gives_the_agents_actions(agent, tmp_path):
    agent.save(tmp_path / "a.apex")
    policy = pretrained.load("NumpyCartPole-v1", tmp_path / "a.apex")
    observations = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    actions, _ = policy.predict(observations)
    np.testing.assert_array_equal(actions, agent.predict(observations)[0])
    assert [int(policy.predict(one)[0]) for one in observations[:20]] == actions[:20].tolist()
    values = policy.action_values(observations)
    assert values.shape == (200, 2)
    np.testing.assert_allclose(policy.action_values(observations[7]), values[7], rtol=1e-5)
    assert 0 < actions.mean() < 1


def test_action_values_are_in_the_rewards_of_the_env(tmp_path):
    config = ApeXConfig(cluster="inline", num_actors=1, hidden_sizes=(16, 8), reward_scale=0.25)
    agent = ApeX("NumpyCartPole-v1", config, seed=3)
    agent.save(tmp_path / "a.apex")
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    learned = agent.policy(torch.as_tensor(observations)).numpy()
    found = pretrained.load("NumpyCartPole-v1", tmp_path / "a.apex").action_values(observations)
    np.testing.assert_allclose(found, 4 * learned, rtol=1e-4, atol=1e-5)
    policy, env = pretrained.load("MyEnv-v0"), gym.make("MyEnv-v0")  # a goal is worth 100 when it is reached
    values = [policy.action_values(env.reset(seed=seed)[0]).max() for seed in range(20)]
    assert 20 < np.mean(values) < 110


def test_files_go_there_and_back(agent, tmp_path):
    from agents.apex.network import to_arrays

    weights = to_arrays(agent.policy)
    write(tmp_path / "a.npz", Saved({"score": 1.5}, weights, agent.observation_space, agent.action_space))
    saved = read(tmp_path / "a.npz")
    assert saved.about == {"score": 1.5}
    assert (saved.observation_space, saved.action_space) == (agent.observation_space, agent.action_space)
    assert all((saved.weights[name] == weights[name]).all() for name in weights)
    assert isinstance(pretrained.load(gym.make("NumpyCartPole-v1"), tmp_path / "a.npz"), NetworkPolicy)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, 3.0, (2, 3), np.float32),
        spaces.Discrete(4, start=-1),
        spaces.MultiDiscrete([3, 5], start=[1, 0]),
    ],
    ids=str,
)
def test_spaces_go_there_and_back(space):
    assert space_from_json(space_to_json(space)) == space


def test_other_spaces_are_refused():
    with pytest.raises(ValueError, match="must be a Box, Discrete or MultiDiscrete"):
        space_to_json(spaces.Text(3))
    with pytest.raises(ValueError, match="not 'Text'"):
        space_from_json({"kind": "Text"})


def test_a_table_chooses_the_best_of_each_place():
    table = np.zeros((2, 3, 4))
    table[1, 2, 3] = table[0, 1, 2] = 1.0
    policy = TablePolicy(table)
    assert int(policy.predict(np.array([1, 2]))[0]) == 3
    assert policy.predict(np.array([[1, 2], [0, 1], [0, 0]]))[0].tolist() == [3, 2, 0]
    assert TablePolicy(table.reshape(6, 4)).predict(5)[0] == 3
    assert policy.fits(spaces.MultiDiscrete([2, 3]), spaces.Discrete(4))
    assert not policy.fits(spaces.MultiDiscrete([2, 3]), spaces.Discrete(5))


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("Nowhere-v0", "no trained policy for 'Nowhere-v0'; there are some for .*NumpyCartPole-v1"),
        (lambda: gym.make("GridWorld-v0", size=3), r"trained on observations MultiDiscrete\(\[5 5\]\)"),
        (lambda: gym.make_vec("NumpyCartPole-v1", num_envs=2, max_episode_steps=9), None),
        (lambda: gym.make("NumpyCartPole-v1", gravity=20.0), None),  # its bounds are other ones
        (lambda: gym.make("GridWorld-v0").unwrapped.__class__(), "not made from an id"),
    ],
    ids=["unknown", "other size", "rows", "other gravity", "no id"],
)
def test_what_does_not_fit_is_refused_and_the_rest_is_not(env, words):
    env = env if isinstance(env, str) else env()
    if words is None:
        assert pretrained.load(env).predict(np.zeros((2, 4), np.float32))[0].shape == (2,)
        return
    with pytest.raises(ValueError, match=words):
        pretrained.load(env)


@pytest.mark.parametrize("name", ["a.npz", "a.apex", "a.npy"])
def test_foreign_files_are_refused_and_missing_ones_named(name, tmp_path):
    with pytest.raises(FileNotFoundError):
        pretrained.load("NumpyCartPole-v1", tmp_path / name)
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"a\.|pickled"):
        pretrained.load("NumpyCartPole-v1", tmp_path / name)
    with pytest.raises(ValueError, match="is a folder"):
        pretrained.load("NumpyCartPole-v1", tmp_path)


@pytest.mark.serial
def test_numpy_is_enough():
    code = (
        "import sys; from agents import pretrained; pretrained.load('NumpyCartPole-v1').predict([0.0] * 4);"
        "assert not {'torch', 'jax', 'stable_baselines3', 'gym_custom'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def make_pretrained(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    spec = importlib.util.spec_from_file_location("make_pretrained", ROOT / "scripts" / "make_pretrained.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_makes_a_file_from_a_run(make_pretrained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(make_pretrained, "EPISODES", 4)
    config = ApeXConfig(cluster="inline", num_actors=1, warmup_steps=100, evaluation_interval=200, run_folder="run")
    agent = ApeX("NumpyCartPole-v1", config, seed=0).learn(400)
    assert make_pretrained.main(["NumpyCartPole-v1", "--from-run", "run", "--output", "made"]) == 0
    assert capsys.readouterr().out.startswith("NumpyCartPole-v1: ")
    assert [path.name for path in Path("made").iterdir()] == ["NumpyCartPole-v1.npz"]
    saved = read("made/NumpyCartPole-v1.npz")
    assert saved.about["episodes"] == 4
    assert saved.about["settings"]["warmup_steps"] == 100
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    policy = pretrained.load("NumpyCartPole-v1", "made/NumpyCartPole-v1.npz")
    np.testing.assert_array_equal(policy.predict(observations)[0], agent.predict(observations)[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "ID"),
        (["Nowhere-v0"], "no environment 'Nowhere-v0'"),
        (["MyEnv-v0", "GridWorld-v0", "--from-run", "x"], "--from-run is for one id"),
        (["MyEnv-v0", "--from-run", "x"], "x/config.json"),
        (["NumpyCartPole-v1", "MyEnv-v0"], "MyEnv-v0 needs --total-timesteps"),  # before the first one is trained
    ],
    ids=str,
)
def test_the_script_refuses_in_one_sentence(make_pretrained, arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert make_pretrained.main([*arguments, *(["--output", "made"] if arguments else [])]) == 2
    error = capsys.readouterr().err
    assert error.startswith("make_pretrained.py: ")
    assert error.count("\n") == 1
    assert words in error
