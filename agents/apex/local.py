"""Actors as processes of this machine: a pipe each for blocks, one mailbox for weights.

Every pipe has one writer and one reader and no lock, so a process that is killed at any moment can hold nobody up.
Processes are spawned, never forked, since threads of torch may be alive in the caller.
"""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import time
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle

from agents.apex.actor import ActorPlan, build_actor, run_actor
from agents.apex.channel import ActorError, Block, Closed
from agents.apex.mailbox import SharedMailbox
from agents.apex.record import ActorRecord, Failure
from agents.apex.signals import HANG_UP
from agents.apex.spawned import UNGUARDED, ctrl_c_later, end_with_parent, one_thread
from agents.types import Weights

BLOCKS_UNDER_WAY = 2  # per actor: one being stored, one on its way
STOP_SECONDS = 1.0  # until a child that does not end by itself is ended

_spawn = multiprocessing.get_context("spawn")


class LocalChannel:
    """An actor's side, in its process.

    Args:
        connection: to the learner.
        mailbox: with the newest weights.
    """

    def __init__(self, connection: Connection, mailbox: SharedMailbox) -> None:
        self._connection, self._mailbox = connection, mailbox
        self._under_way = 0
        self._version = -1

    def send(self, block: Block) -> None:
        """Send, once fewer than BLOCKS_UNDER_WAY blocks wait for the learner."""
        self._send(block, BLOCKS_UNDER_WAY - 1)

    def fail(self, text: str) -> None:
        """Report an exception and wait until the learner has seen it and wants another try."""
        self._send(Failure(text), 0)
        self._wait_until(0)

    def weights(self) -> Weights | None:
        """Give the newest weights, once."""
        weights = self._mailbox.newer_than(self._version)
        if weights is not None:
            self._version = weights.version
        return weights

    def first_weights(self) -> Weights:
        """Give the newest weights, whether this actor has had them or not."""
        while (weights := self._mailbox.newer_than(-1)) is None:
            pass  # always in the middle of writing
        return weights

    def _send(self, message: Block | Failure, most_under_way: int) -> None:
        self._wait_until(most_under_way)
        try:
            self._connection.send(message)
        except OSError as error:
            raise Closed from error
        self._under_way += 1

    def _wait_until(self, most_under_way: int) -> None:
        try:
            while self._under_way > most_under_way:
                self._connection.recv_bytes()  # the learner's receipt
                self._under_way -= 1
        except (EOFError, OSError) as error:
            raise Closed from error


def actor_process(plan_bytes: bytes, connection: Connection, mailbox: SharedMailbox) -> None:
    """Run one actor until the learner goes; an exception is reported and the next life begins.

    Args:
        plan_bytes: a pickled ActorPlan (by cloudpickle).
        connection: to the learner.
        mailbox: with the newest weights.
    """
    for number in filter(None, (signal.SIGINT, HANG_UP)):
        signal.signal(number, signal.SIG_IGN)  # Ctrl+C and a closed terminal are the learner's business
    end_with_parent()
    channel = LocalChannel(connection, mailbox)
    for attempt in itertools.count():
        try:
            plan: ActorPlan = cloudpickle.loads(plan_bytes)
            run_actor(build_actor(plan._replace(life=plan.life + attempt), channel.first_weights()), channel)
        except Closed:
            return
        except BaseException:
            try:
                channel.fail(traceback.format_exc())
            except Closed:
                return


class _Child(ActorRecord):
    """One actor's process and what is known about it."""

    process: Any = None

    def start(self, mailbox: SharedMailbox) -> None:
        self.connection, other = _spawn.Pipe()
        arguments = (cloudpickle.dumps(self.plan), other, mailbox)
        self.process = _spawn.Process(
            target=actor_process, args=arguments, name=f"apex-actor-{self.plan.actor}", daemon=True
        )
        with ctrl_c_later(), one_thread():
            self.process.start()
        other.close()  # so that the child's end is the only one, and its death is seen here

    def condition(self) -> str:
        alive = "alive" if self.process.is_alive() else "dead"
        return f"{self.silence()} in process {self.process.pid}, {alive}"


class LocalCluster:
    """Actors in spawned processes.

    Args:
        plans: one an actor.
        weights: the first that the actors get; their shapes never change.
        max_restarts: exceptions in a row of one actor that are forgiven.
        watchdog_seconds: silence after which a warning names the actors.
    """

    def __init__(self, plans: list[ActorPlan], weights: Weights, max_restarts: int, watchdog_seconds: float) -> None:
        self._children = [_Child(plan) for plan in plans]
        self._max_restarts, self.watchdog_seconds = max_restarts, watchdog_seconds
        self._mailbox = SharedMailbox(weights)
        self._warned = 0.0
        self.restarts = 0

    @property
    def lives(self) -> list[int]:
        """The number of each actor's present life."""
        return [child.plan.life for child in self._children]

    @property
    def processes(self) -> list[Any]:
        """The actors' processes."""
        return [child.process for child in self._children]

    def start(self) -> None:
        """Start all processes; they go on to load while the caller does other things."""
        self._warned = time.monotonic()
        for child in self._children:
            child.failures = 0
            child.start(self._mailbox)

    def publish(self, weights: Weights) -> None:
        """Overwrite the newest weights."""
        self._mailbox.publish(weights)

    def receive(self, timeout: float) -> Block | None:
        """Take the next block of whichever actor has waited longest."""
        by_connection = {child.connection: child for child in self._children}
        ready = [by_connection[c] for c in wait(list(by_connection), timeout)]  # type: ignore[index]
        if not ready:
            return None
        child = min(ready, key=lambda child: child.last_block)
        message = self._read(child)
        if message is None:
            self._restart(child)
        elif isinstance(message, Failure):
            child.failed(message.text, self._max_restarts)
            child.next_life()
        else:
            child.delivered()
            return message
        return None

    def check(self) -> None:
        """Warn if nothing has come for long: dead children are met, and restarted, by receive."""
        now = time.monotonic()
        newest = max(self._warned, *(child.last_block for child in self._children))
        if now - newest > self.watchdog_seconds:
            self._warned = now
            waiting = ", ".join(child.condition() for child in self._children)
            warnings.warn(f"the learner waits for experience from {waiting}", RuntimeWarning, stacklevel=2)

    def stop(self) -> None:
        """Hang up, then end whoever has not left by itself."""
        started = [child for child in self._children if child.process is not None]
        for child in started:
            child.connection.close()
        deadline = time.monotonic() + STOP_SECONDS
        for child in started:
            child.process.join(max(deadline - time.monotonic(), 0.0))
        for child in started:
            if child.process.is_alive():
                child.process.kill()
                child.process.join()
            child.next_life()

    def _read(self, child: _Child) -> Block | Failure | None:
        """Read one message and give its receipt; None from a broken pipe, which means that the child has died."""
        try:
            message = child.connection.recv()
        except (EOFError, OSError):
            return None
        with suppress(OSError):  # it has died since: the next look meets that
            child.connection.send_bytes(b"")
        return message

    def _restart(self, child: _Child) -> None:
        child.connection.close()
        child.process.join(STOP_SECONDS)
        if child.process.is_alive():  # it closed its end, but lives on
            child.process.kill()
            child.process.join()
        code = child.process.exitcode or 0
        if code == UNGUARDED:
            raise ActorError(
                "actors are new processes that read the caller's script once more, and it started a training again: "
                "put the start of the script under `if __name__ == '__main__':`"
            )
        if code >= 0:  # it left by itself, without a word; below 0 a signal ended it
            child.failed(f"it left with exit code {code}", self._max_restarts)
        child.next_life()
        self.restarts += 1
        child.start(self._mailbox)
