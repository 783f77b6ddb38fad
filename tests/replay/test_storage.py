"""One copy of each observation, and the saved form of years ago."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from agents.replay import HindsightMemory, PrioritizedMemory, UniformMemory
from agents.trees import tree_leaves
from agents.types import Experience

IMAGE = Box(0, 255, (20, 20), np.uint8)
GOLDEN = Path(__file__).parent / "golden" / "prioritized_1.npz"


def episode(rng, length, image=IMAGE, truncated=False):
    images = rng.integers(0, 256, (length + 1, *image.shape)).astype(np.uint8)
    ended = np.arange(length) == length - 1
    no = np.zeros(length, bool)
    return Experience(
        images[:-1], np.zeros(length, int), np.arange(length) + 0.5, no if truncated else ended,
        ended if truncated else no, images[1:],
    )  # fmt: skip


@pytest.mark.parametrize("truncated", [True, False])
def test_each_observation_is_stored_once_and_episode_ends_are_true(truncated):
    rng, memory = np.random.default_rng(0), UniformMemory(IMAGE, Discrete(2), capacity=1000)
    rows = [episode(rng, 50, truncated=truncated) for _ in range(25)]
    for part in rows:
        memory.append(part)
    stored = memory.all_experiences()
    np.testing.assert_array_equal(stored.next_obs, np.concatenate([part.next_obs for part in rows[5:]]))
    np.testing.assert_array_equal(stored.obs, np.concatenate([part.obs for part in rows[5:]]))
    assert memory.nbytes < 0.6 * 2 * 1000 * 400


def test_interleaved_environments_share_too():
    rng, memory = np.random.default_rng(0), UniformMemory(IMAGE, Discrete(2), capacity=800)
    parts = [episode(rng, 200) for _ in range(8)]
    for time in range(200):
        step = Experience(*(np.stack([np.asarray(part[field][time]) for part in parts]) for field in range(6)))
        memory.append(step, source=np.arange(8))
    np.testing.assert_array_equal(memory.all_experiences().next_obs[-8:], [part.next_obs[-1] for part in parts])
    assert memory.nbytes < 0.6 * 2 * 800 * 400


def test_windows_of_an_endless_episode_stop_at_the_write_head():
    memory = UniformMemory(Box(-1e9, 1e9, (), np.float64), Discrete(1), capacity=8, seed=0)
    for time in range(11):
        one = np.array([float(time)])
        no = np.zeros(1, bool)
        memory.append(Experience(one, np.zeros(1, int), one, no, no, one + 1))
    batch = memory.sample(500, n_step=3, discount=0.5)
    for start, reward, discount, last in zip(batch.ids, *batch.transition[2:], strict=True):
        used = np.arange(start, min(start + 3, 11))
        assert reward == sum(0.5**k * time for k, time in enumerate(used))
        assert (discount, last) == (0.5 ** len(used), used[-1] + 1)


def test_the_same_window_on_images_and_vectors_gives_the_same_return():
    space = Dict({"img": IMAGE, "vec": Box(-1, 1, (2,), np.float32)})
    rng = np.random.default_rng(0)
    plain, both = UniformMemory(IMAGE, Discrete(2), capacity=99, seed=1), UniformMemory(space, Discrete(2), 99, seed=1)
    rows = episode(rng, 60)
    vectors = rng.random((61, 2)).astype(np.float32)
    plain.append(rows)
    both.append(
        rows._replace(obs={"img": rows.obs, "vec": vectors[:-1]}, next_obs={"img": rows.next_obs, "vec": vectors[1:]})
    )
    first, second = plain.sample(40, n_step=5), both.sample(40, n_step=5)
    np.testing.assert_array_equal(first.transition.reward, second.transition.reward)
    np.testing.assert_array_equal(first.transition.next_obs, second.transition.next_obs["img"])
    assert (second.transition.discount > 0).any()


def test_a_stream_does_not_go_on_after_a_load():
    rows = episode(np.random.default_rng(0), 6)
    first, second = (Experience(*(column[part] for column in rows)) for part in (slice(0, 3), slice(3, 6)))
    memory = UniformMemory(IMAGE, Discrete(2), capacity=10)
    memory.append(first)
    memory.load_state_dict(memory.state_dict())
    memory.append(second)
    mask = memory.sample(100, sequence_length=6).mask
    assert mask.sum(1).max() == 3


def filled():
    """The memory of the golden file."""
    rng = np.random.default_rng(42)
    space = Dict({"img": Box(0, 255, (2, 2), np.uint8), "vec": Box(-1, 1, (3,), np.float32)})
    memory = PrioritizedMemory(space, Discrete(3), capacity=12, num_annealing_steps=50, seed=7)
    images, vectors = rng.integers(0, 256, (21, 2, 2)).astype(np.uint8), rng.random((21, 3)).astype(np.float32)
    ended = np.arange(20) % 6 == 5
    memory.append(
        Experience(
            {"img": images[:-1], "vec": vectors[:-1]}, rng.integers(0, 3, 20), rng.normal(size=20), ended,
            np.zeros(20, bool), {"img": images[1:], "vec": vectors[1:]},
        ),
        rng.random(20), np.arange(20) // 10,
    )  # fmt: skip
    memory.sample(4)
    return memory


def test_the_golden_file_still_loads_to_the_same_memory():
    with np.load(GOLDEN, allow_pickle=False) as golden:
        saved = {name: golden[name] for name in golden.files}
    expected = filled()
    state = expected.state_dict()
    assert saved.keys() == state.keys()
    for name in saved:
        np.testing.assert_array_equal(saved[name], state[name], err_msg=name)
        assert saved[name].dtype == state[name].dtype
    memory = PrioritizedMemory(expected.observation_space, Discrete(3), capacity=1)
    memory.load_state_dict(saved)
    first, second = memory.sample(6, n_step=3), expected.sample(6, n_step=3)
    for one, other in zip(tree_leaves(tuple(first[:4])), tree_leaves(tuple(second[:4])), strict=True):
        np.testing.assert_array_equal(one, other)


def test_broken_states_are_refused():
    state = filled().state_dict()
    memory = filled()
    for name, value in (
        ("format", np.array(2)), ("next_row", state["next_row"] + 100), ("reward", state["reward"][:-1]),
        ("obs.1", state["obs.1"].astype(float)), ("priorities", -state["priorities"]),
        ("priority_exponent", np.array(3.0)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=name.split("_")[0]):
            memory.load_state_dict(state | {name: value})
    without = dict(state)
    del without["rng"]
    with pytest.raises(ValueError, match="lacks rng"):
        memory.load_state_dict(without)
    np.testing.assert_array_equal(memory.all_experiences().reward, filled().all_experiences().reward)


def test_hindsight_over_a_memory_saves_what_the_memory_saves():
    memory = filled()
    wrapped = HindsightMemory(
        memory, achieved="vec", desired="vec",
        reward_function=lambda a, g, info: np.zeros(len(a)), termination_function=lambda a, g: np.zeros(len(a), bool),
    )  # fmt: skip
    assert wrapped.state_dict().keys() == memory.state_dict().keys()
