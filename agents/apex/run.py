"""One call of learn(): actors started, blocks and updates in turn, evaluations and checkpoints between them."""

from __future__ import annotations

import itertools
import json
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm import tqdm

from agents.apex.channel import Block
from agents.apex.checkpoint import save_tensors
from agents.apex.claims import claimed
from agents.apex.evaluator import Evaluator
from agents.apex.learner import train
from agents.apex.masks import carries_mask
from agents.apex.reporting import Reporter
from agents.apex.signals import Interruption
from agents.apex.spawned import leave_if_unguarded
from agents.apex.watching import Watcher

if TYPE_CHECKING:
    from agents.apex.agent import ApeX


class Run:
    """The part of training that is not an equation: when what is evaluated, saved and told.

    Args:
        agent: to be trained.
        total_steps: env steps, counted over the agent's life, at which to stop.
        reporter: of figures and sentences.
        interruption: asked at every safe place.
        watcher: shown how the policy gets on, or None.
    """

    def __init__(
        self,
        agent: ApeX,
        total_steps: int,
        reporter: Reporter,
        interruption: Interruption,
        watcher: Watcher | None = None,
    ) -> None:
        self._watcher = watcher
        self._agent, self._total, self._reporter, self._interruption = agent, total_steps, reporter, interruption
        self._evaluator = Evaluator(agent.source, agent.config.evaluation_episodes, carries_mask(agent.input_space))
        self._clock = time.perf_counter()
        self._evaluated = self._logged = self._saved = agent.num_timesteps
        self._counts = (agent.seconds, agent.ratio.inserted, agent.ratio.sampled)

    def play(self) -> None:
        """Train until the total is reached."""
        agent, config = self._agent, self._agent.config
        updates = agent.learner.updates
        self._reporter.say("learner waits for experience")
        for event in train(agent.learner, agent.cluster, agent.ratio, self._total):
            if isinstance(event, Block):
                self._reporter.block(event, agent.num_timesteps, self._total, agent.learner.updates)
                if self._due(self._logged, config.log_interval):
                    self._log()
                if self._due(self._evaluated, config.evaluation_interval):
                    self._evaluate()
                if self._due(self._saved, config.checkpoint_interval):
                    self.checkpoint()
            elif event is not None:
                self._reporter.update(event)
                if agent.learner.updates == updates + 1:
                    self._reporter.say("learner starts")
            self._interruption.check()

    def finish(self) -> None:
        """Judge the last weights, put the best in place, and save; an OSError if the disk refuses."""
        if self._evaluated < self._agent.num_timesteps:
            self._evaluate()
        self._agent.planned_timesteps = self._total
        self._agent.take_best()
        self._log()
        self._save()
        self._reporter.say(f"learner finished; saved as {self._agent.run_folder / 'last.apex'}")

    def checkpoint(self) -> bool:
        """Save to the run folder; False where that fails: the last good checkpoint stays, and training goes on."""
        try:
            self._save()
        except OSError as error:
            warnings.warn(f"no checkpoint was written: {error}", RuntimeWarning, stacklevel=2)
            return False
        return True

    def _save(self) -> None:
        self._tick()
        self._saved = self._agent.num_timesteps
        self._agent.save(self._agent.run_folder / "last.apex")

    def close(self) -> None:
        """Close the evaluator's envs and the files."""
        self._evaluator.close()
        self._reporter.close()

    def _due(self, last: int, interval: int) -> bool:
        return self._agent.num_timesteps // interval > last // interval

    def _tick(self) -> None:
        now = time.perf_counter()
        self._agent.seconds += now - self._clock
        self._clock = now

    def _log(self) -> None:
        self._tick()
        agent, ratio = self._agent, self._agent.ratio
        self._logged = agent.num_timesteps
        if self._watcher is not None:
            self._watcher.publish(agent.learner.averaged_weights())
        pace, self._counts = self._rates(), (agent.seconds, ratio.inserted, ratio.sampled)
        self._reporter.progress(
            agent.num_timesteps,
            {
                "updates": agent.learner.updates,
                "seconds": agent.seconds,
                "learning_rate": agent.learner.learning_rate(agent.num_timesteps),
                "samples_per_insert": ratio.sampled / max(ratio.inserted - ratio.warmup, 1),
                "memory_rows": len(agent.memory),
                "restarts": getattr(agent.cluster, "restarts", 0),
                **pace,
                **agent.learner.health.figures(),
            },
        )

    def _rates(self) -> dict[str, float]:
        """Rows collected and rows trained a second, since the last row of the log."""
        seconds, inserted, sampled = self._counts
        passed = max(self._agent.seconds - seconds, 1e-9)
        ratio = self._agent.ratio
        return {
            "rows_in_per_second": (ratio.inserted - inserted) / passed,
            "rows_out_per_second": (ratio.sampled - sampled) / passed,
        }

    def _evaluate(self) -> None:
        """Let the averaged network play greedily; the clock stands still meanwhile."""
        self._tick()
        agent = self._agent
        self._evaluated = agent.num_timesteps
        result = self._evaluator(self._act)
        if agent.judge(float(result.returns.mean())):
            save_tensors(agent.run_folder / "best.pt", agent.best)
        self._reporter.evaluation(agent.num_timesteps, agent.learner.updates, agent.seconds, result, agent.best_return)
        self._clock = time.perf_counter()

    def _act(self, obs: Any) -> np.ndarray:
        self._interruption.check()
        return self._agent.greedy(self._agent.learner.average, obs)


def new_folder(wanted: str | None, env_name: str) -> Path:
    """Make a folder for a run: the wanted one, or runs/<id>_<time> with a number behind it where that is taken.

    Raises:
        ValueError: the wanted folder holds another run.
    """
    if wanted is not None:
        folder = Path(wanted)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            (folder / "config.json").touch(exist_ok=False)  # of two runs that begin at once, only one makes it
        except FileExistsError:
            raise ValueError(f"run_folder {wanted} holds another run: choose a new one, or resume that run") from None
        return folder
    stem = f"runs/{env_name.replace('/', '_')}_{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(1):
        folder = Path(stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
    raise AssertionError


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Batches this small are slower on several threads, which would take the actors' cores too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def refuse_while_learning(agent: ApeX) -> None:
    """Raise a RuntimeError where another thread lets the agent learn: between two steps nothing of it is whole."""
    if agent.learning not in (None, threading.get_ident()):
        raise RuntimeError("this agent is learning in another thread: wait until its learn() has returned")


@contextmanager
def one_at_a_time(agent: ApeX) -> Iterator[None]:
    """What is done in here is the agent's only learning.

    Raises:
        RuntimeError: another thread lets it learn.
    """
    refuse_while_learning(agent)
    agent.learning = threading.get_ident()
    try:
        yield
    finally:
        agent.learning = None


def _progress_bar(agent: ApeX, total: int) -> tqdm:
    """Over all steps of the agent's life, so that a resumed run's goes on where it was."""
    return tqdm(total=total, initial=min(agent.num_timesteps, total), unit="step", desc=agent.source.name)


def run(agent: ApeX, total_timesteps: int, progress_bar: bool, watch: bool = False) -> None:
    """Train the agent for so many further env steps.

    On SIGINT, SIGTERM and SIGHUP, and when an actor fails for good, the state is saved to the run folder before the
    exception goes on; the actors are stopped in every case.
    """
    leave_if_unguarded()
    total = agent.planned_timesteps + total_timesteps
    with claimed(agent.run_folder), one_torch_thread(), Interruption() as interruption, ExitStack() as stack:
        (agent.run_folder / "config.json").write_text(json.dumps(agent.description(), indent=2) + "\n")
        bar = _progress_bar(agent, total) if progress_bar else None
        try:
            watcher = None
            if watch:
                watcher = stack.enter_context(closing(Watcher(agent.source, agent.learner.averaged_weights())))
            agent.cluster.start()
            reporter = Reporter(agent.run_folder, agent.verbose, bar)
            session = Run(agent, total, reporter, interruption, watcher)
            try:
                session.play()
                session.finish()
            except BaseException as error:
                agent.planned_timesteps = agent.num_timesteps
                agent.take_best()
                kept = f"saved as {agent.run_folder / 'last.apex'}" if session.checkpoint() else "nothing was saved"
                how = "stopped by user" if isinstance(error, KeyboardInterrupt) else "stopped"
                reporter.say(f"learning was {how}; {kept}")
                raise
            finally:
                session.close()
        finally:
            agent.cluster.stop()
