"""Q-learning in NumPy: hand-computed updates, ties, ends of episodes in every autoreset mode, learning."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.tabular import QLearning, epsilon_greedy, q_update
from agents.tabular.equations import visit_rate
from agents.tabular.tables import state_index, table_shape


class Corridor(gym.Env):
    """Two cells: action 0 earns 1 and ends the episode, action 1 stays and earns 0."""

    observation_space, action_space = spaces.Discrete(2, start=5), spaces.Discrete(2, start=1)
    metadata = {"render_modes": []}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 5, {}

    def step(self, action):
        ended = action == 1
        return 6 if ended else 5, 1.0 if ended else 0.0, ended, False, {}


def counts(q, epsilon, n=20_000, seed=0):
    actions = epsilon_greedy(np.tile(q, (n, 1)), epsilon, np.random.default_rng(seed).random(n))
    return np.bincount(actions, minlength=len(q)) / n


def test_ties_are_broken_uniformly_among_the_exact_maxima():
    shares = counts([0.0, 1.0, 1.0, 0.0], 0.0)
    assert shares[0] == shares[3] == 0
    assert 0.45 < shares[1] < 0.55
    for q in ([0.0] * 4, [-3.0] * 4, [-np.inf] * 4):
        assert np.allclose(counts(q, 0.0), 0.25, atol=0.02)
    assert np.allclose(counts([-np.inf, -1.0, -np.inf, -1.0], 0.0), [0, 0.5, 0, 0.5], atol=0.02)


def test_epsilon_gives_every_action_its_part():
    assert np.allclose(counts([0.0, 2.0, 1.0, 0.0], 0.4), [0.1, 0.7, 0.1, 0.1], atol=0.02)
    assert np.allclose(counts([0.0, 2.0, 1.0, 0.0], 1.0), 0.25, atol=0.02)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5]), min_size=1, max_size=7),
    st.floats(0, 1),
    st.floats(0, 1, exclude_max=True),
)
def test_actions_are_legal_and_greedy_unless_exploring(q, epsilon, u):
    action = epsilon_greedy(np.array(q), epsilon, u)
    assert 0 <= action < len(q)
    if u >= epsilon:
        assert q[action] == max(q)
    assert action == epsilon_greedy(np.array([q, q], np.float64), np.array([epsilon] * 2), np.array([u] * 2))[1]


def test_update_by_hand():
    assert q_update(2.0, 1.0, False, np.array([0.0, 4.0]), 0.5, 0.9) == 2.0 + 0.5 * (1 + 0.9 * 4 - 2)
    assert q_update(2.0, 1.0, True, np.array([0.0, 4.0]), 0.5, 0.9) == 2.0 + 0.5 * (1 - 2)
    assert q_update(2.0, 1.0, True, np.array([np.nan, np.inf]), 1.0, 0.9) == 1.0
    rows = q_update(np.zeros(2), np.ones(2), np.array([True, False]), np.ones((2, 3)), np.array([0.5, 1.0]), 0.5)
    assert rows.tolist() == [0.5, 1.5]
    assert np.allclose([visit_rate(n) for n in (1, 32)], [1.0, 1 / 16])


@pytest.mark.parametrize("preset", [0.0, 100.0])
def test_termination_masks_the_bootstrap_and_the_next_episode_does_not_leak(preset):
    agent = QLearning(Corridor(), learning_rate=1.0, discount=0.9, epsilon=1.0, seed=0)
    agent.q_values[...] = preset
    agent.learn(num_episodes=20)
    assert agent.q_values[0, 0] == 1.0
    assert (agent.q_values[1] == preset).all()  # the end is never acted in


def test_truncation_bootstraps_from_the_true_last_observation():
    tables = set()
    for seed in range(20):
        agent = QLearning(gym.wrappers.TimeLimit(Corridor(), 1), 1.0, 0.9, epsilon=1.0, seed=seed)
        agent.q_values[0], agent.q_values[1] = 2.0, 7.0
        agent.learn(num_episodes=1)
        assert agent.episode_lengths == [1]
        tables.add(tuple(agent.q_values[0].tolist()))
    assert tables == {(1.0, 2.0), (2.0, 0.9 * 2.0)}  # the end, or a truncated stay


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode), ids=lambda mode: mode.name)
def test_vector_envs_learn_the_same_in_every_autoreset_mode(mode):
    env = gym.vector.SyncVectorEnv([lambda: gym.wrappers.TimeLimit(Corridor(), 3)] * 4, autoreset_mode=mode)
    agent = QLearning(env, learning_rate=1.0, discount=0.9, epsilon=1.0, seed=0)
    agent.q_values[:, 0, :] = 100.0
    agent.learn(num_episodes=80)
    assert (agent.q_values[:, 0, 0] == 1.0).all()
    assert (agent.q_values[:, 1] == 0.0).all()  # the end is never acted in
    assert all(length <= 3 for length in agent.episode_lengths)
    assert agent.num_timesteps >= sum(agent.episode_lengths)
    assert set(agent.episode_returns) <= {0.0, 1.0}


def test_learns_frozen_lake_and_a_rate_of_zero_does_not():
    env = gym.make("FrozenLake-v1", is_slippery=False)
    agent = QLearning(env, 0.5, 0.9, 0.5, seed=0).learn(total_timesteps=20_000)
    assert agent.num_timesteps == 20_000
    distance = {14: 1, 13: 2, 10: 2, 9: 3, 6: 3, 8: 4, 2: 4, 4: 5, 1: 5, 0: 6}
    for state, steps in distance.items():
        assert np.isclose(agent.q_values[state].max(), 0.9 ** (steps - 1))
    assert QLearning(env, 0.0, 0.9, 0.5, seed=0).learn(5_000).q_values.max() == 0


@pytest.mark.parametrize(("env_id", "good"), [("CliffWalking-v1", -60), ("Taxi-v4", 4)])
def test_learns_gymnasiums_text_worlds(env_id, good):
    if env_id not in gym.registry:
        pytest.skip(f"this Gymnasium has no {env_id}")
    agent = QLearning(env_id, 0.5, 0.99, 0.1, seed=1).learn(num_episodes=1500)
    assert np.mean(agent.episode_returns[-100:]) > good - 60
    obs, _ = agent.env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        obs, reward, terminated, truncated, _ = agent.env.step(agent.predict(obs)[0])
        total, ended = total + reward, terminated or truncated
    assert total >= good if env_id == "Taxi-v4" else total == -13


def test_the_same_seed_gives_the_same_agent_and_the_global_generator_rests():
    state = np.random.get_state()[1].copy()
    tables = [QLearning("FrozenLake-v1", "visits", seed=s).learn(3000).q_values for s in (3, 3, 4)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
    assert np.array_equal(np.random.get_state()[1], state)


def test_arrays_of_settings_hold_row_by_row():
    env = gym.make_vec("FrozenLake-v1", num_envs=3, vectorization_mode="sync", is_slippery=False)
    agent = QLearning(env, np.array([0.0, 0.5, 0.5]), 0.9, np.array([1.0, 1.0, 0.0]), seed=0).learn(30_000)
    assert agent.q_values.shape == (3, 16, 4)
    assert agent.q_values[0].max() == 0
    assert np.isclose(agent.q_values[1].max(), 1.0)


def test_predict_is_deterministic_unless_told_otherwise():
    agent = QLearning("FrozenLake-v1", epsilon=0.0, seed=0)
    agent.q_values[3] = [0, 1, 1, 0]
    assert {int(agent.predict(3)[0]) for _ in range(20)} == {1}
    assert {int(agent.predict(3, deterministic=False)[0]) for _ in range(50)} == {1, 2}
    assert agent.predict(np.array([3, 3]))[0].tolist() == [1, 1]


def test_state_numbers_are_row_major():
    space = spaces.MultiDiscrete([3, 4], start=[1, 0])
    assert state_index(space, np.array([[1, 0], [2, 3], [3, 3]])).tolist() == [0, 7, 11]
    nested = spaces.MultiDiscrete([[2, 3], [2, 2]])
    assert state_index(nested, np.array([[1, 2], [0, 1]])) == np.ravel_multi_index((1, 2, 0, 1), (2, 3, 2, 2))
    assert table_shape(space, spaces.Discrete(5)) == (3, 4, 5)


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"learning_rate": 1.5}, "learning_rate .* 1.5"),
        ({"learning_rate": "visit"}, "'visit'"),
        ({"discount": -0.1}, "discount .* -0.1"),
        ({"epsilon": float("nan")}, "epsilon .* nan"),
        ({"epsilon": np.zeros(3)}, r"\(3,\)"),
        ({"epsilon": "a"}, "epsilon .* 'a'"),
    ],
)
def test_senseless_settings_are_refused(kwargs, match):
    with pytest.raises((TypeError, ValueError), match=match):
        QLearning("FrozenLake-v1", **kwargs)


def test_infinite_spaces_and_senseless_lengths_are_refused():
    with pytest.raises(TypeError, match="Discrete or MultiDiscrete"):
        QLearning("CartPole-v1")
    with pytest.raises(TypeError, match="Discrete action"):
        QLearning("Pendulum-v1")
    for wrong in (None, 3, object()):
        with pytest.raises(TypeError, match="env must be an env, a vector env or an id"):
            QLearning(wrong)
    agent = QLearning("FrozenLake-v1")
    for wrong in ({}, {"total_timesteps": 5, "num_episodes": 5}):
        with pytest.raises(ValueError, match="one of total_timesteps and num_episodes"):
            agent.learn(**wrong)
    for wrong, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("a", TypeError), (True, TypeError)):
        for name in ("total_timesteps", "num_episodes"):
            with pytest.raises(error, match=f"{name} must be .* got {wrong!r}"):
                agent.learn(**{name: wrong})


@pytest.mark.parametrize("wrong", [[9, 9], [5, 0], [-1, 0], [0.5, 1], [1], "a", [[0, 0], [0, 5]]], ids=str)
def test_predict_refuses_what_is_no_observation(wrong):
    agent = QLearning("GridWorld-v0")
    with pytest.raises(ValueError, match=r"MultiDiscrete\(\[5 5\]\), got"):
        agent.predict(wrong)
    assert agent.predict([4, 4])[0] == 0
    assert agent.predict(np.zeros((3, 2), int))[0].tolist() == [0, 0, 0]
