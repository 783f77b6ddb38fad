"""Prioritized replay in stable-baselines3: its updates against SB3's own, its windows against brute force."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer, ReplayBufferSamples
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize

import gym_custom  # noqa: F401
from agents.sb3 import PrioritizedDQN, PrioritizedReplayBuffer, PrioritizedSAC, PrioritizedTD3, make_vec_env

TWINS = [
    (PrioritizedDQN, DQN, "CartPole-v1"),
    (PrioritizedTD3, TD3, "Pendulum-v1"),
    (PrioritizedSAC, SAC, "Pendulum-v1"),
]
SMALL = {"seed": 0, "device": "cpu", "batch_size": 16, "learning_starts": 50, "policy_kwargs": {"net_arch": [16]}}


def model(kind, env_id, n_envs=1, **settings):
    arguments = deepcopy({**SMALL, "buffer_size": 400, **settings})  # SB3 writes into policy_kwargs
    made = kind("MlpPolicy", make_vec_env(env_id, n_envs, seed=0), **arguments)
    made.set_logger(configure(None, []))
    return made


def parameters(trained):
    return {name: value.clone() for name, value in trained.policy.state_dict().items()}


def fill(buffer, num_steps, n_envs, first=0.0, last_done=False):
    """Step t of env e has observation 100 e + t and reward the same."""
    for t in range(num_steps):
        now = 100.0 * np.arange(n_envs) + t + first
        done = np.full(n_envs, last_done and t == num_steps - 1)
        infos = [{"TimeLimit.truncated": False}] * n_envs
        buffer.add(now[:, None], now[:, None] + 1, np.zeros(n_envs, int), now, done, infos)


def line_buffer(n_envs=1, size=64, **settings):
    space = spaces.Box(-np.inf, np.inf, (1,))
    return PrioritizedReplayBuffer(size, space, spaces.Discrete(2), "cpu", n_envs, seed=0, **settings)


@pytest.mark.parametrize(("ours", "stock", "env_id"), TWINS)
def test_with_equal_weights_an_update_is_sb3s_to_the_last_bit(ours, stock, env_id, monkeypatch):
    settings = {"replay_buffer_kwargs": {"priority_exponent": 0.0}}
    mine, theirs = model(ours, env_id, 2, **settings), model(stock, env_id, 2)
    mine.learn(100)
    theirs.set_parameters(deepcopy(mine.get_parameters()))
    before, drawn = parameters(mine), []
    sample = mine.replay_buffer.sample

    def remember(*arguments, **keywords):
        drawn.append(sample(*arguments, **keywords))
        return drawn[-1]

    monkeypatch.setattr(mine.replay_buffer, "sample", remember)
    if ours is PrioritizedSAC:
        theirs.log_ent_coef.data.copy_(mine.log_ent_coef.data)
    theirs._n_updates, theirs._current_progress_remaining = mine._n_updates, mine._current_progress_remaining
    th.manual_seed(3)
    mine.train(4, 16)
    batches = iter(drawn)
    monkeypatch.setattr(theirs.replay_buffer, "sample", lambda *_, **__: ReplayBufferSamples(*next(batches)[:6]))
    th.manual_seed(3)
    theirs.train(4, 16)
    assert all((batch.weights == 1).all() for batch in drawn)
    after, reference = parameters(mine), parameters(theirs)
    assert any(not th.equal(after[name], before[name]) for name in after)
    for name, value in after.items():
        assert th.equal(value, reference[name]), name


@pytest.mark.parametrize(("ours", "stock", "env_id"), TWINS)
def test_priorities_become_the_td_errors_and_weights_scale_the_loss(ours, stock, env_id, monkeypatch):
    trained = model(ours, env_id)
    trained.learn(80)
    memory = trained.replay_buffer.memory
    told = []
    update = memory.update_priorities
    monkeypatch.setattr(
        memory, "update_priorities", lambda ids, errors: told.append((ids, errors)) or update(ids, errors)
    )
    drawn = []
    sample = trained.replay_buffer.sample

    def without_weight(*arguments, **keywords):
        batch = sample(*arguments, **keywords)
        drawn.append(batch)
        return batch._replace(weights=th.zeros_like(batch.weights))

    monkeypatch.setattr(trained.replay_buffer, "sample", without_weight)
    network = trained.q_net if ours is PrioritizedDQN else trained.critic
    holder = trained.policy if ours is PrioritizedDQN else trained.critic
    holder.optimizer = th.optim.Adam(network.parameters(), lr=1e-3)  # without momentum of earlier steps
    before = {name: value.clone() for name, value in network.state_dict().items()}
    trained.train(1, 16)
    for name, value in network.state_dict().items():
        assert th.equal(value, before[name])  # rows of weight 0 move nothing
    (ids, errors), batch = told[0], drawn[0]
    assert np.array_equal(ids, batch.ids)
    stored = dict(zip(range(memory.oldest, memory.inserted), memory.priorities, strict=True))
    assert [stored[row] for row in ids] == pytest.approx(errors)
    if ours is PrioritizedDQN:
        best = trained.q_net_target(batch.next_observations).max(dim=1, keepdim=True).values
        q = trained.q_net(batch.observations).gather(1, batch.actions.long())
        by_hand = batch.rewards + 0.99 * (1 - batch.dones) * best - q
        assert errors == pytest.approx(by_hand.abs().flatten().detach().numpy(), rel=1e-5)


def test_each_env_has_its_own_rows_and_an_update_changes_one_leaf():
    buffer = line_buffer(n_envs=4)
    fill(buffer, 5, 4)
    assert buffer.size() == 5
    assert len(buffer.memory) == 20
    leaves = buffer.memory.tree.leaves.copy()
    ids = {float(row.obs[0, 0]): i for i, row in enumerate(buffer.memory.all_experiences("none"))}
    row_2_env_3 = ids[302.0]
    buffer.update_priorities(np.array([row_2_env_3]), th.tensor([[-7.0]]))
    changed = np.flatnonzero(buffer.memory.tree.leaves != leaves)
    assert changed.tolist() == [row_2_env_3]
    assert buffer.memory.priorities[row_2_env_3] == 7.0


@pytest.mark.parametrize("n_envs", [1, 3])
def test_windows_follow_one_env_and_end_where_its_episode_does(n_envs):
    buffer = line_buffer(n_envs, size=60 * n_envs, n_steps=3, gamma=0.5)
    fill(buffer, 4, n_envs, last_done=True)
    fill(buffer, 5, n_envs, first=10.0)
    batch = buffer.sample(200)
    obs, reward, discount, after = (
        x.flatten().numpy() for x in (batch.observations, batch.rewards, batch.discounts, batch.next_observations)
    )
    assert len(set(obs)) == 9 * n_envs
    for s, r, d, s_after, done in zip(obs, reward, discount, after, batch.dones.flatten().numpy(), strict=True):
        step = s % 100
        last = 3 if step <= 3 else 14
        length = int(min(3, last - step + 1))
        assert r == pytest.approx(sum(0.5**k * (s + k) for k in range(length)))
        ends = step <= 3 and step + length - 1 == 3
        assert done == ends
        assert d == (0.0 if ends else 0.5**length)
        assert s_after == s + length


def test_a_time_limit_bootstraps_unless_told_otherwise():
    for handled, discount in ((True, 0.99), (False, 0.0)):
        buffer = line_buffer(handle_timeout_termination=handled)
        one = np.ones((1, 1))
        buffer.add(one, one + 1, np.zeros(1, int), np.ones(1), np.ones(1, bool), [{"TimeLimit.truncated": True}])
        assert buffer.sample(1).discounts.item() == pytest.approx(discount)


def test_no_window_runs_over_a_reset_between_two_calls_of_learn():
    trained = model(PrioritizedDQN, "CartPole-v1", n_steps=5, learning_starts=1000)
    trained.learn(8)
    trained.learn(8)
    rows = trained.replay_buffer.memory.all_experiences()
    batch = trained.replay_buffer.sample(500)
    assert not np.array_equal(rows.obs[8], rows.next_obs[7])
    for obs, after, discount in zip(batch.observations, batch.next_observations, batch.discounts, strict=True):
        start = int(np.flatnonzero((rows.obs == obs.numpy()).all(axis=1))[0])
        end = int(np.flatnonzero((rows.next_obs == after.numpy()).all(axis=1))[0])
        assert (start < 8) == (end < 8)
        assert discount.item() == pytest.approx(0.99 ** (end - start + 1))


def test_the_buffer_on_a_stock_algorithm_warns():
    stock = model(DQN, "CartPole-v1", replay_buffer_class=PrioritizedReplayBuffer)
    with pytest.warns(UserWarning, match="does not feed its TD errors back"):
        stock.learn(70)


def test_another_buffer_and_shared_storage_are_refused():
    with pytest.raises(ValueError, match="needs a PrioritizedReplayBuffer, got ReplayBuffer"):
        model(PrioritizedDQN, "CartPole-v1", replay_buffer_class=ReplayBuffer)
    with pytest.raises(ValueError, match="optimize_memory_usage"):
        model(PrioritizedDQN, "CartPole-v1", optimize_memory_usage=True)
    for bad in ({"n_steps": 0}, {"n_steps": 1.5}, {"gamma": 1.1}, {"gamma": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            model(PrioritizedDQN, "CartPole-v1", **bad)
    with pytest.raises(ValueError, match="priority_exponent"):
        model(PrioritizedDQN, "CartPole-v1", replay_buffer_kwargs={"priority_exponent": 1.5})


@pytest.mark.parametrize(("ours", "stock", "env_id"), TWINS)
def test_saving_and_loading_goes_on_equally(ours, stock, env_id, tmp_path):
    trained = model(ours, env_id, 2, n_steps=3).learn(150)
    trained.save(tmp_path / "model")
    trained.save_replay_buffer(tmp_path / "buffer")
    loaded = ours.load(tmp_path / "model", env=make_vec_env(env_id, 2, seed=9), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert loaded.n_steps == 3
    old, new = trained.replay_buffer.memory, loaded.replay_buffer.memory
    assert np.array_equal(old.priorities, new.priorities)
    assert len(set(new.priorities)) > 20
    assert new.importance_sampling_exponent == old.importance_sampling_exponent > 0.4
    loaded.set_logger(configure(None, []))
    for each in (trained, loaded):
        th.manual_seed(1)
        each.train(3, 16)
    for name, value in parameters(trained).items():
        assert th.equal(value, parameters(loaded)[name]), name


def test_a_model_may_be_loaded_with_another_discount_and_window(tmp_path):
    model(PrioritizedDQN, "CartPole-v1", n_steps=3).save(tmp_path / "model")
    loaded = PrioritizedDQN.load(tmp_path / "model", gamma=0.5, n_steps=2)
    assert (loaded.replay_buffer.gamma, loaded.replay_buffer.n_steps) == (loaded.gamma, loaded.n_steps) == (0.5, 2)
    assert PrioritizedDQN.load(tmp_path / "model").replay_buffer.gamma == 0.99


def test_the_same_seed_gives_the_same_run():
    runs = [parameters(model(PrioritizedDQN, "CartPole-v1", 2, seed=seed).learn(200)) for seed in (0, 0, 1)]
    assert all(th.equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert any(not th.equal(runs[0][name], runs[2][name]) for name in runs[0])


def test_a_buffer_of_another_number_of_envs_is_refused_at_its_first_step(tmp_path):
    saved = model(PrioritizedDQN, "CartPole-v1", 2).learn(20)
    saved.save_replay_buffer(tmp_path / "buffer")
    other = model(PrioritizedDQN, "CartPole-v1", 3)
    other.load_replay_buffer(tmp_path / "buffer")
    with pytest.raises(ValueError, match=r"2 envs \(n_envs\), got a step of 3"):
        other.learn(9)
    assert len(other.replay_buffer.memory) == len(saved.replay_buffer.memory)


class DictEnv(gym.Env):
    """A box and a number; ends after nine steps."""

    observation_space = spaces.Dict({"box": spaces.Box(-1, 1, (3,)), "number": spaces.Discrete(4)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action):
        self.steps += 1
        return self._obs(), float(action), self.steps == 9, False, {}

    def _obs(self):
        return {"box": self.np_random.uniform(-1, 1, 3).astype(np.float32), "number": np.int64(self.steps % 4)}


def test_dict_observations_and_vec_normalize():
    venv = VecNormalize(sb3_make_vec_env(DictEnv, 2, seed=0), norm_obs_keys=["box"])
    trained = PrioritizedDQN("MultiInputPolicy", venv, n_steps=2, **deepcopy(SMALL)).learn(200)
    raw = trained.replay_buffer.memory.all_experiences().obs["box"]
    assert np.abs(raw).max() <= 1
    batch = trained.replay_buffer.sample(64, env=venv)
    assert batch.observations["number"].shape == (64, 1)
    assert batch.observations["box"].abs().max() > 1  # of variance one, not a third
    trained.replay_buffer.update_priorities(batch.ids, th.ones(64, 1))
    assert trained.replay_buffer.sample(64).observations["box"].abs().max() <= 1


@pytest.mark.parametrize("space", [spaces.Discrete(5), spaces.MultiDiscrete([3, 4]), spaces.MultiBinary(6)])
def test_shapes_are_sb3s(space):
    ours = PrioritizedReplayBuffer(32, space, spaces.Discrete(3), "cpu", n_envs=2)
    theirs = ReplayBuffer(32, space, spaces.Discrete(3), "cpu", n_envs=2)
    for _ in range(4):
        obs, after = (np.stack([space.sample(), space.sample()]) for _ in range(2))
        for buffer in (ours, theirs):
            buffer.add(obs, after, np.array([1, 2]), np.ones(2), np.zeros(2, bool), [{}, {}])
    mine, other = ours.sample(8), theirs.sample(8)
    for name in ("observations", "actions", "next_observations", "dones", "rewards"):
        assert getattr(mine, name).shape == getattr(other, name).shape, name
        assert getattr(mine, name).dtype == getattr(other, name).dtype, name


DQN_SETTINGS = {  # those of RL Zoo for CartPole-v1, for a smaller network
    "learning_rate": 1e-3,
    "batch_size": 64,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [64, 64]},
}
CONTINUOUS_SETTINGS = {
    "learning_rate": 2e-3,
    "gamma": 0.98,
    "batch_size": 128,
    "learning_starts": 500,
    "policy_kwargs": {"net_arch": [64, 64]},
}


@pytest.fixture
def one_thread():
    """Small networks learn slower on several threads, and much slower where others use the processors too."""
    threads = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(threads)


def best_return(kind, env_id, total_timesteps, good_enough, **settings):
    """The best mean return of 20 greedy episodes, looked at every twentieth part until it is good enough."""
    trained = kind("MlpPolicy", make_vec_env(env_id, 1, seed=0), seed=0, device="cpu", **deepcopy(settings))
    stop = StopTrainingOnRewardThreshold(good_enough)
    judge = EvalCallback(
        make_vec_env(env_id, 20, seed=1 << 30), stop, None, 20, total_timesteps // 20, verbose=0, warn=False
    )
    trained.learn(total_timesteps, judge)
    return judge.best_mean_reward


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_dqn_solves_cartpole_beside_its_uniform_twin_and_does_not_without_learning_rate(one_thread):
    env_id = "NumpyCartPole-v1"
    threshold = gym.spec(env_id).reward_threshold
    for kind in (PrioritizedDQN, DQN):
        assert best_return(kind, env_id, 51_200, threshold, **DQN_SETTINGS) >= threshold
    assert best_return(PrioritizedDQN, env_id, 10_240, threshold, **DQN_SETTINGS | {"learning_rate": 0.0}) < 200


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("ours", "stock", "steps"), [(PrioritizedSAC, SAC, 6_000), (PrioritizedTD3, TD3, 9_000)])
def test_continuous_control_is_learnt_beside_the_uniform_twin_and_not_without_learning_rate(
    ours, stock, steps, one_thread
):
    """Pendulum: random play earns about -1,200, a good policy more than -200."""
    noise = NormalActionNoise(np.zeros(1), 0.1 * np.ones(1)) if stock is TD3 else None
    settings = {**CONTINUOUS_SETTINGS, "action_noise": noise}
    for kind in (ours, stock):
        assert best_return(kind, "Pendulum-v1", steps, -200, **settings) > -250
    assert best_return(ours, "Pendulum-v1", 2_000, -200, **settings | {"learning_rate": 0.0}) < -800
