"""Published solvers as plants: their equations are the problems', and so are the scores."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fieldswarm.plant import Episode, ProblemFacts


@pytest.fixture(scope="module")
def exponax_ks():
    pytest.importorskip("exponax", reason="exponax is not installed: pip install exponax")
    from fieldswarm.plants import exponax_ks

    return exponax_ks


@pytest.fixture(scope="module")
def py_pde_plate():
    pytest.importorskip("pde", reason="py-pde is not installed: pip install py-pde")
    from fieldswarm.plants import py_pde_plate

    return py_pde_plate


def agent_sim() -> str:
    """The simulator's program: ``AGENT_SIM``, on the path, or built in this clone."""
    built = Path(__file__).parents[2] / "target" / "release" / "agent-sim"
    for found in (os.environ.get("AGENT_SIM"), shutil.which("agent-sim"), str(built)):
        if found and Path(found).exists():
            return found
    pytest.fail("no agent-sim: cargo build --release -p agent-sim, or set AGENT_SIM to the program")


def evaluation(folder: Path, problem: str, episodes: int, *more: str) -> dict:
    command = [agent_sim(), "eval", problem, "--set", "table", "--episodes", str(episodes), "--json"]
    done = subprocess.run([*command, *more], cwd=folder, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_the_solver_of_the_documentation_runs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "plants.md").read_text()
    (tmp_path / "my_solver.py").write_text(text.split("```python\n")[1].split("```")[0])
    mine = "--plant", f"'{sys.executable}' my_solver.py"
    here = evaluation(tmp_path, "heat-2d", 1, "--variant", "true-spacing")
    there = evaluation(tmp_path, "heat-2d", 1, "--variant", "true-spacing", *mine)
    assert there["plant"].endswith("(Plate)")
    ratio = there["time_mean"]["mean"] / here["time_mean"]["mean"]
    assert abs(ratio - 1) < 0.02, ratio


def plant(module: str) -> tuple[str, str]:
    return "--plant", f"'{sys.executable}' -m fieldswarm.plants.{module}"


def facts(name: str, grid, high, edge: str, **coefficients: float) -> ProblemFacts:
    """A problem as the adapters get it."""
    axes = len(grid)
    return ProblemFacts(
        name=name,
        variant=None,
        file=None,
        summary="",
        grid=tuple(grid),
        low=(0.0,) * axes,
        high=(high,) * axes,
        edges=(edge,) * axes,
        axes=("x", "y")[:axes],
        fields=("z",),
        drives="source",
        components=1,
        interval=0.05,
        substeps=1,
        coefficients=coefficients,
        volumes=np.ones(grid),
    )


def test_exponax_lets_faint_waves_grow_and_forces_push(exponax_ks):
    """A mode k too faint to carry itself grows by exp((k^2 - k^4) t); the mean follows the force."""
    length, points, dt = 22.0, 128, 0.05
    k = 2 * math.pi * 3 / length
    x = np.arange(points) * length / points
    wave = 1e-9 * np.cos(k * x)
    ks = exponax_ks.ExponaxKs()
    problem = facts("ks-1d", [points], length, "periodic", length=length)
    begun = ks.reset(Episode(problem, wave, dt, 0))
    np.testing.assert_array_equal(begun, wave)
    for _ in range(20):
        field = np.asarray(ks.step(np.zeros(points), dt))
    np.testing.assert_allclose(field, wave * math.exp((k**2 - k**4) * 20 * dt), atol=1e-14)
    ks.reset(Episode(problem, 0 * x, dt, 0))
    np.testing.assert_allclose(np.asarray(ks.step(np.full(points, 0.3), dt)), 0.3 * dt, atol=1e-15)


def test_py_pde_lets_waves_decay_and_holds_the_edges(py_pde_plate):
    """A product of sines decays by the eigenvalue of the second differences."""
    points, nu, dt = 40, 0.2, 1e-3
    x = np.linspace(0, 1, points)
    wave = np.outer(np.sin(math.pi * x), np.sin(2 * math.pi * x))
    h = 1 / (points - 1)
    rate = sum(4 * nu / h**2 * math.sin(k * math.pi * h / 2) ** 2 for k in (1, 2))
    plate = py_pde_plate.PyPdePlate()
    problem = facts("heat-2d", [points, points], 1.0, "wall", nu=nu)
    plate.reset(Episode(problem, wave, dt, 0))
    for _ in range(50):
        field = plate.step(np.zeros((points, points)), dt)
    np.testing.assert_allclose(field, wave * math.exp(-rate * 50 * dt), atol=1e-8)
    field = plate.step(np.ones((points, points)), dt)
    assert not field[0].any() and not field[:, -1].any()


@pytest.mark.parametrize(("adapter", "make"), [("exponax_ks", "ExponaxKs"), ("py_pde_plate", "PyPdePlate")])
def test_other_problems_are_refused_by_name(adapter, make, request):
    module = request.getfixturevalue(adapter)
    episode = Episode(facts("fkpp-1d", [5], 1.0, "wall"), np.zeros(5), 0.1, 0)
    with pytest.raises(ValueError, match="not fkpp-1d"):
        getattr(module, make)().reset(episode)


def test_the_policy_scores_the_same_on_exponax(exponax_ks, tmp_path):
    here = evaluation(tmp_path, "ks-1d", 4)
    there = evaluation(tmp_path, "ks-1d", 4, *plant("exponax_ks"))
    assert "exponax" in there["plant"] and "plant" not in here
    ratio = there["time_mean"]["mean"] / here["time_mean"]["mean"]
    assert abs(ratio - 1) < 0.02, ratio


def test_the_policy_scores_the_same_on_py_pde(py_pde_plate, tmp_path):
    here = evaluation(tmp_path, "heat-2d", 2)
    there = evaluation(tmp_path, "heat-2d", 2, *plant("py_pde_plate"))
    assert "py-pde" in there["plant"]
    for figure in ("time_mean", "final"):
        ratio = there[figure]["mean"] / here[figure]["mean"]
        assert abs(ratio - 1) < 0.02, (figure, ratio)
