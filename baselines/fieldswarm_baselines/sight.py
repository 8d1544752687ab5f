"""What a controller of everything reads: one row of numbers for the whole field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fieldswarm
import numpy as np
from numpy.typing import NDArray

# What fields are divided by, the paper's: of ks "observation states are scaled by a normalization factor of 5.0",
# of turbulence by 50. The others are of order one as they are.
SCALES = {"ks-1d": 5.0, "ks-2d": 5.0, "turbulence-2d": 50.0}


class Sight:
    """Field, target and positions side by side, as the paper has it: "current PDE state, target state, and all
    agent coordinates".

    Fields that are to be stilled have no target, and agents that stay where they are no place worth telling; who
    is still alive is not told either.
    """

    def __init__(self, problem: fieldswarm.Problem):
        """Of a problem with its published number of agents."""
        self.scale = np.float32(SCALES.get(problem.name, 1.0))
        self.scaled = [name for name in ("field", "target") if name == "field" or problem.tracking]
        self.mobile = problem.velocity_max > 0
        cells = problem.fields * int(np.prod(problem.shape))
        self.size = len(self.scaled) * cells + self.mobile * problem.agents * problem.axes

    def rows(self, seen: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """A row for each environment, of observations as `FieldVectorEnv` has them."""
        envs = len(seen["field"])
        parts = [seen[name].reshape(envs, -1) / self.scale for name in self.scaled]
        if self.mobile:
            parts.append(seen["position"].reshape(envs, -1))
        return np.concatenate(parts, axis=1, dtype=np.float32)
