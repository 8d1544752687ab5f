"""What a training runs on, for the record."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("torch", "numpy", "stable_baselines3", "benchmarl", "torchrl", "tensordict", "gymnasium", "pettingzoo")


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def words() -> str:
    """The machine in words."""
    return f"{_processor()}, {cores()} cores, {platform.system()}"


def described(threads: int) -> dict[str, Any]:
    """Versions, machine and threads."""
    import fieldswarm

    versions = {"python": platform.python_version(), "fieldswarm": fieldswarm.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"versions": versions, "machine": words(), "threads": threads}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
