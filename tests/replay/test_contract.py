"""What every memory promises, whichever it is."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from agents.replay import HindsightMemory, PrioritizedMemory, UniformMemory
from agents.trees import tree_leaves, tree_map
from agents.types import Experience, Transition

TWO = Discrete(2)
OBS = Box(-1e9, 1e9, (4,), np.float32)
GOALS = Dict({"observation": OBS, "achieved": Box(-9, 9, (1,)), "desired": Box(-9, 9, (1,))})


def hindsight(memory):
    return HindsightMemory(
        memory,
        achieved="achieved",
        desired="desired",
        reward_function=lambda achieved, goal, info: -(achieved != goal).any(1).astype(float),
        termination_function=lambda achieved, goal: (achieved == goal).all(1),
    )


MEMORIES = {
    "uniform": lambda space=OBS, action=TWO, **kwargs: UniformMemory(space, action, **kwargs),
    "prioritized": lambda space=OBS, action=TWO, **kwargs: PrioritizedMemory(space, action, **kwargs),
    "rank": lambda space=OBS, action=TWO, **kwargs: PrioritizedMemory(space, action, prioritization="rank", **kwargs),
    "hindsight": lambda space=GOALS, action=TWO, **kwargs: hindsight(UniformMemory(space, action, **kwargs)),
    "hindsight prioritized": lambda space=GOALS, action=TWO, **kwargs: hindsight(
        PrioritizedMemory(space, action, **kwargs)
    ),
}


@pytest.fixture(params=MEMORIES)
def make(request):
    return MEMORIES[request.param]


def batch_of(space, count, rng):
    """A batch of random elements, as arrays with the batch first."""
    if isinstance(space, spaces.Dict):
        return {key: batch_of(part, count, rng) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(batch_of(part, count, rng) for part in space)
    if isinstance(space, Box):
        values = rng.random((count, *space.shape)) * 100
        return values.astype(space.dtype) if space.dtype != np.bool_ else values > 50
    space.seed(int(rng.integers(10**6)))
    return np.array([space.sample() for _ in range(count)]).reshape(count, *(space.shape or ())).astype(space.dtype)


def steps(memory, count, rng=None, ended=False):
    """Unconnected Experiences."""
    rng = rng or np.random.default_rng(0)
    return Experience(
        batch_of(memory.observation_space, count, rng),
        batch_of(memory.action_space, count, rng),
        rng.random(count),
        np.full(count, ended),
        np.zeros(count, bool),
        batch_of(memory.observation_space, count, rng),
    )


def same(first, second):
    pairs = list(zip(tree_leaves(tuple(first)), tree_leaves(tuple(second)), strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def test_more_rows_than_fit_keep_the_newest_and_give_every_row_an_id(make):
    memory = make(capacity=8)
    rows = steps(memory, 11)
    np.testing.assert_array_equal(memory.append(rows), np.arange(11))
    assert (memory.oldest, memory.inserted, len(memory)) == (3, 11, 8)
    np.testing.assert_array_equal(memory.all_experiences().reward, rows.reward[3:])
    assert memory.update_priorities([0, 2, 3], [1.0, 1.0, 1.0]) == 2


def test_part_full_memory_gives_only_rows_that_are_there(make):
    memory = make(capacity=100_000)
    memory.append(steps(memory, 5))
    for _ in range(100):
        assert (memory.sample(512).ids < 5).all()


def test_late_updates_never_hit_another_row(make):
    memory = make(capacity=4)
    old = memory.append(steps(memory, 4))
    memory.append(steps(memory, 2))
    assert memory.update_priorities(old, np.ones(4)) == 2
    memory.resize(2)
    assert memory.update_priorities(old, np.ones(4)) == 4
    ids = memory.append(steps(memory, 1))
    memory.reset()
    memory.append(steps(memory, 2))
    assert memory.update_priorities(ids, [5.0]) == 1
    assert memory.update_priorities([memory.inserted, -1], [1.0, 1.0]) == 2


def test_late_updates_never_hit_another_row_after_a_load(make):
    memory = make(capacity=4)
    memory.append(steps(memory, 3))
    state = memory.state_dict()
    late = memory.append(steps(memory, 2))
    memory.load_state_dict(state)
    memory.append(steps(memory, 3))
    assert memory.update_priorities(late, np.ones(2)) == 2
    assert len(memory) == 4
    assert memory.oldest > late.max()


def test_resize_keeps_order_and_ids_go_on(make):
    memory = make(capacity=8)
    rows = steps(memory, 11)
    memory.append(rows)
    memory.resize(12)
    np.testing.assert_array_equal(memory.all_experiences().reward, rows.reward[3:])
    np.testing.assert_array_equal(memory.append(steps(memory, 1)), [11])
    memory.resize(4)
    np.testing.assert_array_equal(memory.all_experiences().reward[:3], rows.reward[8:])
    assert memory.capacity == len(memory) == 4


def test_saved_and_loaded_goes_on_bit_for_bit(make, tmp_path):
    memory, rng = make(capacity=16, seed=3), np.random.default_rng(5)
    memory.append(steps(memory, 20, rng, ended=True), rng.random(20), np.arange(20) % 3)
    memory.sample(4)
    np.savez(tmp_path / "memory.npz", **memory.state_dict())
    other = make(capacity=2, seed=9)
    with np.load(tmp_path / "memory.npz", allow_pickle=False) as state:
        other.load_state_dict(dict(state))
    assert other.capacity == 16
    for _ in range(5):
        first, second = memory.sample(8), other.sample(8)
        assert same(first.transition, second.transition)
        assert same(first[1:4], second[1:4])
        errors, more = rng.random(8), steps(memory, 3, rng, ended=True)
        assert memory.update_priorities(first.ids, errors) == other.update_priorities(second.ids, errors) == 0
        np.testing.assert_array_equal(memory.append(more), other.append(more))


def test_a_state_that_does_not_fit_is_refused_and_nothing_changes(make):
    memory = make(capacity=4)
    memory.append(steps(memory, 3))
    before = memory.state_dict()
    other = UniformMemory(Box(-1, 1, (7,)), Discrete(2), capacity=4)
    other.append(steps(other, 2))
    with pytest.raises(ValueError, match="saved"):
        memory.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match=r"format|lacks"):
        memory.load_state_dict({})
    after = memory.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_copies_and_pickles_go_on_alike(make):
    memory, rng = make(capacity=300, seed=1), np.random.default_rng(0)
    memory.append(steps(memory, 200, ended=True), rng.random(200))
    others = [copy.deepcopy(memory)]
    if not isinstance(memory, HindsightMemory):  # whose functions are this module's lambdas
        others.append(pickle.loads(pickle.dumps(memory)))
    for _ in range(20):
        rows, priorities, errors = steps(memory, 30, rng, ended=True), rng.random(30), rng.random(16)
        expected = memory.sample(16)
        for one in (memory, *others):
            assert one is memory or same(one.sample(16).transition, expected.transition)
            one.update_priorities(expected.ids, errors)
            one.append(rows, priorities)
    for other in others:
        assert same(other.all_experiences(), memory.all_experiences())
        state, copied = memory.state_dict(), other.state_dict()
        assert all(np.array_equal(state[name], copied[name]) for name in state)


def test_peek_leaves_everything_as_it_is(make):
    memory = make(capacity=8, seed=1)
    memory.append(steps(memory, 6, ended=True))
    before = memory.state_dict()
    first = memory.peek(5)
    after = memory.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert same(first.transition, memory.sample(5).transition)


def test_same_seed_same_draws_and_the_global_generator_is_not_used(make):
    first, second, third = make(seed=1), make(seed=1), make(seed=2)
    for memory in (first, second, third):
        memory.append(steps(memory, 50))
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    ids = [memory.sample(20).ids for memory in (first, second, third)]
    np.testing.assert_array_equal(ids[0], ids[1])
    assert (ids[0] != ids[2]).any()
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_batches_are_copies_and_inputs_are_only_read(make):
    memory = make(capacity=8, seed=1)
    rows = steps(memory, 6)
    tree_map(lambda leaf: leaf.setflags(write=False), tuple(rows))
    memory.append(rows)
    before = memory.all_experiences()
    batch = memory.sample(6)
    tree_map(lambda leaf: leaf.fill(0), tuple(batch.transition))
    assert same(before, memory.all_experiences())


def test_all_experiences_in_three_forms(make):
    memory = make(capacity=8)
    assert len(memory.all_experiences().reward) == 0
    assert memory.all_experiences("none") == []
    memory.append(steps(memory, 5))
    together, sequence, single = (memory.all_experiences(how) for how in ("batch", "sequence", "none"))
    assert sequence.reward.shape == (1, 5)
    assert tree_leaves(sequence.obs)[0].shape == (1, *tree_leaves(together.obs)[0].shape)
    assert [record.reward.shape for record in single] == [(1,)] * 5
    np.testing.assert_array_equal(np.concatenate([record.reward for record in single]), together.reward)
    with pytest.raises(ValueError, match="concatenate must be one of"):
        memory.all_experiences("rows")


def test_draws_from_one_source_only(make):
    memory = make(capacity=30)
    memory.append(steps(memory, 30), source=np.arange(30) % 3)
    assert set(memory.sample(200, source=1).ids % 3) == {1}
    np.testing.assert_allclose(memory.sample(5, source=1).probabilities.max(), 0.1, atol=0.4)
    with pytest.raises(ValueError, match="source 7 has no rows"):
        memory.sample(5, source=7)


def test_bad_requests_are_refused_with_the_reason(make):
    memory = make(capacity=8)
    with pytest.raises(ValueError, match="empty"):
        memory.sample(2)
    memory.append(steps(memory, 5))
    for bad, name in (
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"n_step": 0}, "n_step"),
        ({"discount": 1.5}, "discount"),
        ({"sequence_length": -1}, "sequence_length"),
    ):
        with pytest.raises(ValueError, match=name):
            memory.sample(**{"batch_size": 2} | bad)
    for bad in (0, -1, 2.5, None):
        with pytest.raises(ValueError, match="capacity"):
            memory.resize(bad)
    assert len(memory) == 5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_bad_priorities_are_refused_by_row_and_nothing_is_written(make, bad):
    memory = make(capacity=8)
    memory.append(steps(memory, 3))
    before = memory.state_dict()
    for call in (
        lambda: memory.update_priorities([0, 1, 2], [1.0, bad, 2.0]),
        lambda: memory.append(steps(memory, 2), priorities=[1.0, bad]),
    ):
        with pytest.raises(ValueError, match="index 1"):
            call()
    after = memory.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(make):
    memory = make(capacity=8)
    good = steps(memory, 2)
    memory.append(good)
    before = memory.state_dict()
    bad_rows = {
        "shape": good._replace(obs=tree_map(lambda leaf: np.zeros((2, 3), np.float32), good.obs)),
        "rows": good._replace(action=np.zeros(3, int)),
        "action": good._replace(action=np.array([0.5, 1.0])),
        "terminated": good._replace(terminated=np.zeros(2)),
        "reward": good._replace(reward=np.zeros((2, 1))),
        "next_obs": good._replace(next_obs=tree_map(lambda leaf: leaf[:1], good.next_obs)),
    }
    for name, rows in bad_rows.items():
        for call in (memory.append, memory.validate_experience):
            with pytest.raises(ValueError, match=name):
                call(rows)
    for source in (0.5, [0, 1, 2], "a"):
        with pytest.raises(ValueError, match="source"):
            memory.append(good, source=source)
    with pytest.raises(TypeError, match=r"kind|Experience"):
        memory.append((1, 2))
    after = memory.state_dict()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert memory.validate_experience(good) is None


def test_a_memory_holds_one_kind_of_row():
    memory = MEMORIES["uniform"](capacity=8)
    rows = steps(memory, 2)
    memory.append(rows)
    transition = Transition(rows.obs, rows.action, rows.reward, np.ones(2), rows.next_obs)
    with pytest.raises(TypeError, match="holds rows of kind Experience, got Transition"):
        memory.append(transition)
    memory.reset()
    memory.append(transition)
    for argument in ({"n_step": 2}, {"discount": 0.9}, {"sequence_length": 3}):
        with pytest.raises(ValueError, match="are Transitions"):
            memory.sample(1, **argument)
    np.testing.assert_array_equal(memory.sample(1).transition.discount, [1])
    with pytest.raises(ValueError, match="discount must lie in"):
        memory.append(transition._replace(discount=np.array([0.5, np.nan])))


SPACES = {
    "uint8 image": Box(0, 255, (3, 4, 2), np.uint8),
    "float16": Box(-1, 1, (3,), np.float16),
    "float64": Box(-1, 1, (2, 2), np.float64),
    "int64": Box(-(2**60), 2**60, (2,), np.int64),
    "bool": Box(0, 1, (3,), np.bool_),
    "scalar box": Box(-1, 1, (), np.float32),
    "discrete": Discrete(5, start=-2),
    "multi-discrete": MultiDiscrete([[3, 4], [5, 6]]),
    "multi-binary": MultiBinary((2, 3)),
    "empty": Box(-1, 1, (0,), np.float32),
    "dict": Dict({"img": Box(0, 255, (2, 2), np.uint8), "vec": Box(-1, 1, (3,), np.float32)}),
    "nested": Tuple((Discrete(3), Dict({"a": Box(-1, 1, (1,), np.float64), "b": Tuple((MultiBinary(2),))}))),
}


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("memory_class", [UniformMemory, PrioritizedMemory])
def test_every_space_and_dtype_comes_back_bit_for_bit(space, memory_class, tmp_path):
    memory, rng = memory_class(space, space, capacity=10), np.random.default_rng(0)
    rows = steps(memory, 8, rng)
    memory.append(rows)
    assert same(memory.all_experiences(), rows)
    np.savez(tmp_path / "m.npz", **memory.state_dict())
    memory.resize(5)
    memory.load_state_dict(dict(np.load(tmp_path / "m.npz")))
    assert same(memory.all_experiences(), rows)
    batch = memory.sample(4, n_step=2, sequence_length=3)
    assert tree_leaves(batch.transition.obs)[0].shape[:2] == (4, 3)


def test_large_integers_are_not_cast():
    memory = UniformMemory(Box(-(2**60), 2**60, (1,), np.int64), Discrete(2), capacity=2)
    big = np.array([[2**53 + 1]])
    memory.append(Experience(big, np.zeros(1, int), np.zeros(1), np.zeros(1, bool), np.zeros(1, bool), big))
    assert memory.all_experiences().obs[0, 0] == 2**53 + 1
    narrow = UniformMemory(Box(-1e9, 1e9, (1,), np.float32), Discrete(2), capacity=2)
    with pytest.raises(ValueError, match="cannot hold"):
        narrow.append(Experience(big, np.zeros(1, int), np.zeros(1), np.zeros(1, bool), np.zeros(1, bool), big))


@pytest.mark.parametrize("space", [spaces.Text(5), spaces.Sequence(Discrete(2)), spaces.Graph(Discrete(2), None)])
def test_spaces_that_cannot_be_stored_are_refused(space):
    with pytest.raises(TypeError, match="can be stored"):
        UniformMemory(space, Discrete(2))


def test_memory_that_will_not_fit_is_refused_at_once():
    for memory_class in (UniformMemory, PrioritizedMemory):
        with pytest.raises(MemoryError, match="GiB"):
            memory_class(Box(0, 255, (84, 84, 4), np.uint8), Discrete(4), capacity=10**9, check_memory=True)
        assert memory_class(OBS, Discrete(2), capacity=100, check_memory=True).capacity == 100


@pytest.mark.parametrize("source", [2**63, -(2**63) - 1, np.full(2, 2**63, np.uint64), 0.5, True, None])
def test_sources_that_are_no_integers_of_64_bits_are_refused(make, source):
    memory = make(capacity=4)
    with pytest.raises(ValueError, match="source must be"):
        memory.append(steps(memory, 2), source=source)
    assert len(memory) == memory.inserted == 0


@pytest.mark.parametrize("junk", [[[1.0], [2.0, 3.0]], ["a", "b"], [None, None], [1j, 2j], {"a": 1}, None])
def test_junk_in_any_field_is_refused_in_a_sentence_that_names_it(make, junk):
    memory = make(capacity=8)
    good = steps(memory, 2)
    ids = memory.append(good)
    for name in ("action", "reward", "terminated", "truncated"):
        with pytest.raises(ValueError, match=rf"^{name} "):
            memory.append(good._replace(**{name: junk}))
    for name in ("obs", "next_obs"):
        with pytest.raises(ValueError, match="obs"):
            memory.append(good._replace(**{name: tree_map(lambda leaf: junk, getattr(good, name))}))
    with pytest.raises(ValueError, match=r"^abs_td_errors "):
        memory.update_priorities(ids, junk)
    with pytest.raises((TypeError, ValueError), match=r"^ids "):
        memory.update_priorities(junk, [1.0, 1.0])
    if junk is not None:  # which stands for the default
        with pytest.raises(ValueError, match=r"^priorities "):
            memory.append(good, priorities=junk)
    assert len(memory) == memory.inserted == 2


@pytest.mark.parametrize("huge", [2**63, 2**70, 1e300])
def test_numbers_beyond_64_bits_are_refused_wherever_integers_are_asked_for(make, huge):
    memory = make(capacity=8)
    memory.append(steps(memory, 2))
    calls = {
        "batch_size": lambda: memory.sample(huge),
        "n_step": lambda: memory.sample(2, n_step=huge),
        "sequence_length": lambda: memory.sample(2, sequence_length=huge),
        "source": lambda: memory.sample(2, source=huge),
        "capacity": lambda: memory.resize(huge),
        "num_annealing_steps": lambda: PrioritizedMemory(OBS, TWO, num_annealing_steps=huge),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name} must be an integer of 64 bits"):
            call()


def test_floats_may_be_rounded_to_the_stored_dtype_but_not_lost():
    memory = UniformMemory(OBS, TWO, capacity=4)
    rows = steps(memory, 1)
    memory.append(rows._replace(obs=np.full((1, 4), 0.1), next_obs=np.array([[np.inf, -np.inf, np.nan, 1e-50]])))
    np.testing.assert_array_equal(memory.all_experiences().obs, np.full((1, 4), 0.1, np.float32))
    np.testing.assert_array_equal(memory.all_experiences().next_obs, np.array([[np.inf, -np.inf, np.nan, 0]]))
    with pytest.raises(ValueError, match="obs is stored as float32"):
        memory.append(rows._replace(obs=np.full((1, 4), 1e300)))


@pytest.mark.parametrize("state", [None, [], "file.npz", 3])
def test_what_is_no_saved_memory_at_all_is_refused(make, state):
    with pytest.raises(TypeError, match=f"dict of arrays, got {type(state).__name__}"):
        make().load_state_dict(state)


def test_a_ring_that_wraps_knows_the_ids_of_its_rows(make):
    memory = make(capacity=7)
    for count in (3, 5, 9, 1, 20):
        memory.append(steps(memory, count, ended=True))
        alive = np.arange(memory.oldest, memory.inserted)
        np.testing.assert_array_equal(np.unique(memory.sample(200).ids), alive)
    for capacity in (4, 11):
        memory.resize(capacity)
        memory.load_state_dict(memory.state_dict())
        np.testing.assert_array_equal(np.unique(memory.sample(200).ids), np.arange(memory.oldest, memory.inserted))
