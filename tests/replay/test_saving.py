"""Saved memories that were broken on their way: refused with nothing lost, or read as some good memory."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.replay import PrioritizedMemory, UniformMemory
from agents.types import Experience, Transition

SPACE = Box(-9, 9, (2,), np.float32)
MAKE = {
    "uniform": lambda: UniformMemory(SPACE, Discrete(3), 8, seed=0),
    "prioritized": lambda: PrioritizedMemory(SPACE, Discrete(3), 8, seed=0),
    "rank": lambda: PrioritizedMemory(SPACE, Discrete(3), 8, prioritization="rank", seed=0),
}


def rows(kind, count, first=0):
    obs = np.arange(first, first + count + 1, dtype=np.float32)[:, None].repeat(2, 1)
    action, reward, no = np.arange(count) % 3, np.arange(count) + 0.5, np.zeros(count, bool)
    if kind is Transition:
        return Transition(obs[:-1], action, reward, np.full(count, 0.9), obs[1:])
    return Experience(obs[:-1], action, reward, np.arange(count) % 4 == 3, no, obs[1:])


def filled(name, kind):
    memory = MAKE[name]()
    memory.append(rows(kind, 11), np.linspace(0, 2, 11), np.arange(11) % 2)
    memory.append(rows(kind, 2, 50), source=7)
    memory.sample(4)
    return memory


def same(first, second):
    return first.keys() == second.keys() and all(first[name].tobytes() == second[name].tobytes() for name in first)


def is_huge(value):
    """A capacity that would be taken at its word."""
    return value.dtype.kind in "iuf" and (value >= 10_000).any()


JUNK = st.one_of(
    st.sampled_from([None, "junk", "", "{}", "null", '{"bit_generator": "seed"}', [], [1, 2], b"bytes", object(), 1j]),
    st.floats(),
    st.integers(-5, 40),
    st.booleans(),
)


@st.composite
def changed(draw, value):
    """The entry with one number, its shape or its dtype changed."""
    value = np.array(value)
    how = draw(st.sampled_from(["number", "shorter", "longer", "deeper", "dtype"]))
    if how == "number" and value.dtype.kind in "iufb" and value.size:
        bits = np.array(draw(st.one_of(st.floats(), st.integers(-3, 20), st.sampled_from([2.0**62, -(2.0**63)]))))
        with np.errstate(all="ignore"):
            value.reshape(-1)[draw(st.integers(0, value.size - 1))] = bits.astype(value.dtype)
        return value
    if how == "shorter" and value.ndim:
        return value[:-1]
    if how == "longer" and value.ndim:
        return np.concatenate([value, value[:1]])
    if how == "dtype" and value.dtype.kind in "iufb":
        return value.astype(draw(st.sampled_from(["f4", "f8", "i4", "i8", "u8", "c16", "U3", "O"])))
    return value[None]


@pytest.mark.parametrize("kind", [Experience, Transition])
@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # casts of the junk
def test_any_broken_entry_is_refused_with_nothing_lost_or_gives_a_good_memory(name, kind, data):
    state = filled(name, kind).state_dict()
    entry = data.draw(st.sampled_from(sorted(state)))
    how = data.draw(st.sampled_from(["missing", "junk", "changed"]))
    broken = {key: value for key, value in state.items() if key != entry}
    if how != "missing":
        broken[entry] = data.draw(JUNK if how == "junk" else changed(state[entry]))
        assume(entry != "capacity" or not is_huge(np.asarray(broken[entry])))
    memory = filled(name, kind)
    memory.append(rows(kind, 3, 90), source=3)
    before, ring = memory.state_dict(), memory.ring
    try:
        memory.load_state_dict(broken)
    except ValueError:
        assert memory.ring is ring
        assert same(memory.state_dict(), before)
    check_works(memory, kind)


def check_works(memory, kind):
    """Draws, updates and appends go well, and no stored observation is lost or kept twice."""
    copied = type(memory)(SPACE, Discrete(3))
    copied.load_state_dict(memory.state_dict())
    assert same(copied.state_dict(), memory.state_dict())
    for first in range(0, 40, 5):
        if len(memory):
            batch = memory.sample(6)
            assert np.isfinite(batch.weights).all()
            assert ((batch.probabilities > 0) & (batch.probabilities <= 1)).all()
            assert memory.update_priorities(batch.ids, np.arange(6.0)) == 0
        memory.append(rows(memory.ring.kind or kind, 5, first), source=first % 3)
        store, places = memory.ring.store, memory.ring.next[memory.ring.alive_slots()]
        own = places[places >= store.capacity]
        assert len(np.unique(own)) == len(own) == len(store.arrays[0]) - store.capacity - store._num_free


@pytest.mark.parametrize("bit_generator", [np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM])
def test_every_generator_of_numpy_is_saved(bit_generator, tmp_path):
    memory = UniformMemory(SPACE, Discrete(3), 8, seed=np.random.Generator(bit_generator(5)))
    memory.append(rows(Experience, 8))
    memory.sample(3)
    np.savez(tmp_path / "memory.npz", **memory.state_dict())
    other = MAKE["uniform"]()
    with np.load(tmp_path / "memory.npz", allow_pickle=False) as state:
        other.load_state_dict(dict(state))
    np.testing.assert_array_equal(other.sample(50).ids, memory.sample(50).ids)


@pytest.mark.parametrize("space", [Dict(), Tuple(()), Dict({"a": Dict()})])
def test_spaces_without_entries_are_refused(space):
    with pytest.raises(TypeError, match="without entries"):
        UniformMemory(space, Discrete(2))
    with pytest.raises(TypeError, match="without entries"):
        UniformMemory(Discrete(2), space)
