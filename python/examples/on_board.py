"""A policy on an emulated Cortex-M4F, by the simulator's program: used by the tutorial and sb3_to_blob.py.

The program is found as AGENT_SIM or on the PATH, the board's image as IMAGE or where
`cargo xtask firmware build` puts it. Without them, or without QEMU, there is no board.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np

BUILT = pathlib.Path(__file__).parents[2] / "target/firmware/images/mps2-an386.elf"


def parts() -> tuple[pathlib.Path, pathlib.Path]:
    """The simulator's program and the board's image; a FileNotFoundError says what is missing."""
    if shutil.which("qemu-system-arm") is None:
        raise FileNotFoundError("no emulator: install QEMU, on Debian qemu-system-arm")
    program = os.environ.get("AGENT_SIM") or shutil.which("agent-sim")
    if program is None:
        raise FileNotFoundError("no simulator: cargo install --path agent-sim, or set AGENT_SIM")
    image = pathlib.Path(os.environ.get("IMAGE", BUILT))
    if not image.is_file():
        raise FileNotFoundError(f"no image {image}: cargo xtask firmware build, or set IMAGE")
    return pathlib.Path(program), image


def run_on_boards(problem: str, policy: Any, out: Any, *, boards: int = 1, **options: Any) -> np.ndarray:
    """The errors of a run in which some of the agents are boards, one after every step.

    Args:
        problem: its name.
        policy: path of the policy.
        out: folder for the report.
        boards: how many agents are boards; the others are simulated.
        options: of `agent-sim run`, such as agents=8, seed=7, steps=100.
    """
    program, image = parts()
    command = [program, "run", problem, "--policy", policy, "--out", out, "--image", image]
    command += ["--link", f"qemu={boards}"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr.strip())
    return np.loadtxt(pathlib.Path(out) / "steps.csv", delimiter=",", skiprows=1, usecols=2)
