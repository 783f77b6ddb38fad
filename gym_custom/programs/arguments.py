"""What the command lines of programs have in common: their parser, its values, and errors in one sentence."""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import gymnasium as gym


class WrongArguments(Exception):
    """One sentence about what the user should have written."""


WRONG = (WrongArguments, ValueError, TypeError, OSError, ImportError, gym.error.Error)
"""What wrong arguments raise, here and in what they name: a program answers them with one sentence."""


class Help(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal; those with indented lines, such as examples, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(p if "\n " in f"\n{p}" else textwrap.fill(p, width) for p in paragraphs)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, and whose options are never guessed from their beginnings."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=Help, **options)

    def error(self, message: str) -> Any:
        """Hands the sentence to `main`."""
        raise WrongArguments(message)

    def refuse(self, error: BaseException) -> int:
        """Prints what an error says behind the program's name; gives the exit code for wrong arguments, 2."""
        print(f"{Path(self.prog.split()[-1]).name}: {sentence(error)}", file=sys.stderr)
        return 2


def pair(text: str) -> tuple[str, Any]:
    """NAME:VALUE or NAME=VALUE, the value read as JSON where it is some."""
    name, colon, value = re.sub("[:=]", ":", text, count=1).partition(":")
    if not colon or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def positive(text: str) -> int:
    """A positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


def natural(text: str) -> int:
    """A number from 0, such as a seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer from 0, not {text!r}")
    return int(text)


def require_folder(path: Path) -> None:
    """Refuses a folder for results that cannot be made or written, before anything is worked out for nothing.

    Raises:
        OSError: It cannot.
    """
    there = next(place for place in (path, *path.parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(there)) from None  # the right subclass, with the folder's name


def find_own_modules() -> None:
    """Lets `module:id` name a file in the folder where the user stands: for a script Python looks beside it alone.

    Call it once gym_custom is imported, so that nothing that lies about there takes its place.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def sentence(error: BaseException) -> str:
    """What an error says, in one line, without what gym.make adds and error numbers."""
    if isinstance(error, FileExistsError):
        return f"{error.filename} is in the way: it is no folder"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).partition(" was raised from the environment creator")[0].split())


def require_id(env_id: str) -> str:
    """The id without the package before its colon, which is imported: gym.spec, unlike gym.make, does not do that.

    Raises:
        WrongArguments: Nothing is registered under it.
        ImportError: There is no such package.
    """
    package, _, name = env_id.rpartition(":")
    if package:
        importlib.import_module(package)
    if name not in gym.registry:
        near = difflib.get_close_matches(name, gym.registry, n=3) or [i for i in gym.registry if name in i]
        raise WrongArguments(f"there is no environment {name!r}" + (f"; near it are {', '.join(near)}" if near else ""))
    return name


def add_env(parse: Parser) -> None:
    """The options that say which environment is meant."""
    parse.add_argument(
        "--env", default="MyEnv-v0", metavar="ID", help="a Gymnasium id, or module:id (default: %(default)s)"
    )
    parse.add_argument(
        "--env-kwargs", nargs="+", default=[], type=pair, metavar="NAME:VALUE", help="arguments of the environment"
    )


def require_pictures(env_id: str) -> None:
    """Refuses an environment whose class renders no arrays, before one is made.

    Raises:
        WrongArguments: It does not, or there is no such environment.
    """
    entry_point = gym.spec(require_id(env_id)).entry_point
    if isinstance(entry_point, str):
        module, _, name = entry_point.partition(":")
        entry_point = getattr(importlib.import_module(module), name)
    if "rgb_array" not in getattr(entry_point, "metadata", {}).get("render_modes", ["rgb_array"]):
        raise WrongArguments(f"{env_id} renders no arrays, so there is nothing to show")
