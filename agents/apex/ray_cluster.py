"""Actors on a Ray cluster of any number of machines: blocks and weights go through Ray's object store.

The only file that knows Ray, which is loaded when a cluster starts. The learner asks each actor for blocks and has at
most BLOCKS_UNDER_WAY of its answers outstanding, so that nothing piles up; the newest weights wait in a mailbox,
a small Ray actor beside the learner.
"""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
import warnings
from typing import Any, NamedTuple

import cloudpickle

from agents.apex.actor import Actor, ActorPlan, build_actor
from agents.apex.channel import Block
from agents.apex.mailbox import Mailbox
from agents.apex.record import ActorRecord, Failure
from agents.apex.signals import handlers_kept
from agents.types import Weights

BLOCKS_UNDER_WAY = 2  # per actor: one being stored, one being made


class Reference(NamedTuple):
    """Where weights lie in Ray's object store."""

    version: int
    place: Any  # inside a record, so that Ray hands the reference on as it is


class RayChannel:
    """An actor's side: what was sent is the answer to the learner's question.

    Args:
        mailbox: handle of a Ray actor that is a Mailbox of References.
    """

    def __init__(self, mailbox: Any) -> None:
        self._mailbox = mailbox
        self._version = -1

    def send(self, block: Block) -> None:
        """Keep the block until Ray takes it."""
        self.block = block

    def weights(self) -> Weights | None:
        """Give the newest weights, once."""
        import ray

        found = ray.get(self._mailbox.newer_than.remote(self._version))
        if found is None:
            return None
        self._version = found.version
        return ray.get(found.place)

    def first_weights(self) -> Weights:
        """Give the newest weights, whether this actor has had them or not."""
        self._version = -1
        while (weights := self.weights()) is None:
            time.sleep(0.01)  # the learner's first call to the mailbox may be slower than ours
        return weights


class RemoteActor:
    """One actor as a Ray actor; after an exception its next life begins with the next question.

    Args:
        plan_bytes: a pickled ActorPlan (by cloudpickle).
        mailbox: handle of a Ray actor that is a Mailbox of References.
        path: where the caller finds modules; looked through here too, as spawned processes do.
    """

    def __init__(self, plan_bytes: bytes, mailbox: Any, path: list[str]) -> None:
        sys.path += [folder for folder in path if folder not in sys.path and os.path.isdir(folder)]
        self._plan_bytes, self._channel = plan_bytes, RayChannel(mailbox)
        self._failures = 0
        self._actor: Actor | None = None

    def collect(self) -> Block | Failure:
        """Collect the next block."""
        try:
            if self._actor is None:
                self._actor = self._build()
            self._channel.send(self._actor.collect(self._channel))
        except BaseException:
            self._actor, self._failures = None, self._failures + 1
            return Failure(traceback.format_exc())
        return self._channel.block

    def _build(self) -> Actor:
        plan: ActorPlan = cloudpickle.loads(self._plan_bytes)
        return build_actor(plan._replace(life=plan.life + self._failures), self._channel.first_weights())


class _Seat(ActorRecord):
    """One actor's place: the Ray actor that sits there now, and what it has been asked for."""

    handle: Any = None

    def __init__(self, plan: ActorPlan) -> None:
        super().__init__(plan)
        self.answers: list[Any] = []  # references, oldest first


class RayCluster:
    """Actors on a Ray cluster.

    If the program has called ``ray.init`` itself, that Ray is used and left running. Else Ray is started on this
    machine, or the cluster at ``config.ray_address`` is joined, until ``stop``.

    Args:
        plans: one an actor.
        weights: the first that the actors get.
    """

    def __init__(self, plans: list[ActorPlan], weights: Weights) -> None:
        self._seats = [_Seat(plan) for plan in plans]
        self._config = plans[0].config
        self._newest = weights
        self._own = False  # whether Ray was started here
        self._mailbox: Any = None
        self._receipt: Any = None  # of what the mailbox was last given
        self._given = -1  # its version
        self._warned = 0.0
        self.restarts = 0

    @property
    def lives(self) -> list[int]:
        """The number of each actor's present life."""
        return [seat.plan.life for seat in self._seats]

    def start(self) -> None:
        """Join Ray and ask all actors for their first blocks; they go on to load while the caller does other things.

        Raises:
            ImportError: Ray is not installed.
            ConnectionError: no cluster answers at ``ray_address``.
        """
        self._connect()
        self._mailbox, self._receipt, self._given = self._make_mailbox(), None, -1
        self._hand_over()
        self._warned = time.monotonic()
        for seat in self._seats:
            seat.failures = 0
            self._seat_actor(seat)

    def publish(self, weights: Weights) -> None:
        """Make these the newest weights."""
        self._newest = weights
        self._hand_over()

    def receive(self, timeout: float) -> Block | None:
        """Take the next block of whichever actor has waited longest, and ask that actor for another."""
        import ray

        self._hand_over()
        seats = {seat.answers[0]: seat for seat in sorted(self._seats, key=lambda seat: seat.last_block)}
        ready, _ = ray.wait(list(seats), timeout=timeout)
        if not ready:
            return None
        seat = seats[ready[0]]
        try:
            message = ray.get(seat.answers.pop(0))
        except ray.exceptions.RayError as error:  # the actor, its process or its machine has gone
            self._replace_actor(seat, error)
            return None
        self._ask(seat)
        if isinstance(message, Failure):
            seat.failed(message.text, self._config.max_restarts)
            seat.next_life()
            return None
        seat.delivered()
        return message

    def check(self) -> None:
        """Warn if nothing has come for long: dead actors are met, and replaced, by receive."""
        now = time.monotonic()
        newest = max(self._warned, *(seat.last_block for seat in self._seats))
        if now - newest > self._config.watchdog_seconds:
            self._warned = now
            waiting = ", ".join(seat.silence() for seat in self._seats)
            sentence = f"the learner waits for experience from {waiting}; {self._room()}"
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)

    def stop(self) -> None:
        """End all actors, and Ray itself if it was started here."""
        if self._mailbox is not None:
            ray = _ray()
            for seat in self._seats:
                if seat.handle is not None:
                    self._end(seat)
                    seat.next_life()
            if ray.is_initialized():
                ray.kill(self._mailbox)
            self._mailbox = self._receipt = None
        if self._own:
            _ray().shutdown()
            self._own = False

    def _connect(self) -> None:
        ray = _ray()
        if ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray of ours reports to nobody
        options = {"log_to_driver": False, "logging_level": "ERROR"}
        with handlers_kept():  # Ray puts one of its own in SIGTERM's place, but learn() wants to save first
            ray.init(**options, **(self._address() or self._new_ray()))
        self._own = True

    def _address(self) -> dict[str, Any] | None:
        """The cluster to join, as Ray's own tools find it."""
        address = self._config.ray_address or os.environ.get("RAY_ADDRESS")
        return {"address": address} if address else None

    def _new_ray(self) -> dict[str, Any]:
        """A Ray on this machine with room for all actors, however few its cores are."""
        actors = len(self._seats)
        custom = {name: amount * actors for name, amount in self._config.ray_resources.items()}
        room = {"num_cpus": math.ceil(actors * self._config.ray_cpus), "resources": custom}
        return {"address": "local", "include_dashboard": False, **room}

    def _make_mailbox(self) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        return ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()

    def _hand_over(self) -> None:
        """Give the newest weights to the mailbox, unless it is still busy with others: the newest then wait for it."""
        import ray

        if self._mailbox is None or self._given == self._newest.version:
            return
        if self._receipt is None or ray.wait([self._receipt], timeout=0)[0]:
            self._given = self._newest.version
            self._receipt = self._mailbox.publish.remote(Reference(self._given, ray.put(self._newest)))

    def _seat_actor(self, seat: _Seat) -> None:
        import ray

        config = self._config
        remote = ray.remote(RemoteActor).options(
            num_cpus=config.ray_cpus, resources=config.ray_resources, scheduling_strategy=config.ray_placement
        )
        seat.handle = remote.remote(cloudpickle.dumps(seat.plan), self._mailbox, sys.path)
        seat.answers = []
        for _ in range(BLOCKS_UNDER_WAY):
            self._ask(seat)

    def _ask(self, seat: _Seat) -> None:
        seat.answers.append(seat.handle.collect.remote())

    def _replace_actor(self, seat: _Seat, error: Any) -> None:
        """Begin the actor's next life wherever there is room; only if it could not even be made is that a failure."""
        self._end(seat)
        if getattr(error, "actor_init_failed", False):
            hint = "is the package installed on all machines of the Ray cluster?"
            seat.failed(f"{error}\n{hint}", self._config.max_restarts)
        seat.next_life()
        self.restarts += 1
        self._seat_actor(seat)

    def _end(self, seat: _Seat) -> None:
        import ray

        if ray.is_initialized():
            ray.kill(seat.handle)
        seat.handle, seat.answers = None, []

    def _room(self) -> str:
        """What the actors need and the cluster has: without room Ray makes no actor and says nothing."""
        import ray

        needed = {"CPU": self._config.ray_cpus, **self._config.ray_resources}
        has = ray.cluster_resources()
        return "each actor needs " + ", ".join(
            f"{amount:g} {name} (the cluster has {has.get(name, 0):g})" for name, amount in needed.items()
        )


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ImportError("cluster='ray' needs Ray: pip install --editable '.[ray]'") from error
    return ray
