"""The Kuramoto-Sivashinsky equation of ``ks-1d`` on exponax's own ETDRK4::

    agent-sim eval ks-1d --plant 'python -m fieldswarm.plants.exponax_ks'

Where the problem's own solver takes one step of first order in a control interval, this takes several of
fourth order; that both give a policy the same score shows that the score is the equation's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldswarm.plant import Array, Episode, Plant, command_line

try:
    import exponax
    import jax
except ImportError as error:
    raise ImportError("this plant is exponax's; pip install exponax") from error


class ExponaxKs(Plant):
    """``u_t + u u_x + u_xx + u_xxxx = f`` on a circle.

    The forcing goes in by Strang's splitting: half of it before a step of ETDRK4 and half after it, which
    is of second order in the step, ``dt / substeps``.
    """

    def __init__(self, substeps: int = 5) -> None:
        """Take so many steps of ETDRK4 in a step of the simulator's."""
        jax.config.update("jax_enable_x64", True)
        self.substeps = substeps
        self._made: dict[tuple[float, int, float], Callable[[Any, Any], Any]] = {}
        self._points = 0
        self._length = 0.0

    @property
    def name(self) -> str:
        """Package and version."""
        return f"exponax {exponax.__version__}, ETDRK4, {self.substeps} steps an interval"

    def reset(self, episode: Episode) -> Array:
        """Begin with the initial field, on the simulator's grid, which is exponax's too."""
        problem = episode.problem
        if problem.name != "ks-1d":
            raise ValueError(f"this plant solves ks-1d, not {problem.name}")
        self._points, self._length = problem.grid[0], problem.high[0] - problem.low[0]
        # Compiled now, not in the first step.
        self._stepper(episode.dt)(episode.initial, 0.0 * episode.initial)
        self._field = jax.numpy.asarray(episode.initial)
        return episode.initial

    def step(self, forcing: Array, dt: float) -> Array:
        """Step on."""
        self._field = self._stepper(dt)(self._field, forcing)
        return self._field

    def _stepper(self, dt: float) -> Callable[[Any, Any], Any]:
        """A compiled function of field and forcing, made once for each length of step."""
        key = (self._length, self._points, dt)
        if key not in self._made:
            short = dt / self.substeps
            etdrk = exponax.stepper.KuramotoSivashinskyConservative(1, self._length, self._points, short, order=4)

            def substep(_: int, both: tuple[Any, Any]) -> tuple[Any, Any]:
                field, forcing = both
                field = etdrk(field + 0.5 * short * forcing) + 0.5 * short * forcing
                return field, forcing

            def advance(field: Any, forcing: Any) -> Any:
                # exponax has an axis for channels first.
                both = (field[None], forcing[None])
                return jax.lax.fori_loop(0, self.substeps, substep, both)[0][0]

            self._made[key] = jax.jit(advance)
        return self._made[key]


if __name__ == "__main__":
    command_line(ExponaxKs, "ks-1d on exponax's ETDRK4, for agent-sim --plant")
