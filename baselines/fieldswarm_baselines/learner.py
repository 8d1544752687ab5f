"""What every method of reinforcement learning is to the rest: something that learns a little at a time."""

from __future__ import annotations

from typing import Any, Protocol

import fieldswarm
import numpy as np
from numpy.typing import NDArray


class Whole(Protocol):
    """A controller of everything: the whole field in, all actions out. `torch.save` can write it."""

    bytes: int
    """Of its weights."""

    def __call__(self, seen: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Actions from -1 to 1, (envs, agents, numbers), for observations of a `FieldVectorEnv`."""
        ...


class Diverged(Exception):
    """Learning has ended in something that is no number; what was kept before still holds."""


class Learner(Protocol):
    """One method on one problem in the middle of its training.

    Made by its module's `begin(problem, seed)`; everything random in it follows from the seed.
    """

    settings: Any
    """The hyper-parameters, for the record: a dataclass of what JSON takes."""
    progress: float
    """How much of the training is over, from 0 to 1: set from outside, for rates that decay."""
    agent_steps: int
    """Steps of environments times agents, so far."""
    updates: int
    """Steps of optimisers, so far."""

    def advance(self) -> None:
        """Collect a little and learn from it: at most a few seconds. Raises `Diverged`."""
        ...

    def controller(self) -> fieldswarm.Policy | Whole:
        """What it has learnt so far, without exploration: a policy where agents decide for themselves."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as `torch.save` takes it."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        ...
