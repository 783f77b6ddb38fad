"""All actors in the caller's thread, one block after the other: repeatable to the last bit."""

from __future__ import annotations

import json
import warnings

import numpy as np

from agents.apex.actor import ActorPlan, build_actor
from agents.apex.channel import Block
from agents.apex.mailbox import Mailbox
from agents.trees import tree_leaves
from agents.types import Weights


class InlineChannel:
    """An actor's side: the cluster picks up what was sent.

    Args:
        mailbox: with the newest weights.
        version: of the weights that the actor has.
    """

    def __init__(self, mailbox: Mailbox, version: int = -1) -> None:
        self._mailbox = mailbox
        self.version = version

    def send(self, block: Block) -> None:
        """Keep the block until the learner takes it."""
        self.block = block

    def weights(self) -> Weights | None:
        """Give the newest weights, once."""
        weights = self._mailbox.newer_than(self.version)
        if weights is not None:
            self.version = weights.version
        return weights


class Seat:
    """An actor with its channel and a tape of its actions, from which the states of its envs can be had again.

    Envs cannot be saved in general. But from the same seed the same actions lead to the same states, so a saved seat
    plays its tape once more. The values of the last steps are saved too, since the weights that gave them are gone.

    Args:
        plan: of the actor.
        mailbox: with the newest weights.
    """

    def __init__(self, plan: ActorPlan, mailbox: Mailbox) -> None:
        weights = mailbox.newer_than(-1)
        assert weights is not None  # the cluster's first ones
        self.actor = build_actor(plan, weights)
        self.channel = InlineChannel(mailbox)
        self._tape: list[np.ndarray] = []  # of actions, (T, E) a block

    def collect(self) -> Block:
        """Collect the next block, and note what was done."""
        block = self.actor.collect(self.channel)
        self._tape.append(self.actor.buffer.action.copy())
        return block

    def state_dict(self) -> dict[str, np.ndarray]:
        """Give everything as plain arrays."""
        actor, buffer = self.actor, self.actor.buffer
        state = {
            "tape": np.concatenate([buffer.action[:0], *self._tape]),
            "recent_q": buffer.q[buffer.num_steps :].copy(),
            "counters": np.array([actor.weights.version, actor.steps_since_look, self.channel.version]),
            "generator": np.array(json.dumps(actor.generator.bit_generator.state)),
        }
        state |= {f"last_obs.{i}": leaf[-1].copy() for i, leaf in enumerate(tree_leaves(buffer.obs))}
        return state | {f"weights.{name}": array for name, array in actor.weights.arrays.items()}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> bool:
        """Play the tape in a fresh seat; False if the envs do not repeat themselves, which spoils the seat."""
        actor = self.actor
        actor.repeat(state["tape"], state["recent_q"])
        self._tape = [state["tape"]]
        version, actor.steps_since_look, self.channel.version = (int(count) for count in state["counters"])
        arrays = {n.removeprefix("weights."): a for n, a in state.items() if n.startswith("weights.")}
        actor.use(Weights(version, arrays))
        actor.generator.bit_generator.state = json.loads(str(state["generator"]))
        leaves = tree_leaves(actor.buffer.obs)
        return all(np.array_equal(leaf[-1], state[f"last_obs.{i}"]) for i, leaf in enumerate(leaves))


class InlineCluster:
    """Actors that take turns; an env's exception reaches the caller as it is.

    Args:
        plans: one an actor.
        weights: the first that the actors get.
    """

    def __init__(self, plans: list[ActorPlan], weights: Weights) -> None:
        self._plans = plans
        self._mailbox = Mailbox()
        self.publish(weights)
        self._seats: list[Seat] = []
        self._turn = 0

    @property
    def lives(self) -> list[int]:
        """The number of each actor's present life."""
        return [plan.life for plan in self._plans]

    def start(self) -> None:
        """Make the actors, or go on with those that are there."""
        if not self._seats:
            self._seats = [Seat(plan, self._mailbox) for plan in self._plans]

    def receive(self, timeout: float) -> Block | None:
        """Let the next actor collect a block; nothing is ever waited for."""
        seat = self._seats[self._turn]
        self._turn = (self._turn + 1) % len(self._seats)
        try:
            seat.channel.send(seat.collect())
        except BaseException:
            self._begin_anew()  # an actor that broke off in the middle of a step cannot go on
            raise
        return seat.channel.block

    def publish(self, weights: Weights) -> None:
        """Make these the newest weights."""
        self._mailbox.publish(weights)

    def check(self) -> None:
        """Nothing can have died."""

    def stop(self) -> None:
        """Nothing runs between two calls: the actors stay, in the middle of their episodes, for the next start."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """Give all actors as plain arrays."""
        seats = {f"{i}/{key}": value for i, seat in enumerate(self._seats) for key, value in seat.state_dict().items()}
        return {"turn": np.array(self._turn), **seats}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Bring saved actors back, or begin new episodes where an env does not repeat itself."""
        self.start()
        self._turn = int(state["turn"])
        for i, seat in enumerate(self._seats):
            own = {key.removeprefix(f"{i}/"): value for key, value in state.items() if key.startswith(f"{i}/")}
            if own and not seat.load_state_dict(own):
                warnings.warn("the envs do not repeat themselves: new episodes begin", RuntimeWarning, stacklevel=2)
                return self._begin_anew()

    def _begin_anew(self) -> None:
        for seat in self._seats:
            seat.actor.close()
        self._plans = [plan._replace(life=plan.life + 1) for plan in self._plans]
        self._seats = []
