"""One contract for all transports of blocks and weights."""

import multiprocessing
import threading

import numpy as np
import pytest

from agents.apex.channel import Block, Closed
from agents.apex.inline import InlineChannel
from agents.apex.local import BLOCKS_UNDER_WAY, LocalChannel
from agents.apex.mailbox import Mailbox, SharedMailbox

from .helpers import block, weights


class Inline:
    """An actor's channel, and the learner's side of it."""

    def __init__(self):
        self.mailbox = Mailbox()
        self.actor = InlineChannel(self.mailbox)

    def receive(self):
        return self.actor.block


class Local:
    """The same over a pipe within one process."""

    def __init__(self):
        self.mailbox = SharedMailbox(weights(0))
        self.learner, other = multiprocessing.Pipe()
        self.actor = LocalChannel(other, self.mailbox)

    def receive(self):
        message = self.learner.recv()
        self.learner.send_bytes(b"")
        return message


@pytest.fixture(params=[Inline, Local])
def link(request):
    return request.param()


def test_a_block_arrives_as_it_was_sent(link):
    sent = block(7, actor=3, rows=5)
    link.actor.send(sent)
    got = link.receive()
    assert isinstance(got, Block)
    assert got._replace(windows=None, priorities=None) == sent._replace(windows=None, priorities=None)
    for mine, yours in zip(got.windows, sent.windows, strict=True):
        np.testing.assert_array_equal(mine, yours)
        assert np.asarray(mine).dtype == np.asarray(yours).dtype


def test_blocks_arrive_in_order_once_each(link):
    got = []
    for number in range(20):
        link.actor.send(block(number))
        got.append(int(link.receive().windows.reward[0]))
    assert got == list(range(20))


def test_only_the_newest_weights_are_seen_and_once(link):
    for version in range(1, 101):
        link.mailbox.publish(weights(version, version))
    newest = link.actor.weights()
    assert newest.version == 100
    assert (newest.arrays["a"] == 100).all()
    assert link.actor.weights() is None
    link.mailbox.publish(weights(101))
    assert link.actor.weights().version == 101


def test_weights_need_no_reader(link):
    for version in range(1000):
        link.mailbox.publish(weights(version))


def test_an_actor_waits_when_too_much_is_under_way():
    link = Local()
    for number in range(BLOCKS_UNDER_WAY):
        link.actor.send(block(number))
    waiting = threading.Thread(target=link.actor.send, args=(block(9),))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    link.receive()
    waiting.join(5)
    assert not waiting.is_alive()


@pytest.mark.parametrize("under_way", [0, BLOCKS_UNDER_WAY])
def test_an_actor_learns_that_the_learner_has_gone(under_way):
    link = Local()
    for number in range(under_way):
        link.actor.send(block(number))
    link.learner.close()
    with pytest.raises(Closed):
        send_many(link.actor)


def send_many(actor):
    for number in range(BLOCKS_UNDER_WAY + 1):
        actor.send(block(number))
