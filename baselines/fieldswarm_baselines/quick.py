"""That every method trains, resumes, is scored and becomes a blob, in seconds that teach it next to nothing."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fieldswarm

from . import methods
from .runs import BLOB, Run
from .training import place

PROBLEM = "heat-1d"
EPISODES = 2
# More than a training of a few seconds needs to load its libraries and to end.
PATIENCE = 300


def quick(seconds: float, names: list[str] | None = None, threads: int = 1) -> int:
    """Go through it all on one problem; 1 where anything fails."""
    begun = time.monotonic()
    names = names or [name for name in methods.PLACES if name not in methods.ABLATIONS]
    with tempfile.TemporaryDirectory() as folder:
        # One after the other on one core each, as many as there are cores.
        with ThreadPoolExecutor(threads) as pool:
            of_each = list(pool.map(_trial(Path(folder), seconds), names))
    failures = [failure for failures in of_each for failure in failures]
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    print(f"{len(names)} methods in {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


def _trial(runs: Path, seconds: float):
    """What is tried of each method: its failures."""

    def tried(method: str) -> list[str]:
        run = Run(place(runs, method, PROBLEM, 1))
        training = ["train", method, PROBLEM, "--out", str(runs), "--threads", "1", "--budget"]
        steps = [
            [*training, f"{seconds * 0.75}s"],
            [*training, f"{seconds}s", "--resume"],
            ["score", str(run.folder), "--csv", str(runs / "scores.csv"), "--episodes", str(EPISODES)],
        ]
        for step in steps:
            done = _call(step)
            if done.returncode:
                return [f"{' '.join(step)}\n{done.stdout}{done.stderr}"]
        last = run.curve()[-1]
        print(f"{method}: {last.agent_steps} agent-steps, {last.updates} updates, error {run.progress.error:.3g}")
        blob = runs / f"{method}.policy"
        exported = _call(["export", str(run.folder), "-o", str(blob)])
        if not (run.folder / BLOB).exists():
            refused = exported.returncode == 2 and "centralised" in exported.stderr
            return [] if refused else [f"the export of {method} is not refused: {exported.stderr}"]
        if exported.returncode:
            return [f"{method} is no blob: {exported.stderr}"]
        policy = fieldswarm.Policy.load(blob)
        error = fieldswarm.run(PROBLEM, policy, seed=1).score["headline"]
        fine = policy.self_test() and math.isfinite(error)
        return [] if fine else [f"{method}: agent-core does not run its blob: error {error}"]

    return tried


def _call(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """One command, in a process of its own as a user has it."""
    command = [sys.executable, "-m", __package__, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
