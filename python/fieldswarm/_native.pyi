from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

VERSION: str

_Path = TypeVar("_Path", str, PathLike[str])

class Training:
    @property
    def problem(self) -> str: ...
    @property
    def folder(self) -> PathLike[str]: ...
    @property
    def parameters(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def losses(self) -> NDArray[np.float64]: ...
    @property
    def validations(self) -> NDArray[np.float64]: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def best(self) -> float | None: ...
    @property
    def running(self) -> bool: ...
    @property
    def outcome(self) -> Literal["finished", "stale", "stopped", "failed"] | None: ...
    def wait(self, timeout: float | None = None, progress: bool = True) -> Training: ...
    def stop(self, timeout: float = 60.0) -> Training: ...
    def blob(self, which: Literal["best", "latest"] = "best") -> bytes: ...
    def export(self, path: _Path, which: Literal["best", "latest"] = "best") -> _Path: ...

def train(
    problem: Problem | str | PathLike[str],
    *,
    preset: Literal["quick", "full", "published"] = "quick",
    steps: int | None = None,
    batch: int | None = None,
    seed: int | None = None,
    agents: int | str | Iterable[int | str] | None = None,
    out: str | PathLike[str] = "runs",
    resume: bool = False,
    overwrite: bool = False,
    lr: float | None = None,
    window: int | None = None,
    memory: int | None = None,
    rests: bool = False,
    physics: Mapping[str, float | tuple[float, float]] | str | None = None,
    weight: Mapping[str, float] | str | None = None,
    scatter: float | None = None,
    deadly_episodes: float | None = None,
    deaths: float | None = None,
    deaths_by: float | None = None,
    sensor_noise: float | None = None,
    actuator_noise: float | None = None,
    delay: int | None = None,
    patience: int | None = None,
    retreats: int | None = None,
    from_policy: str | PathLike[str] | None = None,
    backend: str | None = None,
    threads: int = 0,
) -> Training: ...
