"""Goals put in by hindsight, against the episodes they must come from."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from agents.replay import HindsightMemory, PrioritizedMemory, UniformMemory
from agents.types import Experience, Transition

PLACE = Box(-1e6, 1e6, (1,), np.float64)
SPACE = Dict({"place": PLACE, "goal": PLACE})
NO_GOAL = 999_999.0


def reward(achieved, goal, info):
    """Not symmetric, so that a wrong order of arguments shows."""
    assert info is None
    return 3 * achieved[:, 0] - goal[:, 0]


def reached(achieved, goal):
    return achieved[:, 0] == goal[:, 0]


def make(memory_class=UniformMemory, capacity=1000, strategy="future", num_goal_samples=4, **kwargs):
    memory = memory_class(SPACE, Discrete(2), capacity=capacity, seed=0)
    return HindsightMemory(
        memory, achieved="place", desired="goal", reward_function=reward, termination_function=reached,
        strategy=strategy, num_goal_samples=num_goal_samples, **kwargs,
    )  # fmt: skip


def episode(number, length, ended=True, terminated=False):
    """Places 100 * number + 0, 1, 2, ...; row t achieves t + 1."""
    place = 100.0 * number + np.arange(length + 1)[:, None]
    goal = np.full((length, 1), NO_GOAL)
    last = (np.arange(length) == length - 1) & ended
    return Experience(
        {"place": place[:-1], "goal": goal}, np.zeros(length, int), np.full(length, -7.0), last & terminated,
        last & (not terminated), {"place": place[1:], "goal": goal},
    )  # fmt: skip


def relabelled(batch):
    transition = batch.transition
    goal = transition.obs["goal"][..., 0]
    np.testing.assert_array_equal(goal, transition.next_obs["goal"][..., 0])
    return goal != NO_GOAL, transition.obs["place"][..., 0], goal, transition


@pytest.mark.parametrize("memory_class", [UniformMemory, PrioritizedMemory])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goals_come_from_the_strategy_and_reward_and_termination_are_redone(strategy, memory_class):
    memory = make(memory_class, strategy=strategy)
    for number in range(6):
        memory.append(episode(number, 7, terminated=number % 2 == 0))
    batch = memory.sample(2000)
    new, place, goal, transition = relabelled(batch)
    assert new.mean() == pytest.approx(0.8, abs=1e-3)
    start, offset = place // 100 * 100, place % 100
    low = {"future": start + offset + 1, "final": start + 7, "episode": start + 1}[strategy]
    assert (goal >= low)[new].all()
    assert (goal <= start + 7)[new].all()
    if strategy != "final":
        assert all(set(goal[new & (place == low_place)] % 100) == set(range(1 if strategy == "episode" else 4, 8))
                   for low_place in (3.0, 103.0))  # fmt: skip
    achieved = transition.next_obs["place"][:, 0]
    np.testing.assert_array_equal(transition.reward[new], (3 * achieved - goal)[new])
    np.testing.assert_array_equal(transition.discount[new], np.where(achieved == goal, 0.0, 0.99)[new])
    own_end = (offset == 6) & (start % 200 == 0)
    np.testing.assert_array_equal(transition.discount[~new], np.where(own_end, 0.0, 0.99)[~new])
    assert (transition.reward[~new] == -7).all()


def test_episodes_of_one_step_get_the_place_that_was_reached():
    for strategy in ("future", "final", "episode"):
        memory = make(strategy=strategy)
        for number in range(5):
            memory.append(episode(number, 1))
        new, place, goal, _ = relabelled(memory.sample(100))
        np.testing.assert_array_equal(goal[new], place[new] + 1)


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
@pytest.mark.parametrize("n_step", [2, 5])
def test_windows_use_one_goal_and_are_cut_where_it_is_reached(strategy, n_step):
    memory = make(strategy=strategy, discount=0.5)
    for number in range(4):
        memory.append(episode(number, 9))
    new, place, goal, transition = relabelled(memory.sample(1000, n_step=n_step))
    for row in np.flatnonzero(new):
        last = place[row] // 100 * 100 + 9
        achieved = np.arange(place[row] + 1, min(place[row] + n_step, last) + 1)
        hit = np.flatnonzero(achieved == goal[row])
        used = achieved[: hit[0] + 1] if hit.size else achieved
        expected = sum(0.5**k * (3 * a - goal[row]) for k, a in enumerate(used))
        assert transition.reward[row] == pytest.approx(expected)
        assert transition.discount[row] == (0.0 if hit.size else 0.5 ** len(used))
        assert transition.next_obs["place"][row, 0] == used[-1]


def test_sequences_have_one_goal_and_end_where_it_is_reached():
    memory = make(discount=0.5)
    for number in range(4):
        memory.append(episode(number, 9))
    batch = memory.sample(500, sequence_length=4, n_step=2)
    new, place, goal, transition = relabelled(batch)
    assert (goal == goal[:, :1]).all()
    for row in range(500):
        start, last = place[row, 0], place[row, 0] // 100 * 100 + 9
        length = min(4, last - start)
        if new[row, 0] and start < goal[row, 0]:
            length = min(length, goal[row, 0] - start)
        np.testing.assert_array_equal(batch.mask[row], np.arange(4) < length)
        np.testing.assert_array_equal(transition.reward[row, int(length) :], 0)


def test_episodes_cut_by_the_ring_are_never_mixed():
    for strategy in ("future", "final", "episode"):
        memory = make(capacity=15, strategy=strategy)
        for number in range(7):
            memory.append(episode(number, 10))
            new, place, goal, _ = relabelled(memory.sample(300))
            assert (goal // 100 == place // 100)[new].all()
            oldest = memory.all_experiences().next_obs["place"][0, 0]
            assert (goal >= oldest)[new].all()


def test_interleaved_sources_of_any_length_are_never_mixed():
    rng = np.random.default_rng(0)
    for strategy in ("future", "final", "episode"):
        memory, number, at = make(capacity=60, strategy=strategy), np.arange(5), np.zeros(5)
        for _ in range(300):
            who = np.flatnonzero(rng.random(5) < 0.7)
            place = (1000.0 * number + at)[who, None]
            ended = (rng.random(len(who)) < 0.1) | (at[who] > 40)
            no = np.zeros(len(who), bool)
            goal = np.full((len(who), 1), NO_GOAL)
            memory.append(
                Experience(
                    {"place": place, "goal": goal}, no.astype(int), no * 1.0, no, ended,
                    {"place": place + 1, "goal": goal},
                ),
                source=who,
            )  # fmt: skip
            at[who] += 1
            for env in who[ended]:
                number[env], at[env] = number.max() + 1, 0
            if len(memory) and rng.random() < 0.2:
                new, place, goal, _ = relabelled(memory.sample(64))
                assert (goal // 1000 == place // 1000)[new].all()
                if strategy != "episode":
                    assert (goal > place)[new].all()
                held = set(memory.all_experiences().next_obs["place"][:, 0])
                assert set(goal[new]) <= held


def test_rows_of_an_open_episode_keep_their_goal_and_are_counted():
    memory = make()
    memory.append(episode(0, 5, ended=False))
    new, *_ = relabelled(memory.sample(10))
    assert not new.any()
    assert memory.num_open == 8
    memory.peek(10)
    assert memory.num_open == 8


def test_a_loaded_memory_does_not_join_an_open_episode_to_the_next():
    memory = make(strategy="final")
    memory.append(episode(0, 4, ended=False))
    other = make(strategy="final")
    other.load_state_dict(memory.state_dict())
    first = episode(0, 7)
    first.obs["place"][:] += 4  # starts just where the open episode stopped
    first.next_obs["place"][:] += 4
    other.append(first)
    new, place, goal, _ = relabelled(other.sample(500))
    assert (place[new] >= 4).all()
    assert (goal[new] == 11).all()


def test_resize_and_reset_keep_episodes_right():
    memory = make(capacity=40)
    for number in range(5):
        memory.append(episode(number, 8))
    for capacity in (23, 60):
        memory.resize(capacity)
        memory.append(episode(9, 8))
        new, place, goal, _ = relabelled(memory.sample(300))
        assert (goal // 100 == place // 100)[new].all()
        assert new.mean() > 0.7
    memory.reset()
    memory.append(episode(3, 8, ended=False))
    assert not relabelled(memory.sample(50))[0].any()


def test_priorities_go_through_to_the_wrapped_memory():
    memory = make(PrioritizedMemory)
    ids = memory.append(episode(0, 5), priorities=np.array([0.0, 0, 0, 0, 8]))
    assert memory.memory.priorities[-1] == 8
    memory.update_priorities(ids, np.arange(5.0))
    np.testing.assert_array_equal(memory.priorities, np.arange(5))
    assert memory.importance_sampling_exponent == 0.4
    memory.priority_exponent, memory.initial_importance_sampling_exponent, memory.num_annealing_steps = 1, 0.5, 10
    assert (memory.memory.priority_exponent, memory.memory.importance_sampling_exponent) == (1, 0.5)
    with pytest.raises(AttributeError):
        make(UniformMemory).priority_exponent = 0.5


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("achieved", "nowhere", ValueError),
        ("desired", "nowhere", ValueError),
        ("strategy", "random", ValueError),
        ("num_goal_samples", 0, ValueError),
        ("discount", 1.5, ValueError),
        ("reward_function", None, TypeError),
        ("termination_function", 3, TypeError),
    ],
)
def test_senseless_arguments_are_refused(name, value, error):
    memory = UniformMemory(SPACE, Discrete(2))
    arguments = {"achieved": "place", "desired": "goal", "reward_function": reward, "termination_function": reached}
    with pytest.raises(error, match=name):
        HindsightMemory(memory, **arguments | {name: value})


def test_only_experiences_over_a_dict_space_can_have_hindsight():
    arguments = {"achieved": "place", "desired": "goal", "reward_function": reward, "termination_function": reached}
    with pytest.raises(ValueError, match="Dict"):
        HindsightMemory(UniformMemory(PLACE, Discrete(2)), **arguments)
    with pytest.raises(TypeError, match="UniformMemory or a PrioritizedMemory"):
        HindsightMemory(make(), **arguments)
    rows = episode(0, 3)
    with pytest.raises(TypeError, match="Experience"):
        make().append(Transition(rows.obs, rows.action, rows.reward, np.ones(3), rows.next_obs))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("reward_function", lambda achieved, goal, info: 0.0),
        ("reward_function", lambda achieved, goal, info: np.zeros((len(goal), 1))),
        ("reward_function", lambda achieved, goal, info: None),
        ("termination_function", lambda achieved, goal: achieved == np.repeat(goal, 2, 1)),
        ("termination_function", lambda achieved, goal: True),
        ("achieved", lambda obs: obs["place"][:, 0]),
        ("achieved", lambda obs: obs["place"][0]),
        ("achieved", lambda obs: np.zeros((len(obs["place"]), 3))),
    ],
)
def test_functions_that_give_another_shape_are_named(name, function):
    arguments = {"achieved": "place", "desired": "goal", "reward_function": reward, "termination_function": reached}
    memory = HindsightMemory(UniformMemory(SPACE, Discrete(2), seed=0), **arguments | {name: function})
    memory.append(episode(0, 6))
    with pytest.raises(ValueError, match=f"{name} must give an array of shape"):
        memory.sample(8)


def test_settings_may_be_assigned_at_any_time_and_are_checked():
    memory = make()
    memory.append(episode(0, 6))
    for name, bad, good in (("strategy", "random", "final"), ("num_goal_samples", 0, 9), ("discount", 2.0, 0.5)):
        before = getattr(memory, name)
        with pytest.raises(ValueError, match=name):
            setattr(memory, name, bad)
        assert getattr(memory, name) == before
        setattr(memory, name, good)
        assert getattr(memory, name) == good
    new, _, goal, transition = relabelled(memory.sample(20))
    assert new.sum() == 18
    assert (goal[new] == 6).all()
    assert set(transition.discount) == {0.0, 0.5}


def test_a_goal_of_several_arrays_is_refused():
    space = Dict({"place": PLACE, "goal": Dict({"x": PLACE})})
    with pytest.raises(ValueError, match="'goal', the entry named desired, must be one array"):
        HindsightMemory(
            UniformMemory(space, Discrete(2)), achieved="place", desired="goal", reward_function=reward,
            termination_function=reached,
        )  # fmt: skip
