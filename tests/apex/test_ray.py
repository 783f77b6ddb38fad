"""Ray alone: machines that die, what is left behind, what cannot be joined."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from agents.apex.ray_cluster import BLOCKS_UNDER_WAY
from agents.types import Weights

from .test_clusters import blocks, from_all, running

pytestmark = [pytest.mark.serial, pytest.mark.timeout(180)]


def test_a_killed_actor_comes_back_with_the_newest_weights_and_other_seeds(ray_here, tmp_path):
    with running("ray", tmp_path, "CartPole-v1", n_step=1) as (cluster, weights):
        before = blocks(cluster, from_all(2))
        cluster.publish(Weights(7, weights.arrays))
        ray_here.kill(cluster._seats[0].handle)
        after = blocks(cluster, lambda found: sum(b.actor == 0 and b.version == 7 for b in found) >= 2)
        assert (cluster.restarts, cluster.lives) == (1, [1, 0])
    obs = [block.windows.obs for block in before + after]
    assert len(np.unique(np.concatenate(obs), axis=0)) == sum(map(len, obs))


def test_no_more_blocks_wait_than_were_asked_for(ray_here, tmp_path):
    with running("ray", tmp_path, block_steps=1) as (cluster, weights):
        blocks(cluster, from_all(1))
        time.sleep(1.0)  # enough for hundreds of steps
        cluster.publish(Weights(1, weights.arrays))
        time.sleep(0.2)
        found = blocks(cluster, lambda found: {b.actor for b in found if b.version} == {0, 1})
    for actor in (0, 1):
        assert sum(block.actor == actor and block.version == 0 for block in found) <= BLOCKS_UNDER_WAY


def test_a_ray_of_the_program_is_left_running(ray_here, tmp_path):
    with running("ray", tmp_path) as (cluster, _):
        blocks(cluster, from_all(1))
    assert ray_here.is_initialized()


OWN = """
import signal, sys
from agents.apex import ApeX, ApeXConfig
settings = dict(cluster="ray", run_folder=sys.argv[1], warmup_steps=200, evaluation_interval=1_000_000)
if __name__ == "__main__":
    before = signal.getsignal(signal.SIGTERM)
    agent = ApeX("CartPole-v1", ApeXConfig(**settings))
    try:
        agent.learn(int(sys.argv[2]))
    finally:
        import ray
        print("steps", agent.num_timesteps, "left", ray.is_initialized(), signal.getsignal(signal.SIGTERM) is before)
"""


def start(folder, steps):
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", OWN, str(folder / "run"), str(steps)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


def test_a_ray_of_our_own_is_started_and_shut_down(tmp_path):
    process = start(tmp_path, 1_000)
    output, _ = process.communicate(timeout=150)
    assert process.returncode == 0, output
    steps = int(output.split("steps ")[1].split()[0])
    assert steps >= 1_000
    assert output.strip().splitlines()[-1] == f"steps {steps} left False True"


@pytest.mark.slow
def test_ctrl_c_saves_and_shuts_down(tmp_path):
    process = start(tmp_path, 100_000_000)
    end = time.monotonic() + 100
    while not (tmp_path / "run/progress.csv").exists():
        assert time.monotonic() < end
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (1, -signal.SIGINT)
    assert "KeyboardInterrupt" in output
    assert "left False True" in output
    assert (tmp_path / "run/last.apex").exists()


@pytest.mark.slow
def test_without_room_for_an_actor_the_warning_says_so(ray_here, tmp_path):
    settings = {"ray_resources": {"arm": 1.0}, "watchdog_seconds": 1.0}
    words = r"each actor needs 1 CPU \(the cluster has 4\), 1 arm \(the cluster has 0\)"
    with running("ray", tmp_path, **settings) as (cluster, _), pytest.warns(RuntimeWarning, match=words):  # noqa: PT031
        for _ in range(20):
            assert cluster.receive(0.1) is None
            cluster.check()


@pytest.mark.slow
def test_a_machine_that_dies_in_the_middle_is_survived(tmp_path):
    command = [sys.executable, "-m", "apex.two_machines", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, cwd=Path(__file__).parents[1])
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert done.stdout.strip().splitlines()[-1] == "killed True, restarts 1, places {0: 'A', 1: 'A'}"
