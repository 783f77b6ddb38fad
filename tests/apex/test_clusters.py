"""One contract for all places where actors run."""

import contextlib
import time

import gymnasium as gym
import numpy as np
import pytest

from agents.apex.actor import ActorPlan
from agents.apex.channel import Block
from agents.apex.envs import resolve
from agents.apex.inline import InlineCluster
from agents.apex.local import LocalCluster
from agents.apex.ray_cluster import RayCluster
from agents.types import Weights

from .helpers import agent, small
from .probes import Counting


def local(plans, weights):
    return LocalCluster(plans, weights, max_restarts=3, watchdog_seconds=60.0)


CLUSTERS = {"inline": InlineCluster, "local": local, "ray": RayCluster}


def where(*marks):
    """Marks for the clusters that have processes."""
    return ["inline", *(pytest.param(name, marks=[pytest.mark.serial, *marks]) for name in ("local", "ray"))]


@pytest.fixture(params=where())
def name(request):
    if request.param == "ray":
        request.getfixturevalue("ray_here")
    return request.param


@contextlib.contextmanager
def running(name, folder, env=Counting, **settings):
    config = small(folder, cluster=name, **{"n_step": 1, **settings})
    plans = [ActorPlan(resolve(env), config, 0, actor, 0) for actor in range(config.num_actors)]
    weights = agent(folder, env, cluster=name, **settings).learner.weights()
    cluster = CLUSTERS[name](plans, weights)
    cluster.start()
    try:
        yield cluster, weights
    finally:
        cluster.stop()


def blocks(cluster, enough, seconds=90):
    """Blocks until ``enough(blocks)``."""
    found, end = [], time.monotonic() + seconds
    while not enough(found):
        assert time.monotonic() < end, f"{len(found)} blocks came"
        if (block := cluster.receive(0.1)) is not None:
            found.append(block)
        else:
            cluster.check()
    return found


def from_all(number, actors=2):
    """Whether each actor has sent so many blocks."""
    return lambda found: all(sum(block.actor == actor for block in found) >= number for actor in range(actors))


def test_blocks_come_whole_once_and_in_order(name, tmp_path):
    with running(name, tmp_path) as (cluster, _):
        found = blocks(cluster, from_all(4))
    for actor in (0, 1):
        own = [block for block in found if block.actor == actor]
        assert all(isinstance(block, Block) and block.steps == 20 for block in own)
        rows = np.concatenate([np.sort(block.windows.obs[:, 0]) for block in own])
        np.testing.assert_array_equal(rows, np.repeat(np.arange(len(rows) // 4), 4))


def test_all_actors_come_to_the_newest_weights_and_never_to_older_ones(name, tmp_path):
    with running(name, tmp_path) as (cluster, weights):
        blocks(cluster, from_all(1))
        for version in range(1, 21):
            cluster.publish(Weights(version, weights.arrays))
        found = blocks(cluster, lambda found: {b.actor for b in found if b.version == 20} == {0, 1})
    for actor in (0, 1):
        versions = [block.version for block in found if block.actor == actor]
        assert versions == sorted(versions)
        assert set(versions) <= {0, 20} or name != "inline"


@pytest.mark.parametrize("name", where(pytest.mark.slow), indirect=True)
def test_publishing_waits_for_nobody(name, tmp_path):
    with running(name, tmp_path) as (cluster, weights):
        for version in range(1, 200):
            cluster.publish(Weights(version, weights.arrays))
        found = blocks(cluster, lambda found: any(block.version == 199 for block in found))
    assert len(found) < 200


@pytest.mark.parametrize("name", where(pytest.mark.slow), indirect=True)
def test_actors_have_different_envs_and_actions(name, tmp_path):
    with running(name, tmp_path, "CartPole-v1") as (cluster, _):
        found = blocks(cluster, from_all(1))
    first = [next(block for block in found if block.actor == actor).windows for actor in (0, 1)]
    assert not np.array_equal(first[0].action, first[1].action)
    assert len(np.unique(np.concatenate([w.obs for w in first]), axis=0)) == sum(len(w.obs) for w in first)


@pytest.mark.parametrize("name", where(pytest.mark.slow), indirect=True)
def test_a_stopped_cluster_starts_again_and_may_be_stopped_twice(name, tmp_path):
    with running(name, tmp_path) as (cluster, _):
        blocks(cluster, from_all(1))
        before = cluster.lives
        cluster.stop()
        cluster.stop()
        cluster.start()
        blocks(cluster, from_all(1))
        assert cluster.lives == before if name == "inline" else cluster.lives > before


class Broken(Counting):
    """Fails in its third step."""

    def step(self, action):
        if self.count == 2:
            raise RuntimeError("the wheel came off")
        return super().step(action)


def test_an_exception_reaches_the_caller_with_its_traceback(name, tmp_path):
    with (
        running(name, tmp_path, Broken) as (cluster, _),
        pytest.raises(RuntimeError, match="the wheel came off") as got,
    ):
        blocks(cluster, from_all(1))
    if name != "inline":  # there Python gives its own
        text = str(got.value)
        assert "failed 4 times in a row" in text.splitlines()[0]
        assert "test_clusters.py" in text


def test_learning_goes_the_same_way(name, tmp_path):
    ape = agent(tmp_path, "CartPole-v1", cluster=name).learn(600)
    assert ape.num_timesteps >= 600
    assert ape.learner.updates * ape.config.batch_size / (ape.num_timesteps - 100) == pytest.approx(4.0, rel=0.1)
    assert gym.spec("CartPole-v1").id == ape.source.name
