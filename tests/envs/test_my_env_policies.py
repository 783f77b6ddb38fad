"""The scripted policies: their mean returns guard the meaning of the threshold."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import gym_custom  # noqa: F401
from gym_custom.my_env import CASE_SEEDS
from gym_custom.my_env.policies import POLICIES, ScriptedPolicy


def play(env_id, name, cases):
    """Mean return and success of a policy over the first fixed cases."""
    env = gym.make_vec(env_id, num_envs=cases)
    policy = ScriptedPolicy(name, env)
    observation, _ = env.reset(seed=list(CASE_SEEDS[:cases]))
    returns, going, success = np.zeros(cases), np.ones(cases, bool), np.zeros(cases, bool)
    while going.any():
        observation, reward, terminated, truncated, info = env.step(policy.predict(observation)[0])
        returns += np.where(going, reward, 0.0)
        success |= going & info["is_success"]
        going &= ~(terminated | truncated)
    return returns.mean(), success.mean()


BANDS = {  # four standard errors of a mean over 500 cases about what was measured
    "parked": {"MyEnv-v0": (-21.5, -19.5), "MyEnvDense-v0": (-30, -23), "MyEnvHard-v0": (-42, -33)},
    "straight": {"MyEnv-v0": (-25, -4), "MyEnvDense-v0": (-42, -30), "MyEnvHard-v0": (-47, -43)},
    "gap_follower": {
        "MyEnv-v0": (55, 79),
        "MyEnvStatic-v0": (107, 113.5),
        "MyEnvDense-v0": (-7, 19),
        "MyEnvHard-v0": (-47, -35),
        "MyEnvPartial-v0": (42, 68),
    },
    "look_ahead": {"MyEnv-v0": (106, 113), "MyEnvDense-v0": (90, 105), "MyEnvHard-v0": (50, 76)},
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "env_id"), [(name, env_id) for name in BANDS for env_id in BANDS[name]])
def test_returns_over_all_cases_lie_in_their_bands(name, env_id):
    low, high = BANDS[name][env_id]
    assert low < play(env_id, name, 500)[0] < high


@pytest.mark.parametrize(
    ("name", "low", "high"), [("parked", -25, -18), ("gap_follower", 20, 100), ("look_ahead", 85, 114)]
)
def test_returns_over_some_cases(name, low, high):
    assert low < play("MyEnv-v0", name, 30)[0] < high


def test_one_environment_gets_the_action_of_its_row():
    env, vector = gym.make("MyEnv-v0"), gym.make_vec("MyEnv-v0", num_envs=2)
    for name in POLICIES:
        observation, _ = env.reset(seed=4)
        rows, _ = vector.reset(seed=[4, 9])
        action, _ = ScriptedPolicy(name, env).predict(observation)
        assert action == ScriptedPolicy(name, vector).predict(rows)[0][0]
        assert env.action_space.contains(action)


@pytest.mark.parametrize("vector", [False, True])
def test_a_policy_drives_alike_with_continuous_actions(vector):
    places = []
    for continuous in (False, True):
        make = partial(gym.make_vec, num_envs=2) if vector else gym.make
        env = make("MyEnv-v0", continuous=continuous)
        env.reset(seed=5)
        policy = ScriptedPolicy("look_ahead", env)
        for _ in range(25):
            action = policy.predict(None)[0]
            assert env.action_space.contains(action)
            env.step(action)
        places.append(env.unwrapped.get_state().state.position)
    assert np.array_equal(*places)


def test_unknown_policies_and_foreign_environments_are_refused():
    with pytest.raises(ValueError, match="'dance'"):
        ScriptedPolicy("dance", gym.make("MyEnv-v0"))
    for env in (gym.make("GridWorld-v0"), gym.make_vec("MyEnv-v0", num_envs=2, vectorization_mode="sync")):
        with pytest.raises(TypeError, match="drives a MyEnv or a MyVectorEnv, not "):
            ScriptedPolicy("parked", env)
