"""What the command lines of the scripts for people have in common."""

from __future__ import annotations

import argparse
import importlib
import json
from typing import Any

import gymnasium as gym


class WrongArguments(Exception):
    """One sentence about what the user should have written."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> Any:
        """Hands the sentence to `main`."""
        raise WrongArguments(message)


def pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read as JSON where it is some."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def positive(text: str) -> int:
    """A positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


def render_modes(env_id: str) -> list[str]:
    """The render modes of an environment's class, before one is made."""
    package, _, env_id = env_id.rpartition(":")
    if package:  # unlike gym.make, gym.spec does not import what stands before the colon
        importlib.import_module(package)
    entry_point = gym.spec(env_id).entry_point
    if isinstance(entry_point, str):
        module, _, name = entry_point.partition(":")
        entry_point = getattr(importlib.import_module(module), name)
    return getattr(entry_point, "metadata", {}).get("render_modes", ["rgb_array"])
