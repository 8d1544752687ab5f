"""The frame of every training: its clock, validations, the best so far, checkpoints."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from . import machine, methods
from .learner import Diverged, Learner
from .refusal import Refused
from .runs import Point, Progress, Run, frozen
from .trials import VALIDATION, errors

VALIDATIONS = 25

# Seconds between checkpoints at least, and the largest share of the time that they may take.
CHECKPOINT_EVERY = 60.0
CHECKPOINT_SHARE = 0.05


@dataclass(frozen=True)
class Budget:
    """What a training has: it ends when both are spent."""

    seconds: float
    """Of training alone: without validations and checkpoints."""
    agent_steps: int = 0

    def spent(self, seconds: float, agent_steps: int) -> float:
        """How much of it, from 0 to 1."""
        shares = [seconds / self.seconds]
        if self.agent_steps:
            shares.append(agent_steps / self.agent_steps)
        return min(1.0, *shares)


def place(runs: Path, method: str, problem: str, seed: int) -> Path:
    """The folder of a run."""
    return runs / f"{problem}-{method}-{seed}"


def train(
    method: str,
    problem: str,
    budget: Budget,
    *,
    seed: int = 1,
    runs: Path,
    resume: bool = False,
    threads: int = 1,
) -> Run:
    """Train until the budget is spent, or until it is interrupted."""
    run = Run(place(runs, method, problem, seed))
    asked = {"method": method, "problem": problem, "seed": seed}
    begin = methods.beginning(method, problem)
    run.lock()
    try:
        if not run.exists():
            if resume:
                raise Refused(f"there is no run in {run.folder} to resume")
        elif not resume:
            raise Refused(f"there is a run in {run.folder} already: --resume goes on with it")
        else:
            run.check(asked)
        torch.set_num_threads(threads)
        learner = begin(problem, seed)
        if not resume:
            run.begin(asked | {"hyper_parameters": asdict(learner.settings)} | machine.described(threads))
        Training(run, learner, problem, budget, threads).go_on()
    finally:
        run.unlock()
    return run


class Training:
    """One training while it runs."""

    def __init__(self, run: Run, learner: Learner, problem: str, budget: Budget, threads: int):
        """At its beginning, or where its last checkpoint is."""
        self.run, self.learner, self.problem = run, learner, problem
        self.budget, self.threads = budget, threads
        self.seconds = 0.0
        self.curve: list[Point] = []
        self.error = math.inf
        self.best: tuple[str, bytes] | None = None
        self.diverged: str | None = None
        kept = run.kept()
        if kept is not None:
            learner.restore(kept["learner"])
            self.seconds, self.error, self.best = kept["seconds"], kept["error"], kept["best"]
            self.curve = [Point(*point) for point in kept["curve"]]
        # What came after that checkpoint is lost, and is learnt again.
        run.write_curve(self.curve)
        if self.best:
            run.write_best(*self.best)
        self.kept_at = time.monotonic()
        self.keeping_took = 0.0

    @property
    def spent(self) -> float:
        """How much of the budget, from 0 to 1."""
        return self.budget.spent(self.seconds, self.learner.agent_steps)

    def go_on(self) -> None:
        """Learn until the budget is spent, or somebody interrupts."""
        bar = tqdm(
            total=100.0,
            desc=self.run.folder.name,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {postfix}",
            mininterval=0.5 if sys.stderr.isatty() else 30,
        )
        with interruptible() as interrupted, bar:
            self.keep()
            while self.spent < 1 and not interrupted and self.diverged is None:
                self.step()
                bar.n = 100 * self.spent
                bar.set_postfix_str(self.words(), refresh=False)
                bar.update(0)
                if time.monotonic() - self.kept_at > max(CHECKPOINT_EVERY, self.keeping_took / CHECKPOINT_SHARE):
                    self.keep()
            # What diverged is not worth going on with: the checkpoint before it stays.
            if self.diverged is None:
                self.keep()
            else:
                self.run.write_progress(self.progress())
            bar.set_postfix_str(self.words())
        if self.diverged:
            print(f"{self.run.folder}: {self.diverged}; the best before that is kept", file=sys.stderr)
        elif self.spent < 1:
            print(f"{self.run.folder}: interrupted; --resume goes on with it", file=sys.stderr)

    def step(self) -> None:
        """Learn a little, and see what it is worth where a validation is due."""
        learner, before = self.learner, self.spent
        learner.progress = before
        begun = time.perf_counter()
        try:
            learner.advance()
        except Diverged as diverged:
            self.diverged = str(diverged)
            return
        finally:
            self.seconds += time.perf_counter() - begun
        if math.floor(VALIDATIONS * self.spent) > math.floor(VALIDATIONS * before):
            self.validate()

    def validate(self) -> None:
        """A point of the curve."""
        controller = self.learner.controller()
        error = float(errors(self.problem, controller, VALIDATION, self.threads).mean())
        self.curve.append(Point(self.seconds, self.learner.agent_steps, self.learner.updates, error))
        self.run.write_curve(self.curve)
        # The first counts whatever it is, so that there is something to score.
        if self.best is None or error < self.error:
            self.error, self.best = error, frozen(controller)
            self.run.write_best(*self.best)

    def progress(self) -> Progress:
        """For others to read."""
        return Progress(
            seconds=self.seconds,
            agent_steps=self.learner.agent_steps,
            updates=self.learner.updates,
            error=self.error if self.best else None,
            complete=self.spent >= 1,
            diverged=self.diverged,
        )

    def keep(self) -> None:
        """A checkpoint."""
        begun = time.monotonic()
        state = {
            "learner": self.learner.state(),
            "seconds": self.seconds,
            "error": self.error,
            "best": self.best,
            "curve": [tuple(vars(point).values()) for point in self.curve],
        }
        self.run.keep(state, self.progress())
        self.kept_at = time.monotonic()
        self.keeping_took = self.kept_at - begun

    def words(self) -> str:
        """How far it is."""
        last = f", error {self.curve[-1].error:.3g} (best {self.error:.3g})" if self.curve else ""
        return f"{self.seconds:.0f} s, {self.learner.agent_steps / 1e6:.2f} million agent-steps{last}"


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Signals that ask for an end are noted, for whoever looks: what is under way comes to its end first."""
    noted: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: noted.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
