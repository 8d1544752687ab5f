"""What runs came to: a table of whole episodes, and blobs for agents."""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import fieldswarm

from . import machine
from .refusal import Refused
from .runs import Run
from .trials import CONDITIONS, decision_us, errors, weights_bytes


@dataclass(frozen=True)
class Score:
    """A line of the table."""

    problem: str
    method: str
    seed: int
    condition: str
    agents: int
    episodes: int
    error: float
    """The mean of the problem's headline figure."""
    deviation: float
    """Its standard deviation over episodes, as `agent-sim eval` has it."""
    agent_steps: int
    seconds: float
    updates: int
    decision_us: float
    bytes: int
    machine: str
    """That the decision was timed on."""
    complete: bool


def score(folder: Path, table: Path, episodes: int | None = None, threads: int = 1) -> None:
    """Score a run under all conditions that its controller can run in, and add the lines to a table."""
    run = Run.there(folder)
    asked, progress, controller = run.settings, run.progress, run.best()
    problem = asked["problem"]
    published = fieldswarm.Problem(problem).agents
    decision = decision_us(problem, controller)
    for condition, trial in CONDITIONS.items():
        if trial.times > 1 and not isinstance(controller, fieldswarm.Policy):
            continue
        if episodes is not None:
            trial = replace(trial, episodes=episodes)
        found = errors(problem, controller, trial, threads)
        line = Score(
            problem=problem,
            method=asked["method"],
            seed=asked["seed"],
            condition=condition,
            agents=published * trial.times,
            episodes=len(found),
            error=float(found.mean()),
            deviation=float(found.std()),
            agent_steps=progress.agent_steps,
            seconds=round(progress.seconds, 1),
            updates=progress.updates,
            decision_us=round(decision, 2),
            bytes=weights_bytes(controller),
            machine=machine.words(),
            complete=progress.complete,
        )
        add(table, line)
        print(f"{folder} {condition}: {line.error:.4g} ± {line.deviation:.2g} over {line.episodes} episodes")
    if not progress.complete:
        print(f"warning: {folder} has not spent its budget", file=sys.stderr)


def add(table: Path, line: Score) -> None:
    """A line at the end of a table, which is begun if it is not there."""
    begun = table.exists() and table.stat().st_size > 0
    with open(table, "a", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        if not begun:
            lines.writerow(field.name for field in fields(Score))
        values = asdict(line) | {"complete": str(line.complete).lower()}
        lines.writerow(values.values())


def export(folder: Path, to: Path) -> None:
    """Write the best of a run as a policy that agents can carry."""
    run = Run.there(folder)
    controller = run.best()
    if not isinstance(controller, fieldswarm.Policy):
        raise Refused(
            f"{run.settings['method']} is centralised: its network reads the whole field and moves all agents at "
            "once, so there is nothing that one agent could carry; export mappo or matd3"
        )
    controller.save(to)
    print(f"{to}: {len(controller.bytes)} bytes")
