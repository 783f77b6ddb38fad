"""Actors in processes: started, killed, failing, interrupted, orphaned. None of it hangs or leaves anything behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import gymnasium as gym
import numpy as np
import psutil
import pytest
import torch

from agents.apex import ApeX
from agents.apex.actor import ActorPlan
from agents.apex.channel import ActorError
from agents.apex.envs import resolve
from agents.apex.local import LocalCluster
from agents.types import Weights

from .helpers import agent, small
from .probes import Failing, Probe, Quick, Slow

pytestmark = [pytest.mark.serial, pytest.mark.timeout(120)]


def children():
    """Actor processes of this process; Python's own resource tracker stays."""
    return [child for child in psutil.Process().children() if "resource_tracker" not in " ".join(child.cmdline())]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    shared = Path("/dev/shm")
    before = set(shared.iterdir()) if shared.is_dir() else set()
    yield
    assert children() == []
    assert (set(shared.iterdir()) if shared.is_dir() else set()) <= before


@contextmanager
def running(folder, env="CartPole-v1", **settings):
    """A cluster of actors, and the weights that they were given."""
    config = small(folder, cluster="local", **settings)
    plans = [ActorPlan(resolve(env), config, 0, actor, 0) for actor in range(config.num_actors)]
    ape = agent(folder, env, **settings)
    cluster = LocalCluster(plans, ape.learner.weights(), max_restarts=3, watchdog_seconds=60.0)
    cluster.start()
    try:
        yield cluster, ape.learner.weights()
    finally:
        cluster.stop()


def blocks(cluster, number, seconds=60):
    found, end = [], time.monotonic() + seconds
    while len(found) < number:
        assert time.monotonic() < end, "no block came"
        if (block := cluster.receive(0.1)) is not None:
            found.append(block)
        else:
            cluster.check()
    return found


class Numbered(Probe):
    """Observes a number that no other step of any env, in any process, has."""

    observation_space = gym.spaces.Box(0, np.inf, (2,), np.float64)
    made = 0

    def __init__(self):
        Numbered.made += 1
        self.name, self.number = os.getpid() * 1000.0 + Numbered.made, 0

    def observe(self):
        self.number += 1
        return np.array([self.name, self.number])

    def reset(self, *, seed=None, options=None):
        super(Probe, self).reset(seed=seed)
        return self.observe(), {}

    def step(self, action):
        return self.observe(), 1.0, self.number % 7 == 0, False, {}


@pytest.mark.parametrize("num_actors", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_learning_starts_whatever_the_number_of_actors(tmp_path, num_actors):
    ape = agent(tmp_path, cluster="local", num_actors=num_actors).learn(500)
    assert ape.learner.updates > 0
    assert ape.num_timesteps >= 500


def test_a_parent_with_busy_torch_threads_and_a_lambda(tmp_path):
    torch.randn(500, 500) @ torch.randn(500, 500)
    limit = 7
    ape = agent(tmp_path, lambda: gym.wrappers.TimeLimit(Quick(), limit), cluster="local").learn(400)
    assert ape.learner.updates > 0


def kill_rounds(folder, rounds):
    """Kill a random actor again and again; give the first observations of all windows, and the cluster's counts."""
    rng, seen, versions = np.random.default_rng(0), [], {}
    with running(folder, Numbered, n_step=1) as (cluster, weights):
        for number in range(1, rounds + 1):
            cluster.publish(Weights(number, weights.arrays))
            for block in blocks(cluster, 4):
                seen.append(block.windows.obs)
            victim = int(rng.integers(2))
            time.sleep(rng.random() * 0.02)  # to meet it at any moment of its work
            os.kill(cluster.processes[victim].pid, signal.SIGKILL)
            cluster.processes[victim].join(10)  # else a busy machine may let the next round kill it a second time
            newborn = [b for b in blocks(cluster, 12) if b.actor == victim]
            seen += [b.windows.obs for b in newborn]
            versions[number] = newborn[-1].version if newborn else None
        lives, restarts = cluster.lives, cluster.restarts
    return np.concatenate(seen), versions, lives, restarts


def check_kills(folder, rounds):
    seen, versions, lives, restarts = kill_rounds(folder, rounds)
    assert len(np.unique(seen, axis=0)) == len(seen)  # each row at most once
    assert restarts == sum(lives) <= rounds
    assert restarts >= rounds - 1  # the last victim may not have been met yet
    assert all(version in (None, number, number - 1) for number, version in versions.items())


def test_killed_actors_come_back_with_the_newest_weights_and_no_row_comes_twice(tmp_path):
    check_kills(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_rounds_of_killing(tmp_path):
    check_kills(tmp_path, 50)


@pytest.mark.slow
def test_training_goes_on_while_actors_are_killed(tmp_path):
    ape = agent(tmp_path, cluster="local")
    stop = threading.Event()

    def kill():
        while not stop.wait(1.5):
            victims = [p for p in ape.cluster.processes if p is not None and p.is_alive()]
            if victims:
                victims[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        ape.learn(6_000)
    finally:
        stop.set()
        killer.join()
    assert ape.num_timesteps >= 6_000
    trained = ape.learner.updates * ape.config.batch_size
    assert trained / (ape.num_timesteps - 100) == pytest.approx(4.0, rel=0.05)


def test_an_envs_exception_reaches_the_caller_with_its_traceback(tmp_path):
    start = time.monotonic()
    with pytest.raises(ActorError) as caught:
        agent(tmp_path, Failing, cluster="local", block_steps=250).learn(5_000)
    assert time.monotonic() - start < 20
    text = str(caught.value)
    assert "actor" in text.splitlines()[0]
    assert "failed 4 times in a row" in text.splitlines()[0]
    assert "the wheel came off" in text
    assert "probes.py" in text
    assert (tmp_path / "run/last.apex").exists()


def test_exceptions_between_delivered_blocks_are_forgiven(tmp_path):
    settings = {"block_steps": 5, "max_restarts": 1, "evaluation_interval": 100_000}
    ape = agent(tmp_path, Failing, cluster="local", **settings).learn(2_000)
    assert ape.num_timesteps >= 2_000


class NeverMade(Probe):
    def __init__(self):
        if os.environ.get("APEX_TEST_CHILD_ONLY") != str(os.getpid()):
            raise OSError("the world is closed")


def test_an_env_that_cannot_be_made_in_the_child_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("APEX_TEST_CHILD_ONLY", str(os.getpid()))
    with pytest.raises(ActorError, match="the world is closed"):
        agent(tmp_path, NeverMade, cluster="local").learn(500)


def check_until(cluster, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if cluster.receive(0.1) is None:
            cluster.check()


def test_a_silent_actor_is_named(tmp_path):
    with running(tmp_path, num_actors=1) as (cluster, _):
        blocks(cluster, 1)
        process = psutil.Process(cluster.processes[0].pid)
        process.suspend()
        cluster.watchdog_seconds = 0.5
        words = r"waits for experience from actor 0 \(silent for \d+ s\) in process \d+, alive"
        try:
            with pytest.warns(RuntimeWarning, match=words):
                check_until(cluster, 2)
        finally:
            process.resume()


def test_stopping_is_quick_with_blocks_under_way(tmp_path):
    with running(tmp_path, block_steps=250) as (cluster, _):
        blocks(cluster, 2)
        time.sleep(0.5)
        start = time.monotonic()
        cluster.stop()
        assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("env", "steps"), [(Slow, 600), (Quick, 4_000)], ids=["50 steps a second", "as fast as it goes"]
)
def test_the_ratio_holds_whatever_the_speed(tmp_path, env, steps):
    settings = {"envs_per_actor": 4, "samples_per_insert": 8.0, "warmup_steps": 40, "evaluation_interval": 100_000}
    ape = agent(tmp_path, env, cluster="local", evaluation_episodes=1, **settings).learn(steps)
    trained = ape.learner.updates * ape.config.batch_size
    assert trained / (ape.num_timesteps - 40) == pytest.approx(8.0, rel=0.05)
    assert len(ape.memory) <= ape.num_timesteps


@pytest.mark.slow
def test_a_loaded_agent_goes_on_with_new_episodes(tmp_path):
    agent(tmp_path, cluster="local").learn(400).save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex")
    assert back.cluster.lives == [2, 2]
    back.resume_in(tmp_path / "rest")
    assert back.learn(400).num_timesteps >= 800


SCRIPT = """
import sys
from agents.apex import ApeX, ApeXConfig
if __name__ == "__main__":
    config = ApeXConfig(run_folder=sys.argv[1], evaluation_interval=1_000_000, warmup_steps=200)
    ApeX("CartPole-v1", config).learn(100_000_000)
"""


@contextmanager
def training(folder, *command):
    """A training in a process group of its own, once its actors run."""
    command = command or (sys.executable, "-c", SCRIPT, str(folder / "run"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    try:
        wait_for_rows(process, folder / "run/progress.csv")
        yield process, psutil.Process(process.pid).children(recursive=True)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def wait_for_rows(process, path):
    end = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end, "no progress"
        time.sleep(0.1)


def gone(processes, seconds):
    end = time.monotonic() + seconds
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, processes))


def alive(process):
    """Whether it still runs; an orphan that has ended may wait for its new parent's glance."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_learner_leaves_no_process_behind(tmp_path):
    with training(tmp_path) as (process, family):
        assert len(family) >= 2
        process.kill()
        assert gone(family, 5)


@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.slow), 2], ids=["once", "twice"])
def test_ctrl_c_saves_ends_all_and_says_where(tmp_path, signals):
    script = Path(__file__).parents[2] / "scripts" / "train_apex.py"
    arguments = ["--env", "CartPole-v1", "--run-folder", str(tmp_path / "run"), "--total-timesteps", "100000000"]
    with training(tmp_path, sys.executable, str(script), *arguments, "--no-progress-bar") as (process, family):
        for _ in range(signals):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 130
        assert gone(family, 1)
    assert output.strip().splitlines() == [f"Stopped; go on with --resume {tmp_path / 'run'}"]
    resumed = ApeX.load(tmp_path / "run/last.apex")
    assert resumed.num_timesteps > 200


HANG_UP = pytest.param(signal.SIGHUP, marks=pytest.mark.slow)


@pytest.mark.parametrize("number", [signal.SIGTERM, HANG_UP])
@pytest.mark.parametrize("to_all", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["parent", "group"])
def test_other_signals_save_and_end_all(tmp_path, number, to_all):
    with training(tmp_path) as (process, family):
        os.killpg(process.pid, number) if to_all else process.send_signal(number)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 128 + number
        assert gone(family, 1)
        assert "Traceback" not in output
    assert ApeX.load(tmp_path / "run/last.apex").num_timesteps > 200


@pytest.mark.slow
def test_a_closed_terminal_does_not_end_what_nohup_started(tmp_path):
    with training(tmp_path, "nohup", sys.executable, "-c", SCRIPT, str(tmp_path / "run")) as (process, family):
        os.killpg(process.pid, signal.SIGHUP)
        time.sleep(1)
        assert process.poll() is None
        assert all(map(alive, family))


def test_a_script_without_a_guard_is_told_so_in_one_sentence(tmp_path):
    (tmp_path / "script.py").write_text(
        "from agents.apex import ApeX, ApeXConfig\n"
        f"ApeX('CartPole-v1', ApeXConfig(run_folder={str(tmp_path / 'run')!r})).learn(5_000)\n"
    )
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert "put the start of the script under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]
