"""Saved agents go on as if nothing had happened; other files do nothing at all."""

import json
import pickle
import zipfile

import gymnasium as gym
import numpy as np
import pytest
import torch

from agents.apex import ApeX
from agents.apex.checkpoint import CheckpointError, load
from agents.apex.envs import with_arguments
from agents.replay import UniformMemory

from .helpers import agent, parameters
from .probes import Quick


@pytest.mark.parametrize("env", ["CartPole-v1", Quick], ids=["id", "factory"])
@pytest.mark.parametrize("n_step", [1, 3])
def test_a_resumed_run_equals_an_unbroken_one_to_the_last_bit(tmp_path, env, n_step):
    whole = agent(tmp_path / "whole", env, n_step=n_step).learn(1_000)
    half = agent(tmp_path / "half", env, n_step=n_step).learn(500)
    half.save(tmp_path / "half.apex")
    rest = ApeX.load(tmp_path / "half.apex", env=env)
    rest.resume_in(tmp_path / "rest")
    rest.learn(500)
    assert rest.learner.updates == whole.learner.updates
    assert rest.num_timesteps == whole.num_timesteps
    np.testing.assert_array_equal(parameters(rest), parameters(whole))
    moments = [ape.learner.optimizer.state_dict()["mean"] for ape in (rest, whole)]
    assert torch.equal(*moments)
    np.testing.assert_array_equal(rest.memory.priorities, whole.memory.priorities)
    for mine, yours in zip(rest.memory.all_experiences(), whole.memory.all_experiences(), strict=True):
        np.testing.assert_array_equal(mine, yours)


@pytest.mark.slow
def test_two_thousand_updates_equal_a_thousand_a_save_a_load_and_a_thousand(tmp_path):
    settings = {"samples_per_insert": 32.0, "warmup_steps": 80, "target_update_interval": 7, "target_update_rate": 1.0}
    whole = agent(tmp_path / "whole", **settings).learn(2_080)
    agent(tmp_path / "half", **settings).learn(1_080).save(tmp_path / "half.apex")
    rest = ApeX.load(tmp_path / "half.apex")
    half = rest.learner.updates
    rest.resume_in(tmp_path / "rest")
    rest.learn(1_000)
    assert (half, rest.learner.updates) == pytest.approx((1_000, 2_000), abs=20)
    assert rest.learner.updates == whole.learner.updates
    for mine, yours in zip(networks(rest), networks(whole), strict=True):
        assert all(torch.equal(value, yours[name]) for name, value in mine.items())
    assert rest.ratio.state_dict() == whole.ratio.state_dict()
    np.testing.assert_array_equal(rest.memory.priorities, whole.memory.priorities)


def networks(ape):
    """All that learning changes: online, target, averaged and best weights, and Adam's moments."""
    parts = (ape.learner.network, ape.learner.target, ape.learner.average, ape.policy, ape.learner.optimizer)
    return [part.state_dict() for part in parts]


def test_two_calls_of_learn_equal_one(tmp_path):
    once = agent(tmp_path / "once").learn(1_000)
    twice = agent(tmp_path / "twice").learn(400).learn(600)
    np.testing.assert_array_equal(parameters(once), parameters(twice))


def test_everything_comes_back(tmp_path):
    ape = agent(tmp_path, importance_annealing_steps=1000).learn(600)
    ape.save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex")
    assert back.config == ape.config.from_dict({**ape.config.to_dict(), "run_folder": None})
    assert (back.num_timesteps, back.seconds, back.best_return) == (ape.num_timesteps, ape.seconds, ape.best_return)
    assert back.ratio.state_dict() == ape.ratio.state_dict()
    assert back.memory.importance_sampling_exponent == ape.memory.importance_sampling_exponent
    np.testing.assert_array_equal(back.memory.priorities, ape.memory.priorities)
    for mine, yours in ((back.policy, ape.policy), (back.learner.target, ape.learner.target)):
        assert all(torch.equal(mine.state_dict()[name], value) for name, value in yours.state_dict().items())
    obs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    np.testing.assert_array_equal(back.predict(obs)[0], ape.predict(obs)[0])


def test_no_burst_of_training_follows_a_resume(tmp_path):
    agent(tmp_path).learn(600).save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex")
    back.resume_in(tmp_path / "rest")
    updates, steps = back.learner.updates, back.num_timesteps
    back.learn(100)
    trained = (back.learner.updates - updates) * back.config.batch_size
    assert trained == pytest.approx((back.num_timesteps - steps) * 4.0, abs=32)


def test_a_resumed_runs_logs_go_on_without_a_break_or_a_doubled_row(tmp_path):
    ape = agent(tmp_path).learn(600)
    ape.save(tmp_path / "a.apex")
    ape.learn(600)  # a run that goes on beyond its checkpoint, and is then lost
    back = ApeX.load(tmp_path / "a.apex")
    back.resume_in(tmp_path / "run")
    back.learn(600)
    for name in ("evaluations", "progress", "episodes"):
        steps = [int(line.split(",")[0]) for line in (tmp_path / f"run/{name}.csv").read_text().splitlines()[1:]]
        assert steps == sorted(steps)
        assert name == "episodes" or len(steps) == len(set(steps)) or name == "progress"


def test_envs_that_do_not_repeat_themselves_begin_new_episodes(tmp_path):
    class Moody(gym.Env):
        observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)
        generator = np.random.default_rng()

        def reset(self, *, seed=None, options=None):
            return self.generator.random(1).astype(np.float32), {}

        def step(self, action):
            return self.generator.random(1).astype(np.float32), 1.0, False, False, {}

    agent(tmp_path, Moody, evaluation_interval=10_000).learn(150).save(tmp_path / "a.apex")
    with pytest.warns(RuntimeWarning, match="do not repeat themselves: new episodes begin"):
        back = ApeX.load(tmp_path / "a.apex", env=Moody)
    assert back.cluster.lives == [1, 1]


def test_a_factory_must_be_given_again(tmp_path):
    agent(tmp_path, Quick).learn(150).save(tmp_path / "a.apex")
    with pytest.raises(CheckpointError, match="does not say what its env was made of: give it"):
        ApeX.load(tmp_path / "a.apex")


def test_an_agent_comes_back_on_an_env_with_its_own_arguments(tmp_path):
    spec = with_arguments("CartPole-v1", {"sutton_barto_reward": True, "max_episode_steps": 9})
    assert gym.spec("CartPole-v1").kwargs == {}
    agent(tmp_path, spec).learn(150).save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex")
    assert back.description()["env_kwargs"] == {"sutton_barto_reward": True, "max_episode_steps": 9}
    env = gym.make(back.source.spec)
    assert (env.unwrapped._sutton_barto_reward, env.spec.max_episode_steps) == (True, 9)


@pytest.mark.parametrize("value", ["os:getcwd", {"deep": ["os:getcwd"]}, np.zeros(2), len], ids=str)
def test_arguments_that_a_file_must_not_hold_are_not_written_and_the_env_is_asked_for(tmp_path, value):
    spec = with_arguments("CartPole-v1", {})
    ape = agent(tmp_path, spec)
    spec.kwargs["anything"] = value
    ape.save(tmp_path / "a.apex")
    assert ape.description()["env_kwargs"] == {}
    with pytest.raises(CheckpointError, match="does not say what its env was made of: give it"):
        ApeX.load(tmp_path / "a.apex")
    assert ApeX.load(tmp_path / "a.apex", env="CartPole-v1").source.name == "CartPole-v1"


def test_another_env_is_refused(tmp_path):
    agent(tmp_path).learn(150).save(tmp_path / "a.apex")
    with pytest.raises(CheckpointError, match="does not fit Acrobot-v1"):
        ApeX.load(tmp_path / "a.apex", env="Acrobot-v1")


def test_a_plugged_memory_comes_back(tmp_path):
    ape = agent(tmp_path)
    ape.memory = UniformMemory(ape.observation_space, ape.action_space, capacity=700, seed=1)
    ape.learn(300).save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex")
    assert isinstance(back.memory, UniformMemory)
    assert (len(back.memory), back.memory.capacity) == (len(ape.memory), 700)


def test_weights_alone_can_be_loaded_and_trained_on(tmp_path):
    first = agent(tmp_path / "first").learn(500)
    torch.save(first.policy.state_dict(), tmp_path / "weights.pt")
    second = agent(tmp_path / "second", seed=5)
    second.load_weights(tmp_path / "weights.pt")
    np.testing.assert_array_equal(parameters(second), torch.cat([p.reshape(-1) for p in first.policy.parameters()]))
    second.learn(300)
    other = agent(tmp_path / "third", hidden_sizes=(8,))
    before = parameters(other)
    with pytest.raises(CheckpointError, match="holds no weights for this network"):
        other.load_weights(tmp_path / "weights.pt")
    np.testing.assert_array_equal(parameters(other), before)


def test_the_policy_opens_in_plain_torch(tmp_path):
    ape = agent(tmp_path, layer_norm=False).learn(300)
    w = ape.policy.state_dict()
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    hidden = torch.relu((x * w["scale"] + w["offset"]) @ w["body.0.weight"].T + w["body.0.bias"])
    value = hidden @ w["value.weight"].T + w["value.bias"]
    advantage = hidden @ w["advantage.weight"].T + w["advantage.bias"]
    torch.testing.assert_close(ape.policy(x), value + advantage - advantage.mean(1, keepdim=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    agent(folder).learn(200).save(folder / "a.apex")
    return folder / "a.apex"


def rewritten(path, target, **parts):
    """A copy of a checkpoint with some parts replaced."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, parts.get(name.replace(".", "_"), old.read(name)))
    return target


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path, whole, share):
    data = whole.read_bytes()
    (tmp_path / "cut.apex").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CheckpointError, match=r"cut\.apex is no whole Ape-X checkpoint"):
        ApeX.load(tmp_path / "cut.apex")


def test_foreign_files_are_refused(tmp_path, whole):
    (tmp_path / "text.apex").write_text("hello")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("meta.json", json.dumps({"format": "something else"}))
    newer = rewritten(whole, tmp_path / "new.apex", meta_json=json.dumps({**load(whole).meta, "version": 99}))
    for path in (tmp_path / "text.apex", tmp_path / "other.zip", newer):
        with pytest.raises(CheckpointError, match=r"is no (whole )?Ape-X checkpoint") as caught:
            ApeX.load(path)
        assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.apex"):
        ApeX.load(tmp_path / "none.apex")
    with pytest.raises(FileNotFoundError, match=r"none\.pt"):
        agent(tmp_path).load_weights(tmp_path / "none.pt")


def test_malicious_files_execute_nothing(tmp_path, whole):
    trap = tmp_path / "trap"
    bomb = pickle.dumps(Bomb(str(trap)))
    array = tmp_path / "bomb.npy"
    np.save(array, np.array([Bomb(str(trap))], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "arrays.npz", "w") as archive:
        archive.write(array, "turn.npy")
    torch.save({"online": Bomb(str(trap))}, tmp_path / "tensors.pt")
    files = [tmp_path / "pickle.apex"]
    files[0].write_bytes(bomb)
    files.append(rewritten(whole, tmp_path / "1.apex", tensors_pt=bomb))
    files.append(rewritten(whole, tmp_path / "2.apex", tensors_pt=(tmp_path / "tensors.pt").read_bytes()))
    files.append(rewritten(whole, tmp_path / "3.apex", arrays_npz=(tmp_path / "arrays.npz").read_bytes()))
    for path in files:
        with pytest.raises(CheckpointError):
            ApeX.load(path)
    with pytest.raises(CheckpointError):
        agent(tmp_path).load_weights(tmp_path / "tensors.pt")
    assert not trap.exists()


@pytest.mark.parametrize(
    "entry", [{"env": "trap_module:X-v0"}, {"env_kwargs": {"world": "trap_module:make_world"}}], ids=["id", "argument"]
)
def test_an_id_in_a_file_imports_nothing(tmp_path, whole, monkeypatch, entry):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "trap_module.py").write_text("raise SystemExit('imported')")
    evil = rewritten(whole, tmp_path / "e.apex", meta_json=json.dumps({**load(whole).meta, **entry}))
    with pytest.raises(CheckpointError, match="names an env to be imported"):
        ApeX.load(evil)


@pytest.mark.parametrize("key", ["config", "seed", "updates", "ratio", "lives", "memory", "generator"])
def test_a_file_with_a_part_missing_is_refused(tmp_path, whole, key):
    meta = {name: value for name, value in load(whole).meta.items() if name != key}
    with pytest.raises(CheckpointError):
        ApeX.load(rewritten(whole, tmp_path / "m.apex", meta_json=json.dumps(meta)))


def test_a_crash_in_the_middle_leaves_the_last_good_file(tmp_path, monkeypatch):
    ape = agent(tmp_path).learn(200)
    ape.save(tmp_path / "a.apex")
    before = (tmp_path / "a.apex").read_bytes()
    monkeypatch.setattr(np, "savez", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        ape.save(tmp_path / "a.apex")
    assert (tmp_path / "a.apex").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if "tmp" in path.name] == []


def test_a_full_disk_does_not_end_the_training_but_is_an_error_at_its_end(tmp_path, monkeypatch):
    ape = agent(tmp_path, checkpoint_interval=300)
    monkeypatch.setattr(ApeX, "save", lambda self, path: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with (
        pytest.warns(RuntimeWarning, match="no checkpoint was written: .*No space left on device"),
        pytest.raises(OSError, match="No space left on device"),
    ):
        ape.learn(700)
    assert ape.num_timesteps >= 700


def test_weights_alone_and_whole_checkpoints_are_told_apart(tmp_path):
    ape = agent(tmp_path).learn(500)
    with pytest.raises(CheckpointError, match=r"best\.pt holds weights alone, which load_weights reads"):
        ApeX.load(tmp_path / "run/best.pt")
    other = agent(tmp_path / "other", seed=1)
    other.load_weights(tmp_path / "run/last.apex")
    mine, yours = ape.policy.state_dict(), other.policy.state_dict()
    assert all(torch.equal(mine[name], yours[name]) for name in mine)
