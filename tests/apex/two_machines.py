"""Learns on a Ray cluster of two machines, one of which is killed in the middle, and tells what happened.

``python -m apex.two_machines FOLDER``, from the tests' folder. Both machines are this one; to Ray they are two.
"""

import sys
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from .helpers import agent
from .probes import Counting

SETTINGS = {"cluster": "ray", "ray_cpus": 0.4, "ray_resources": {"arm": 0.5}, "evaluation_interval": 100_000}


class Located(Counting):
    """Observes on which machine of the cluster it runs."""

    def step(self, action):
        obs, *rest = super().step(action)
        return obs * 0 + number_of(ray.get_runtime_context().get_node_id()), *rest


def number_of(node_id):
    return int(node_id[:8], 16)


class Witness:
    """Stands before a cluster, kills a machine once both have sent blocks, and notes who sends from where."""

    def __init__(self, ape, machines, other):
        self.ape, self.machines, self.other = ape, machines, other
        self.cluster, self.clock = ape.cluster, time.monotonic()
        self.receive = self.cluster.receive
        self.cluster.receive = self
        self.places, self.killed = {}, False

    def log(self, sentence):
        seconds, updates = time.monotonic() - self.clock, self.ape.learner.updates
        print(f"{seconds:5.1f} s {self.ape.num_timesteps:6d} steps {updates:5d} updates: {sentence}", flush=True)

    def __call__(self, timeout):
        restarts = self.cluster.restarts
        block = self.receive(timeout)
        if self.cluster.restarts > restarts:
            self.log(f"an actor has died and is begun anew; lives are {self.cluster.lives}")
        if block is not None:
            self.meet(block)
        if not self.killed and len(set(self.places.values())) == 2 and self.ape.num_timesteps > 400:
            self.log("machine B is killed")
            self.machines.remove_node(self.other, allow_graceful=False)
            self.killed = True
        return block

    def meet(self, block):
        on_other = block.windows.next_obs[0, 0] == number_of(self.other.node_id)
        place = "B" if on_other else "A"
        if self.places.get(block.actor) != place:
            self.log(f"actor {block.actor} sends from machine {place}, with the weights of update {block.version}")
            self.places[block.actor] = place


def main(folder):
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"arm": 1}})
    other = machines.add_node(num_cpus=1, resources={"arm": 1})
    ape = agent(Path(folder), Located, ray_address=machines.address, **SETTINGS)
    witness = Witness(ape, machines, other)
    witness.log("learning begins")
    ape.learn(10_000)
    witness.log("learning has ended")
    print(f"killed {witness.killed}, restarts {ape.cluster.restarts}, places {dict(sorted(witness.places.items()))}")
    machines.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
