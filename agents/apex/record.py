"""What a cluster knows of each of its actors, whatever the actor runs on."""

from __future__ import annotations

import time
from typing import NamedTuple

from agents.apex.actor import ActorPlan
from agents.apex.channel import ActorError


class Failure(NamedTuple):
    """An exception on its way to the caller."""

    text: str  # the traceback


class ActorRecord:
    """One actor's plan and fate.

    Args:
        plan: of the actor's present life.
    """

    def __init__(self, plan: ActorPlan) -> None:
        self.plan = plan
        self.failures = 0  # exceptions in a row
        self.last_block = time.monotonic()

    def delivered(self) -> None:
        """Note a block: failures before it are forgiven."""
        self.failures, self.last_block = 0, time.monotonic()

    def failed(self, text: str, max_restarts: int) -> None:
        """Count an exception.

        Raises:
            ActorError: there were more in a row than ``max_restarts``.
        """
        self.failures += 1
        if self.failures > max_restarts:
            raise ActorError(f"actor {self.plan.actor} failed {self.failures} times in a row; the last time:\n{text}")

    def next_life(self) -> None:
        """Let the plan be the next life's, which has other seeds."""
        self.plan = self.plan._replace(life=self.plan.life + 1)

    def silence(self) -> str:
        """Say for how long nothing has come."""
        return f"actor {self.plan.actor} (silent for {time.monotonic() - self.last_block:.0f} s)"
