"""Shared by all tests: no window ever opens, and long runs wait for --slow."""

import os
import signal

import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
# What a shell starts in the background ignores Ctrl+C, and so would the programs that tests interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="long; run with --slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)
