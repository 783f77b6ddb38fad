"""What actors and learner say to each other, whoever carries it: blocks of windows one way, weights the other."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from agents.types import Experience, Transition, Weights


class Episode(NamedTuple):
    """One finished episode of an exploring env row."""

    row: int  # env row, counted over all actors
    epsilon: float
    reward: float  # undiscounted sum
    length: int  # steps


class Block(NamedTuple):
    """What an actor sends at once."""

    windows: Transition | Experience
    priorities: np.ndarray  # (N,), absolute temporal-difference errors
    actor: int
    source: int | np.ndarray  # the rows' streams, as memories number them; one for all, or (N,)
    steps: int  # env steps since the actor's last block
    version: int  # of the weights that chose the last action
    episodes: tuple[Episode, ...]  # finished since the last block


class ActorChannel(Protocol):
    """An actor's side."""

    def send(self, block: Block) -> None:
        """Hand a block over; waits while too many are under way. Raises Closed when the learner has gone."""

    def weights(self) -> Weights | None:
        """Give the newest published weights, or None if this actor has had them; older ones are never seen."""


class LearnerChannel(Protocol):
    """The learner's side."""

    def receive(self, timeout: float) -> Block | None:
        """Give the next block, or None if none came within so many seconds. Each block comes at most once."""

    def publish(self, weights: Weights) -> None:
        """Make these the newest weights; never waits."""


class Cluster(LearnerChannel, Protocol):
    """The place where actors run: a learner's channel with a life span."""

    @property
    def lives(self) -> list[int]:
        """The number of each actor's present life, one more after each restart."""

    def start(self) -> None:
        """Start the actors; publish weights first."""

    def check(self) -> None:
        """Restart what died; raise ActorError if an actor fails again and again."""

    def stop(self) -> None:
        """End all actors; may be called twice."""


class Closed(Exception):
    """The other side has gone: an actor that meets it ends quietly."""


class ActorError(RuntimeError):
    """An actor failed for good; the message carries its traceback."""
