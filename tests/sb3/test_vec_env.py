"""The native vector env as an SB3 VecEnv: equal to SB3's own DummyVecEnv, and accepted by its tools."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.vec_env import VecNormalize

import gym_custom  # noqa: F401
from agents.sb3 import NativeVecEnv, make_vec_env
from agents.sb3.vec_env import split_infos

ENV_ID = "NumpyCartPole-v1"


def plain(value):
    """Types, shapes and values in a form that == compares; Monitor's clock is left out."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != "t"}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.tolist())
    return value


@pytest.mark.parametrize("env_id", [ENV_ID, "GridWorld-v0", "MyEnv-v0", "Taxi-v4", "CartPole-v1"])
def test_equal_to_sb3s_dummy_vec_env_step_for_step(env_id):
    ours, theirs = make_vec_env(env_id, 3, seed=7), sb3_make_vec_env(env_id, 3, seed=7)
    assert plain(ours.reset()) == plain(theirs.reset())
    assert plain(ours.unwrapped.reset_infos) == plain(theirs.reset_infos)
    rng = np.random.default_rng(0)
    num_ended = 0
    for _ in range(700):
        actions = rng.integers(0, theirs.action_space.n, 3)
        *outcome, infos = ours.step(actions)
        *their_outcome, their_infos = theirs.step(actions)
        assert plain(outcome) == plain(their_outcome)
        assert plain(infos) == plain(their_infos)
        assert plain(ours.unwrapped.reset_infos) == plain(theirs.reset_infos)
        num_ended += outcome[2].sum()
    assert num_ended > 0


def test_a_time_limit_is_told_from_a_termination():
    venv = make_vec_env(ENV_ID, 2, seed=0, env_kwargs={"max_episode_steps": 5})
    venv.reset()
    for step in range(1, 6):
        obs, _, dones, infos = venv.step(np.array([step % 2, step % 2]))
    assert dones.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [True, True]
    assert infos[0]["terminal_observation"].shape == (4,)
    assert not np.array_equal(infos[0]["terminal_observation"], obs[0])
    assert infos[0]["episode"]["r"] == 5.0
    assert infos[0]["episode"]["l"] == 5
    assert infos[0]["episode"]["t"] >= 0


def test_seed_makes_resets_repeat_and_is_used_once():
    venv = make_vec_env(ENV_ID, 2, seed=3)
    first = venv.reset()
    second = venv.reset()
    venv.seed(3)
    assert np.array_equal(venv.reset(), first)
    assert not np.array_equal(second, first)
    single = gym.make(ENV_ID)
    assert np.array_equal(first[1], single.reset(seed=4)[0])


def test_monitor_file_is_read_by_sb3(tmp_path):
    venv = make_vec_env(ENV_ID, 2, seed=0, monitor_dir=str(tmp_path / "log"))
    venv.reset()
    lengths = []
    for step in range(200):
        _, _, _, infos = venv.step(np.array([step % 2, 0]))
        lengths += [info["episode"]["l"] for info in infos if "episode" in info]
    venv.close()
    table = load_results(str(tmp_path / "log"))
    assert table["l"].tolist() == lengths
    assert table["r"].tolist() == lengths


def test_sb3_trains_normalizes_and_evaluates_on_it():
    venv = VecNormalize(make_vec_env(ENV_ID, 4, seed=0))
    model = PPO("MlpPolicy", venv, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(256)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 0
    mean, _ = evaluate_policy(model, make_vec_env(ENV_ID, 3, seed=100), n_eval_episodes=6)
    assert 8 <= mean <= 500


def test_attributes_methods_options_and_pictures():
    venv = make_vec_env(ENV_ID, 3, seed=0)
    assert venv.get_attr("render_mode") == ["rgb_array"] * 3
    assert venv.get_attr("render_mode", indices=1) == ["rgb_array"]
    assert not venv.has_attr("no_such_attribute")
    venv.set_attr("note", 5)
    assert venv.get_attr("note", indices=[0, 2]) == [5, 5]
    with pytest.raises(ValueError, match=r"share the attribute 'note'"):
        venv.unwrapped.set_attr("note", 6, indices=0)
    venv.set_options({"low": 0.01, "high": 0.02})
    obs = venv.reset()
    assert ((obs >= 0.01) & (obs <= 0.02)).all()
    assert not (venv.reset() >= 0.01).all()
    venv.set_options([{"low": 0.01}, {}, {}])
    with pytest.raises(ValueError, match="one dict for all rows"):
        venv.reset()
    assert venv.render().ndim == 3
    assert len(venv.env_method("render")) == 3
    assert venv.env_is_wrapped(gym.Wrapper) == [False] * 3
    venv.close()
    venv.close()


def test_other_reset_modes_are_refused():
    with pytest.raises(ValueError, match="SAME_STEP"):
        NativeVecEnv(gym.make_vec("CartPole-v1", 2))


def test_split_infos_follows_masks_and_nests():
    infos = {
        "hits": np.array([1, 2, 0]),
        "_hits": np.array([True, True, False]),
        "where": np.arange(6.0).reshape(3, 2),
        "inner": {"name": np.array(["a", None, "c"], object), "_name": np.array([True, False, True])},
        "_inner": np.array([True, False, True]),
    }
    rows = split_infos(infos, 3)
    assert [row.get("hits") for row in rows] == [1, 2, None]
    assert type(rows[0]["hits"]) is int
    assert rows[2]["where"].tolist() == [4.0, 5.0]
    assert rows[0]["inner"] == {"name": "a"}
    assert "inner" not in rows[1]
    assert plain(split_infos(infos, 3, [2, 1])) == plain([rows[2], rows[1]])
    assert split_infos({}, 2) == [{}, {}]


class ManySmallRewards(gym.Env):
    """Pays a third again and again, which float32 cannot hold, and 1e4 at first, beside which it loses digits."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (1,)), gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.render_mode, self.taken = render_mode, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.taken = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.taken += 1
        return np.zeros(1, np.float32), 1e4 if self.taken == 1 else 1 / 3, self.taken == 400, False, {}


def test_returns_are_summed_as_exactly_as_sb3s_monitor_does():
    spec = gym.envs.registration.EnvSpec("ManySmallRewards-v0", ManySmallRewards)
    gym.registry[spec.id] = spec
    try:
        ours, theirs = make_vec_env(spec.id, 2), sb3_make_vec_env(spec.id, 2)
    finally:
        del gym.registry[spec.id]
    for venv in (ours, theirs):
        venv.reset()
        for _ in range(400):
            _, rewards, _, infos = venv.step(np.zeros(2, int))
        assert rewards.dtype == np.float32
        assert infos[1]["episode"]["r"] == round(1e4 + 399 / 3, 6)
