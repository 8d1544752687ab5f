"""Swarms of tiny controllers that steer physical fields.

Simulate a problem, run a policy with the bits of a microcontroller, train one, or put a solver of
your own in the field's place.
"""

from ._native import VERSION as __version__
from ._native import Agents, Policy, Problem, Recording, Training, problems, train
from .simulation import Simulation, run

__all__ = [
    "Agents",
    "Policy",
    "Problem",
    "Recording",
    "Simulation",
    "Training",
    "__version__",
    "problems",
    "run",
    "train",
]
