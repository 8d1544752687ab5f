"""A training on disk: what it was asked for, its learning curve, the best it had, and all that is needed to go on.

run.json         what was asked for, with hyper-parameters, versions and the machine
curve.csv        seconds, agent_steps, updates, error: a line for each validation
best.policy      the best by validation, as a blob; best.pt where the controller is a centralised network
progress.json    how far the checkpoint is
checkpoint.pt    all that is needed to go on
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import fieldswarm
import torch

from .refusal import Refused
from .trials import Controller

BLOB, NETWORK = "best.policy", "best.pt"
# What a run is: another of these is another run.
IDENTITY = ("method", "problem", "seed")


@dataclass(frozen=True)
class Point:
    """Of a learning curve."""

    seconds: float
    """Of training alone."""
    agent_steps: int
    updates: int
    error: float


@dataclass
class Progress:
    """How far a training is."""

    seconds: float = 0.0
    agent_steps: int = 0
    updates: int = 0
    error: float | None = None
    """The best so far."""
    complete: bool = False
    """Whether the budget was spent."""
    diverged: str | None = None
    """How it came to an early end."""


class Run:
    """The folder of a training."""

    def __init__(self, folder: Path):
        """There or not."""
        self.folder = folder

    @classmethod
    def there(cls, folder: Path) -> Run:
        """One that must be there."""
        run = cls(Path(folder))
        if not run.exists():
            raise Refused(f"there is no run in {folder}")
        return run

    def exists(self) -> bool:
        """Whether a training was begun."""
        return (self.folder / "run.json").exists()

    def lock(self) -> None:
        """Keep others from training here until this process ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"another training runs in {self.folder}") from None

    def unlock(self) -> None:
        """Let others train here."""
        self._lock.close()

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for."""
        return json.loads((self.folder / "run.json").read_text())

    def begin(self, settings: dict[str, Any]) -> None:
        """Say what is asked for."""
        self._replace("run.json", (json.dumps(settings, indent=2) + "\n").encode())

    def check(self, asked: dict[str, Any]) -> None:
        """Refuse to go on with something else."""
        there = self.settings
        for name in IDENTITY:
            if there[name] != asked[name]:
                raise Refused(
                    f"{self.folder} has a run with {name} {there[name]}: it cannot be resumed with {asked[name]}"
                )

    @property
    def progress(self) -> Progress:
        """As of the last checkpoint."""
        path = self.folder / "progress.json"
        return Progress(**json.loads(path.read_text())) if path.exists() else Progress()

    def keep(self, state: dict[str, Any], progress: Progress) -> None:
        """Write a checkpoint; the one before is there until this one is."""
        with Replacement(self.folder / "checkpoint.pt") as file:
            torch.save(state, file)
        self.write_progress(progress)

    def write_progress(self, progress: Progress) -> None:
        """Say how far it is."""
        self._replace("progress.json", (json.dumps(vars(progress), indent=2) + "\n").encode())

    def kept(self) -> dict[str, Any] | None:
        """The last checkpoint, if there is one."""
        path = self.folder / "checkpoint.pt"
        return torch.load(path, weights_only=False) if path.exists() else None

    def write_best(self, name: str, controller: bytes) -> None:
        """Put it in place of the best before."""
        self._replace(name, controller)

    def best(self) -> Controller:
        """The best by validation."""
        if (self.folder / BLOB).exists():
            return fieldswarm.Policy.load(self.folder / BLOB)
        if (self.folder / NETWORK).exists():
            return torch.load(self.folder / NETWORK, weights_only=False)
        raise Refused(f"{self.folder} has nothing to score yet: its training has not come to a validation")

    def write_curve(self, points: list[Point]) -> None:
        """Write the learning curve anew."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(field.name for field in fields(Point))
        lines.writerows(astuple(point) for point in points)
        self._replace("curve.csv", text.getvalue().encode())

    def curve(self) -> list[Point]:
        """The learning curve."""
        path = self.folder / "curve.csv"
        if not path.exists():
            return []
        with open(path, newline="") as file:
            return [
                Point(float(row["seconds"]), int(row["agent_steps"]), int(row["updates"]), float(row["error"]))
                for row in csv.DictReader(file)
            ]

    def _replace(self, name: str, content: bytes) -> None:
        with Replacement(self.folder / name) as file:
            file.write(content)


class Replacement:
    """A file that takes another's place once it is whole, whatever happens before."""

    def __init__(self, path: Path):
        """Of the file at this path."""
        self.path, self.beside = path, path.with_name(path.name + ".new")

    def __enter__(self) -> io.BufferedWriter:
        """To be written."""
        self.file = open(self.beside, "wb")
        return self.file

    def __exit__(self, kind: Any, *rest: Any) -> None:
        """To be put in place, unless something went wrong."""
        if kind is None:
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()
        if kind is None:
            os.replace(self.beside, self.path)


def frozen(controller: Controller) -> tuple[str, bytes]:
    """A controller as a file: its name and content."""
    if isinstance(controller, fieldswarm.Policy):
        return BLOB, controller.bytes
    content = io.BytesIO()
    torch.save(controller, content)
    return NETWORK, content.getvalue()
