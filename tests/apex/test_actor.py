"""What an actor collects, against the oracle of a plain loop."""

import gymnasium as gym
import numpy as np
import pytest

from agents.apex.actor import ActorPlan, build_actor, priorities
from agents.apex.config import ApeXConfig
from agents.apex.envs import EVALUATION_SEED, actor_seeds, make_envs, resolve, spaces_of
from agents.apex.inline import InlineChannel
from agents.apex.mailbox import Mailbox
from agents.apex.network import make_network, to_arrays
from agents.types import Transition, Weights

from .probes import EndsAfterFive, ObservedReward, TimeLimited, TwoSteps


def make_actor(env="CartPole-v1", actor=0, life=0, seed=0, **settings):
    config = ApeXConfig(**{"hidden_sizes": (8,), "envs_per_actor": 3, "num_actors": 2, **settings})
    source = resolve(env)
    network = make_network(*spaces_of(source), config.hidden_sizes, config.layer_norm, seed)
    return build_actor(ActorPlan(source, config, seed, actor, life), Weights(0, to_arrays(network)))


@pytest.fixture
def channel():
    return InlineChannel(Mailbox())


def trained(actor, version=7):
    return Weights(version, actor.weights.arrays)


def collected(actor, channel, blocks):
    found = [actor.collect(channel) for _ in range(blocks)]
    return Transition(*(np.concatenate(field) for field in zip(*(block.windows for block in found), strict=True)))


def test_windows_have_their_own_discount_and_never_cross_an_end(channel):
    windows = collected(make_actor(EndsAfterFive, n_step=3, gamma=0.9), channel, 10)
    times = windows.obs
    steps = np.minimum(3, 5 - times)
    np.testing.assert_allclose(windows.reward, [sum(0.9**i for i in range(k)) for k in steps])
    np.testing.assert_array_equal(windows.next_obs, times + steps)
    np.testing.assert_allclose(windows.discount, np.where(windows.next_obs == 5, 0.0, 0.9**3))


def test_the_row_of_an_automatic_reset_is_never_stored(channel):
    windows = collected(make_actor(EndsAfterFive, n_step=1), channel, 10)
    assert (windows.next_obs == windows.obs + 1).all()
    assert set(windows.obs) == {0, 1, 2, 3, 4}


def test_a_cut_episode_bootstraps_from_its_last_observation(channel):
    windows = collected(make_actor(TimeLimited, n_step=3, gamma=0.9), channel, 10)
    assert set(np.round(windows.discount, 6)) == {0.729, 0.81, 0.9}


def test_steps_are_counted_once_each(channel):
    actor = make_actor(EndsAfterFive, n_step=3)
    blocks = [actor.collect(channel) for _ in range(20)]
    steps, rows = sum(b.steps for b in blocks), sum(len(b.priorities) for b in blocks)
    assert 0 <= steps - rows <= 3 * 2  # at most n - 1 open windows a row
    assert sum(e.length for b in blocks for e in b.episodes) <= steps
    assert {e.length for b in blocks for e in b.episodes} == {5}
    assert {e.reward for b in blocks for e in b.episodes} == {5.0}


def test_priorities_are_the_errors_of_the_values_it_acted_on(channel):
    actor = make_actor(n_step=3, gamma=0.9)
    block = actor.collect(channel)
    w = block.windows
    q, after = actor.values(w.obs), actor.values(w.next_obs)
    expected = abs(w.reward + w.discount * after.max(axis=1) - q[np.arange(len(q)), w.action])
    np.testing.assert_allclose(block.priorities, expected, rtol=1e-4, atol=1e-5)


def test_converged_values_have_no_priority():
    q = np.full((4, 2), 50.0, np.float32)
    windows = Transition(np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.full(4, 0.5), np.full(4, 0.99), np.zeros((4, 1)))
    np.testing.assert_allclose(priorities(windows, q, q), 0.0, atol=1e-5)


def test_untrained_weights_act_at_random_and_trained_ones_greedily():
    mailbox = Mailbox()
    actor = make_actor(actor=1, max_epsilon=0.0)
    first = actor.collect(InlineChannel(mailbox))
    assert set(first.windows.action) == {0, 1}
    assert first.version == 0
    mailbox.publish(trained(actor))
    channel = InlineChannel(mailbox)
    actor.collect(channel)
    block = actor.collect(channel)
    greedy = actor.values(block.windows.obs).argmax(axis=1)
    np.testing.assert_array_equal(block.windows.action[3 * 2 :], greedy[3 * 2 :])
    assert block.version == 7


def test_each_row_explores_with_its_own_epsilon():
    np.testing.assert_allclose(
        np.concatenate([make_actor(actor=i, envs_per_actor=4).epsilons for i in range(2)]),
        0.4 ** (1 + 7 * np.arange(8) / 7),
    )


def test_weights_are_looked_for_once_in_so_many_steps(channel, monkeypatch):
    actor = make_actor(update_param_interval=30, block_steps=100)
    actor.use(trained(actor, version=1))
    looks = []
    monkeypatch.setattr(channel, "weights", lambda: looks.append(1))
    block = actor.collect(channel)
    assert len(looks) == pytest.approx(block.steps / 30, abs=2)


def test_actors_and_lives_draw_different_numbers_and_a_second_run_the_same():
    def actions(**which):
        return make_actor(envs_per_actor=3, **which).generator.random(20).tolist()

    streams = [actions(actor=a, life=life, seed=s) for a in (0, 1) for life in (0, 1) for s in (0, 1)]
    assert len({tuple(stream) for stream in streams}) == 8
    assert actions(actor=1, life=1, seed=1) == streams[-1]


def test_row_seeds_differ_and_are_not_the_evaluators():
    rows = [seed for a in range(4) for life in range(3) for seed in actor_seeds(5, a, life, 16).rows]
    assert len(set(rows)) == len(rows)
    assert max(rows) < EVALUATION_SEED


def test_observations_are_not_kept_by_reference(channel):
    actor = make_actor("CartPole-v1", n_step=2)
    windows = collected(actor, channel, 3)
    before = windows.obs.copy()
    actor.collect(channel)
    np.testing.assert_array_equal(windows.obs, before)
    assert not np.array_equal(windows.obs, windows.next_obs)


def test_actions_that_do_not_start_at_zero_reach_the_env():
    class FromFive(EndsAfterFive):
        action_space = gym.spaces.Discrete(2, start=5)

        def step(self, action):
            assert action in (5, 6)
            return super().step(action)

    block = make_actor(FromFive).collect(InlineChannel(Mailbox()))
    assert set(block.windows.action) == {0, 1}


def test_envs_whose_rows_share_a_generator_are_not_used():
    assert isinstance(make_envs(resolve("CartPole-v1"), 2), gym.vector.SyncVectorEnv)


@pytest.mark.parametrize("envs_per_actor", [1, 3])
@pytest.mark.parametrize(("env", "block_steps"), [(TwoSteps, 1), (ObservedReward, 4), (TwoSteps, 50)])
def test_returns_and_lengths_are_those_of_a_plain_loop(channel, env, block_steps, envs_per_actor):
    actor = make_actor(env, block_steps=block_steps, n_step=2, envs_per_actor=envs_per_actor)
    want, got, sums = [], [], np.zeros((envs_per_actor, 2))
    for _ in range(20):
        got += [tuple(episode) for episode in actor.collect(channel).episodes]
        steps = actor.buffer
        for row in range(envs_per_actor):
            for t in range(steps.num_steps):
                sums[row] += steps.reward[t, row], steps.valid[t, row]
                if steps.terminated[t, row] or steps.truncated[t, row]:
                    want.append((row, actor.epsilons[row], *sums[row]))
                    sums[row] = 0
    assert got == want
    assert len(got) > 5


@pytest.mark.parametrize("block_steps", [1, 2, 20])
def test_the_length_of_blocks_changes_nothing_but_the_blocks(channel, block_steps):
    def rows(steps):
        actor = make_actor(block_steps=steps, n_step=3, max_epsilon=0.0, envs_per_actor=3)
        actor.use(trained(actor))
        windows = collected(actor, channel, 40 // steps)
        order = np.lexsort(np.column_stack([windows.obs, windows.next_obs]).T)
        return [column[order] for column in windows]

    for mine, yours in zip(rows(block_steps), rows(4), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-6)
