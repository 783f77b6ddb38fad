"""Mailboxes hold the newest weights alone, whole."""

import multiprocessing
import threading

import numpy as np
import pytest

from agents.apex.mailbox import Mailbox, SharedMailbox

from .helpers import weights


@pytest.fixture(params=[Mailbox, SharedMailbox], ids=["inline", "shared"])
def mailbox(request):
    if request.param is SharedMailbox:
        return SharedMailbox(weights(0))
    box = Mailbox()
    box.publish(weights(0))
    return box


def test_a_sleeper_gets_the_newest_and_never_an_older_one(mailbox):
    for version in range(1, 101):
        mailbox.publish(weights(version, version))
    newest = mailbox.newer_than(-1)
    assert newest.version == 100
    np.testing.assert_array_equal(newest.arrays["a"], np.full((3, 2), 100.0))
    assert mailbox.newer_than(100) is None


def test_what_was_read_is_not_changed_by_what_is_published_later(mailbox):
    first = mailbox.newer_than(-1)
    mailbox.publish(weights(1, 9.0))
    assert (first.arrays["b"] == 0).all()


def test_a_half_written_state_is_never_given_out(monkeypatch):
    box = SharedMailbox(weights(0))
    box.publish(weights(3, 3.0))
    view = memoryview(box._memory).cast("B")
    view[-4:] = b"\x01\x02\x03\x04"
    assert box.newer_than(-1) is None
    box.publish(weights(4, 4.0))
    assert box.newer_than(-1).version == 4


def test_every_snapshot_is_of_one_moment():
    big = {"w": np.zeros(50_000, np.float32)}
    box = SharedMailbox(weights(0)._replace(arrays=big))
    stop = threading.Event()

    def write():
        version = 0
        while not stop.is_set():
            version += 1
            box.publish(weights(version)._replace(arrays={"w": np.full(50_000, version, np.float32)}))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(500):
            found = box.newer_than(-1)
            assert found is None or (found.arrays["w"] == found.version).all()
    finally:
        stop.set()
        writer.join()


def _publish_for_ever(box):
    version = 0
    while True:
        version += 1
        box.publish(weights(version)._replace(arrays={"w": np.full(20_000, version % 1000, np.float32)}))


@pytest.mark.slow
@pytest.mark.serial
def test_every_snapshot_is_of_one_moment_between_processes():
    box = SharedMailbox(weights(0)._replace(arrays={"w": np.zeros(20_000, np.float32)}))
    process = multiprocessing.get_context("spawn").Process(target=_publish_for_ever, args=(box,), daemon=True)
    process.start()
    seen = set()
    try:
        for _ in range(100_000):
            found = box.newer_than(-1)
            if found is not None:
                values = found.arrays["w"]
                assert values[0] == values[-1] == found.version % 1000
                assert (values == values[0]).all()
                seen.add(found.version)
    finally:
        process.kill()
        process.join()
    assert len(seen) > 100
