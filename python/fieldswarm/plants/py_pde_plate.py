"""The heat plate of ``heat-2d`` on py-pde's Runge-Kutta solver::

agent-sim eval heat-2d --plant 'python -m fieldswarm.plants.py_pde_plate'
"""

from __future__ import annotations

import math

import numpy as np

from fieldswarm.plant import Array, Episode, Plant, command_line

try:
    import pde
except ImportError as error:
    raise ImportError("this plant is py-pde's; pip install py-pde") from error

#: The grid of the paper, on which its scheme takes 1/N for the spacing of N points, ends included.
PUBLISHED = (32, 32)


class HeatedPlate(pde.PDEBase):
    """``z_t = nu (z_xx + z_yy) + f``, zero on the edges, where grid points stand.

    py-pde's points are the middles of cells: those of a grid half a spacing wider than the plate are the
    simulator's. The outermost ones are held at zero, so that what lies beyond them is no matter.
    """

    def __init__(self, grid: pde.CartesianGrid, diffusivity: float) -> None:
        """Put a plate on a grid."""
        super().__init__()
        self.inside = np.zeros(grid.shape)
        self.inside[1:-1, 1:-1] = 1.0
        self.forcing = np.zeros(grid.shape)
        self.diffusivity = diffusivity
        # scipy's stencils are there at once; numba's would be compiled for half a minute.
        self.curvature = grid.make_operator("laplace", bc={"derivative": 0}, backend="scipy")

    def evolution_rate(self, state: pde.ScalarField, t: float = 0) -> pde.ScalarField:
        """What py-pde integrates."""
        rate = self.diffusivity * self.curvature(state.data) + self.forcing
        return pde.ScalarField(state.grid, self.inside * rate)


class PyPdePlate(Plant):
    """The plate, by the classical Runge-Kutta method of py-pde."""

    @property
    def name(self) -> str:
        """Package and version."""
        return f"py-pde {pde.__version__}, Runge-Kutta"

    def reset(self, episode: Episode) -> Array:
        """Put the plate to its start."""
        problem = episode.problem
        if problem.name not in ("heat-2d", "heat-2d-obstacles"):
            raise ValueError(f"this plant solves heat-2d and heat-2d-obstacles, not {problem.name}")
        bounds = [
            (low - 0.5 * h, high + 0.5 * h)
            for low, high, h in zip(problem.low, problem.high, problem.spacing, strict=True)
        ]
        grid = pde.CartesianGrid(bounds, problem.grid)
        diffusivity = problem.coefficients["nu"]
        if problem.grid == PUBLISHED and problem.variant != "true-spacing":
            diffusivity *= (PUBLISHED[0] / (PUBLISHED[0] - 1)) ** 2
        self.plate = HeatedPlate(grid, diffusivity)
        self.state = pde.ScalarField(grid, episode.initial)
        self.solver = pde.RungeKuttaSolver(self.plate, backend="numpy")
        self.steppers = {}
        # The fastest decay on this grid, of which a step is to see a fraction.
        self.fastest = sum(4.0 * diffusivity / h**2 for h in problem.spacing)
        return episode.initial

    def step(self, forcing: Array, dt: float) -> Array:
        """Step on."""
        self.plate.forcing = forcing
        self.state.data *= self.plate.inside
        if dt not in self.steppers:
            substeps = max(2, math.ceil(dt * self.fastest))
            self.steppers[dt] = self.solver.make_stepper(self.state, dt=dt / substeps)
        # py-pde counts steps from the times.
        self.steppers[dt](self.state, 0.0, dt)
        return self.state.data


if __name__ == "__main__":
    command_line(PyPdePlate, "the plate of heat-2d on py-pde, for agent-sim --plant")
