"""Illegal actions: never chosen, at random or greedily, by actors, learner, evaluator or predict."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agents.apex import ApeX
from agents.apex.actor import ActorPlan, build_actor
from agents.apex.envs import gives_masks, resolve
from agents.apex.features import feature_array, input_range
from agents.apex.inline import InlineChannel
from agents.apex.learner import Learner
from agents.apex.loss import draw_exploration, epsilon_greedy, td_error
from agents.apex.mailbox import Mailbox
from agents.apex.masks import barrier, carries_mask, join, masks_of, penalty, with_mask
from agents.apex.network import features, make_network, to_arrays
from agents.replay import HindsightMemory, PrioritizedMemory
from agents.types import Transition, Weights

from .helpers import agent, small

INF = np.inf


class Doors(gym.Env):
    """Five doors a step; the open ones change by a rule. A closed one ends the test."""

    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(5, start=2)
    kind = staticmethod(np.array)

    def mask(self):
        mask = np.zeros(5, np.int8)
        if self.time < 7:
            mask[[self.time % 5, (2 * self.time + 1) % 5]] = 1
        return self.kind(mask)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0], np.float32), {"action_mask": self.mask()}

    def step(self, action):
        assert self.mask()[action - 2], f"door {action} is closed"
        self.time += 1
        over = self.time == 7
        return np.array([self.time], np.float32), float(action == 2), over, False, {"action_mask": self.mask()}


class DictDoors(Doors):
    """The same with a dict as observation and a list as mask."""

    observation_space = gym.spaces.Dict({"t": gym.spaces.Discrete(8), "x": gym.spaces.Box(0, 1, (2,))})
    kind = staticmethod(list)

    def reset(self, **kwargs):
        _, info = super().reset(**kwargs)
        return {"t": 0, "x": np.zeros(2, np.float32)}, info

    def step(self, action):
        _, *rest = super().step(action)
        return {"t": self.time, "x": np.zeros(2, np.float32)}, *rest


@pytest.mark.parametrize("env", [Doors, DictDoors])
@pytest.mark.parametrize("exploration", ["epsilon", "noisy"])
def test_no_closed_door_is_tried_while_learning(tmp_path, env, exploration):
    """Warm-up, exploration, greedy evaluations: each asserts within the env."""
    ape = agent(tmp_path, env, exploration=exploration, max_epsilon=1.0, epsilon_alpha=0.0).learn(800)
    assert carries_mask(ape.input_space)
    assert ape.observation_space == env.observation_space
    assert ape.learner.updates > 0


def test_learning_with_masks_repeats_over_save_and_load(tmp_path):
    whole = agent(tmp_path / "a", Doors).learn(300).learn(300)
    agent(tmp_path / "b", Doors).learn(300).save(tmp_path / "b.apex")
    back = ApeX.load(tmp_path / "b.apex", env=Doors)
    back.resume_in(tmp_path / "c")
    back.learn(300)
    for mine, yours in zip(whole.learner.network.parameters(), back.learner.network.parameters(), strict=True):
        assert torch.equal(mine, yours)


def test_every_open_door_is_explored_equally():
    q = np.array([[2.0, 1.0, 1.0, 0.0]] * 30_000) + barrier([[0, 1, 1, 1]] * 30_000, 4)
    numbers = draw_exploration(np.random.default_rng(0), (len(q),))
    shares = np.bincount(epsilon_greedy(q, np.ones(len(q)), *numbers), minlength=4) / len(q)
    assert shares[0] == 0
    assert shares[1:] == pytest.approx([1 / 3] * 3, abs=0.01)
    shares = np.bincount(epsilon_greedy(q, np.full(len(q), 0.3), *numbers), minlength=4) / len(q)
    assert shares == pytest.approx([0, 0.8, 0.1, 0.1], abs=0.01)


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_the_choice_is_the_one_of_a_loop(actions, rows, data):
    numbers = st.floats(0, 1, exclude_max=True)
    q = np.array(
        data.draw(
            st.lists(st.lists(st.integers(-9, 9), min_size=actions, max_size=actions), min_size=rows, max_size=rows)
        ),
        float,
    )
    legal = np.array(
        [data.draw(st.lists(st.booleans(), min_size=actions, max_size=actions).filter(any)) for _ in range(rows)]
    )
    chance, choice = (np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows))) for _ in range(2))
    chosen = epsilon_greedy(q + barrier(legal, actions), np.full(rows, 0.5), chance, choice)
    for i in range(rows):
        open_doors = [a for a in range(actions) if legal[i, a]]
        best = max(open_doors, key=lambda a: (q[i, a], -a))
        assert chosen[i] == (open_doors[int(choice[i] * len(open_doors))] if chance[i] < 0.5 else best)


def test_the_targets_maximum_is_over_open_doors():
    """Online values choose 9 without a mask; with it the best of the rest, whose target value is 0.5."""
    q_next = np.array([[9.0, 1.0, 2.0]], np.float32) + barrier([[0, 1, 1]], 3)
    target = np.array([[7.0, 4.0, 0.5]], np.float32)
    error = td_error(np.zeros((1, 3), np.float32), np.array([1]), np.array([1.0]), np.array([0.9]), q_next, target)
    assert error == pytest.approx([1.0 + 0.9 * 0.5])


def test_the_learner_uses_the_masks_of_what_comes_after():
    inner, actions = gym.spaces.Box(-1.0, 1.0, (2,), np.float32), gym.spaces.Discrete(3)
    space = with_mask(inner, 3)
    memory = PrioritizedMemory(space, actions, 16, seed=0)
    config = small_config()
    learner = Learner(make_network(space, actions, (8,), True, 0), space, memory, config)
    rng = np.random.default_rng(0)
    obs, after = (rng.uniform(-1, 1, (4, 2)).astype(np.float32) for _ in range(2))
    masks = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]], np.int8)
    ones = np.ones((4, 3), np.int8)
    windows = Transition(
        join(obs, ones), np.array([0, 1, 2, 0]), np.ones(4), np.array([0.9, 0.9, 0.9, 0.0]), join(after, masks)
    )
    error, _ = learner._errors(windows)
    q, q_next = (learner.network(torch.from_numpy(x)).detach().numpy() for x in (obs, after))
    best = [1 + int(q_next[0, 2] > q_next[0, 1]), 0, 2, 0]
    wanted = [
        1 + d * q_next[i, b] - q[i, a]
        for i, (d, b, a) in enumerate(zip([0.9, 0.9, 0.9, 0], best, [0, 1, 2, 0], strict=True))
    ]
    np.testing.assert_allclose(error.detach().numpy(), wanted, rtol=1e-5)


def small_config():
    from agents.apex import ApeXConfig

    return ApeXConfig(hidden_sizes=(8,), cluster="inline")


def test_blocks_carry_masks_and_finite_priorities(tmp_path):
    config = small(tmp_path, num_actors=1)
    space = with_mask(Doors.observation_space, 5)
    network = make_network(space, Doors.action_space, (16,), True, 0)
    actor = build_actor(ActorPlan(resolve(Doors), config, 0, 0, 0, masked=True), Weights(1, to_arrays(network)))
    block = actor.collect(InlineChannel(Mailbox()))
    times, masks = block.windows.next_obs["observation"][:, 0].astype(int), block.windows.next_obs["action_mask"]
    door = Doors()
    for door.time, mask in zip(times, masks, strict=True):
        np.testing.assert_array_equal(mask, door.mask())
    assert np.isfinite(block.priorities).all()


def test_the_network_does_not_see_masks():
    space = with_mask(DictDoors.observation_space, 5)
    obs = join({"t": np.array([3, 0]), "x": np.zeros((2, 2), np.float32)}, np.ones((2, 5), np.int8))
    assert feature_array(space, obs).shape == (2, 10)
    assert len(input_range(space)[0]) == 10
    assert penalty(DictDoors.observation_space, obs) is None


def test_predict_takes_masks(tmp_path):
    ape = agent(tmp_path, Doors)
    obs = np.zeros((40, 1), np.float32)
    for allowed in range(5):
        masks = np.eye(5, dtype=bool)[allowed]
        assert ape.predict(obs[0], action_masks=masks)[0] == allowed + 2
        for deterministic in (True, False):
            actions, _ = ape.predict(obs, action_masks=np.tile(masks, (40, 1)), deterministic=deterministic)
            assert (actions == allowed + 2).all()
    with pytest.raises(ValueError, match=r"must have shape \(5,\)"):
        ape.predict(obs[0], action_masks=[1, 0])


def test_masks_of_single_rows_and_kinds():
    both = {"action_mask": np.array([[1, 0], [0, 1]], np.int8), "_action_mask": np.array([True, True])}
    np.testing.assert_array_equal(masks_of(both, 2, 2), [[1, 0], [0, 1]])
    one = {"action_mask": np.array([[1, 0], [0, 0]], np.int8), "_action_mask": np.array([True, False])}
    np.testing.assert_array_equal(masks_of(one, 2, 2), [[1, 0], [1, 1]])
    lists = np.empty(2, object)
    lists[0], lists[1] = [True, False], None
    np.testing.assert_array_equal(
        masks_of({"action_mask": lists, "_action_mask": [True, False]}, 2, 2), [[1, 0], [1, 1]]
    )
    np.testing.assert_array_equal(masks_of({}, 2, 2), np.ones((2, 2)))


class NoDoor(Doors):
    def mask(self):
        return np.array([1, 1, 1, 1, 1] if self.time < 3 else [0] * 5, np.int8)


class WrongShape(Doors):
    def mask(self):
        return np.ones(4, np.int8)


class WrongValues(Doors):
    def mask(self):
        return np.array([0.5, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (NoDoor, "allows no action, but the episode has not ended"),
        (WrongShape, r"must have shape \(5,\), one value an action"),
        (WrongValues, "must hold ones .legal. and zeros"),
    ],
)
def test_bad_masks_are_refused_in_one_sentence(tmp_path, env, words):
    with pytest.raises(ValueError, match=words):
        agent(tmp_path, env).learn(300)


class Twofold(Doors):
    observation_space = gym.spaces.Dict({"action_mask": gym.spaces.MultiBinary(5)})


def test_two_masks_are_refused():
    with pytest.raises(ValueError, match="one will do"):
        with_mask(Twofold.observation_space, 5)


def test_a_memory_without_room_for_masks_is_refused(tmp_path):
    ape = agent(tmp_path, Doors)
    with pytest.raises(ValueError, match="input_space"):
        ape.memory = PrioritizedMemory(ape.observation_space, ape.action_space, 5_000)
    ape.memory = PrioritizedMemory(ape.input_space, ape.action_space, 5_000)
    ape.learn(300)


def test_envs_without_masks_have_none(tmp_path):
    assert not gives_masks(resolve("CartPole-v1"))
    assert gives_masks(resolve(Doors))
    assert not carries_mask(agent(tmp_path).input_space)


class GoalDoors(Doors):
    """A goal among five places, and doors: hindsight and masks at once."""

    observation_space = gym.spaces.Dict({"place": gym.spaces.Box(0, 9, (1,)), "goal": gym.spaces.Box(0, 9, (1,))})

    def look(self):
        return {"place": np.array([self.time], np.float32), "goal": np.array([6], np.float32)}

    def reset(self, **kwargs):
        _, info = super().reset(**kwargs)
        return self.look(), info

    def step(self, action):
        _, *rest = super().step(action)
        return self.look(), *rest


def test_masks_and_hindsight_together(tmp_path):
    ape = agent(tmp_path, GoalDoors)
    memory = PrioritizedMemory(ape.input_space, ape.action_space, 5_000, seed=0)
    reached = {"achieved": "place", "desired": "goal"}
    ape.memory = HindsightMemory(
        memory,
        **reached,
        reward_function=lambda a, g, _: (a == g).all(1) * 1.0,
        termination_function=lambda a, g: (a == g).all(1),
    )
    ape.learn(400)
    batch = ape.memory.sample(64)
    assert set(batch.transition.obs) == {"place", "goal", "action_mask"}
    legal = batch.transition.obs["action_mask"]
    assert legal[np.arange(64), batch.transition.action].all()


def test_masked_features_reach_torch(tmp_path):
    space = with_mask(Doors.observation_space, 5)
    assert features(space, join(np.zeros((3, 1), np.float32), np.ones((3, 5), np.int8))).shape == (3, 1)
