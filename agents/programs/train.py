"""Train Ape-X on any Gymnasium env, with every setting of ``ApeXConfig`` as an option."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import io
import itertools
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import tyro

from agents.apex import ApeXConfig
from agents.apex.envs import resolve, spaces_of, with_arguments
from agents.apex.signals import last_interrupt

if TYPE_CHECKING:
    from agents.apex import ApeX

INTERRUPTED = 130  # what shells expect after Ctrl+C
BAD_INPUT = 2
DESCRIPTION = """Train Ape-X on any Gymnasium env, by its preset.

examples:
  {prog} --env {env} --total-timesteps 50000
  {prog} --env my_package:MyWorld-v0 --num-actors 4 --n-step 5
  {prog} --env {env} --env-kwargs max_episode_steps:200
  {prog} --resume runs/FOLDER --total-timesteps 100000"""


@dataclasses.dataclass
class Options:
    """Train Ape-X on a Gymnasium env."""

    env: str = "NumpyCartPole-v1"
    """A registered id; "package:id" imports the package that registers it."""
    env_kwargs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME:VALUE ...")] = ()
    """Arguments of the env, each NAME:VALUE."""
    total_timesteps: int = 50_000
    """Env steps of all actors together, those before a resume included."""
    seed: int = 0
    """Of everything random."""
    save: Path | None = None
    """Where to save the trained agent, beside the run folder's last.apex."""
    resume: Path | None = None
    """Run folder of an interrupted run; its env, seed and settings hold. Beside it, --env package:id only imports the
    package."""
    load_weights: Path | None = None
    """Weights to start from, such as another run's best.pt."""
    progress_bar: bool = True
    """Whether to show one."""
    watch: bool = False
    """Whether to open a window in which the policy plays while it learns; close it whenever you like."""
    verbose: int = 0
    """1 prints a line per episode and change of state."""


@dataclasses.dataclass
class Arguments:
    """Train Ape-X on a Gymnasium env."""

    options: Options
    config: ApeXConfig


def parse(argv: Sequence[str], prog: str, env: str) -> Arguments:
    """Read the command line, with the preset of the named env as defaults.

    Raises:
        ValueError: what is there cannot be read; in one sentence.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--env", nargs="?", default=env)
    preset = ApeXConfig.preset(first.parse_known_args(argv)[0].env or env)
    default = Arguments(Options(env=env), preset)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            arguments = tyro.cli(
                tyro.conf.OmitArgPrefixes[Arguments],
                args=argv,
                default=default,
                prog=prog,
                description=DESCRIPTION.format(prog=prog, env=env),
            )
    except SystemExit as stop:
        if stop.code:
            raise ValueError(_first_sentence(said.getvalue())) from None
        raise
    if "--env-kwargs" in argv and not arguments.options.env_kwargs:
        raise ValueError("--env-kwargs wants at least one NAME:VALUE")
    if arguments.options.resume is not None and (arguments.config != preset or arguments.options.env_kwargs):
        raise ValueError("a resumed run keeps its settings: give none beside --resume")
    return arguments


def pair(text: str) -> tuple[str, Any]:
    """NAME:VALUE or NAME=VALUE, the value read as JSON where it is some."""
    name, separator, value = re.sub("[:=]", ":", text, count=1).partition(":")
    if not separator or not name.isidentifier():
        raise ValueError(f"--env-kwargs {text!r} is not NAME:VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _first_sentence(boxed: str) -> str:
    """What an error in tyro's box says, without its frame, its title and its hints."""
    lines = [re.sub(r"^[│|] | [│|]$", "", line) for line in boxed.splitlines()[1:]]
    said = itertools.dropwhile(_is_rule, lines)
    return " ".join(" ".join(itertools.takewhile(lambda line: not _is_rule(line), said)).split())


def _is_rule(line: str) -> bool:
    return set(line) <= set("─-╭╮╰╯+ ")


def prepare(arguments: Arguments) -> ApeX:
    """Make a fresh agent, or bring back an interrupted one."""
    options = arguments.options
    if options.total_timesteps < 1:
        raise ValueError(f"--total-timesteps must be at least 1, not {options.total_timesteps}")
    if options.save is not None:
        _require_writable(options.save)
    spec = with_arguments(options.env, dict(map(pair, options.env_kwargs)))
    if options.resume is None:
        spaces_of(resolve(spec))  # refuses arguments that the env does not take
    else:
        (options.resume / "last.apex").stat()  # an OSError where there is none
    from agents.apex import ApeX  # loads torch, for which no wrong word should have to wait

    if options.resume is not None:
        agent = ApeX.load(options.resume / "last.apex", verbose=options.verbose)
        agent.resume_in(options.resume)
    else:
        agent = ApeX(spec, arguments.config, options.seed, options.verbose)
    if options.load_weights is not None:
        agent.load_weights(options.load_weights)
    return agent


def _require_writable(path: Path) -> None:
    """Refuse now what could not be saved after the training."""
    if path.exists() and not path.is_file():
        raise ValueError(f"--save {path} is no file, so it cannot be replaced by one")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write there", str(path.parent))


def main(argv: Sequence[str] | None = None, prog: str = "python -m agents train", env: str = "CartPole-v1") -> int:
    """Train; give the process's exit code.

    Args:
        argv: words of the command line, None for those of the process.
        prog: how the user calls this.
        env: id that is trained on where none is named.
    """
    agent: ApeX | None = None
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv, prog, env)
        options, agent = arguments.options, prepare(arguments)
        steps = options.total_timesteps - agent.planned_timesteps
        if steps <= 0:
            print(f"Nothing to do: the run already has {agent.num_timesteps} of {options.total_timesteps} steps.")
            return 0
        with last_interrupt():
            agent.learn(steps, progress_bar=options.progress_bar, watch=options.watch)
        if options.save is not None:
            agent.save(options.save)
    except KeyboardInterrupt:
        print(f"Stopped; go on with --resume {agent.run_folder}" if agent else "Stopped before the training began")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone; no fault of the arguments
        raise
    except (ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        print(f"{Path(prog.split()[-1]).stem}: {_sentence(error)}", file=sys.stderr)
        return BAD_INPUT
    best, steps = agent.best_return, agent.num_timesteps
    print(f"Best greedy return {best:.1f} after {steps} steps; everything is in {agent.run_folder}")
    return 0


def _sentence(error: BaseException) -> str:
    """What an error says, in one line, without what gym.make adds and error numbers."""
    if isinstance(error, FileExistsError):
        return f"{error.filename} is in the way: it is no folder"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).partition(" was raised from the environment creator")[0].split())
