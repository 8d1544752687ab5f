"""Agents that see their patches, many swarms of them as tensors, for methods whose agents decide for
themselves.

A step of all environments is one call of the engine. Agents see what the shipped policy of the problem sees of
the error: as wide a window, the coarse picture of the whole where it has one, and sin and cos of their
position. Critics, which exist in training alone, see the whole field besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fieldswarm
import numpy as np
import torch
from fieldswarm.envs import SwarmVectorEnv
from numpy.typing import NDArray
from torch import Tensor

FREQUENCIES = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Sight:
    """What an agent sees of a problem, and in what unit."""

    window: int
    """Cells along an axis, as many as the shipped policy sees."""
    scale: float = 1.0
    """What errors are divided by; the paper's 5 and 50 where fields are large."""
    wide: tuple[int, int] | None = None
    """Cells of a coarse picture of the whole domain."""


SIGHTS = {
    "heat-1d": Sight(20),
    "fkpp-1d": Sight(40),
    "heat-2d": Sight(16),
    "heat-2d-obstacles": Sight(16),
    "ks-1d": Sight(64, scale=5.0),
    "ks-2d": Sight(16, scale=5.0),
    "turbulence-2d": Sight(20, scale=50.0),
    "density-2d": Sight(12, wide=(8, 10)),
}


@dataclass(frozen=True)
class Pay:
    """What agents are paid for.

    The reward of agent i is -(share · near_i + (1 - share) · whole): `near` is the mean squared error of its
    window after the step, `whole` that of the field, both in units of the sight's scale. The paper's code takes
    the error at the agent's cell for `near`; a window is what the agent can act on. With `root` both are root
    mean squares, whose slope does not vanish with the error.
    """

    share: float
    root: bool


def blocks(plane: NDArray[np.float32], rows: int, columns: int) -> NDArray[np.float32]:
    """Means of as many blocks of the last two axes."""
    *lead, height, width = plane.shape
    return plane.reshape(*lead, rows, height // rows, columns, width // columns).mean((-3, -1))


class Swarms:
    """Environments side by side; ended ones begin anew when they are told to.

    Their first episodes end at different times, so that a batch has all parts of episodes in it.
    """

    def __init__(self, problem: str, envs: int, seed: int, pay: Pay):
        """Begin an episode in every environment."""
        self.sight, self.pay = SIGHTS[problem], pay
        self.problem = fieldswarm.Problem(problem)
        self.env = SwarmVectorEnv(problem, envs, window=self.sight.window, frequencies=FREQUENCIES, reward="error")
        self.cells = self.sight.window**self.problem.axes
        self.env.reset(seed=seed)
        horizon = self.problem.horizon
        self.short = np.asarray([horizon * (k + 1) // envs for k in range(envs)])
        self.taken = 0
        self.size = (envs, len(self.env.possible_agents))
        self.actions = self.env.single_action_space("agent_0").shape[0]
        self.observation = self._observe()
        self.whole = self._whole()

    @property
    def features(self) -> int:
        """Numbers that an agent sees."""
        return self.observation.shape[-1]

    def _observe(self) -> Tensor:
        """What agents see: errors of the window, of the coarse picture, waves of their position."""
        seen = self.env.observations
        errors, waves = seen[..., : self.cells] / np.float32(self.sight.scale), seen[..., self.cells :]
        parts = [errors, waves]
        if self.sight.wide:
            coarse = blocks(self._errors(self.env.state()), *self.sight.wide) / np.float32(self.sight.scale)
            parts.insert(1, np.repeat(coarse.reshape(len(coarse), 1, -1), self.size[1], 1))
        return torch.from_numpy(np.concatenate(parts, -1))

    @staticmethod
    def _errors(state: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        return state["field"] - state["target"] if "target" in state else state["field"]

    def _whole(self) -> Tensor:
        """What critics see: field, target, positions. Planes are halved along both axes: kernels of actuators
        are wider than two cells.
        """
        state = self.env.state()
        envs, planes = self.size[0], []
        for name in ("field", "target"):
            if name in state:
                plane = state[name] / np.float32(self.sight.scale)
                if self.problem.axes == 2:
                    plane = blocks(plane, plane.shape[-2] // 2, plane.shape[-1] // 2)
                planes.append(plane.reshape(envs, -1))
        planes.append(state["position"].reshape(envs, -1))
        return torch.from_numpy(np.concatenate(planes, 1))

    def step(self, actions: Tensor) -> tuple[Tensor, NDArray[np.bool_], NDArray[np.bool_]]:
        """One control interval under actions in -1..1: rewards of agents, who failed, whose time is over."""
        _, _, gone, cut, _ = self.env.step_all(actions.numpy())
        self.taken += 1
        first = self.env.possible_agents[0]
        terminated, truncated = gone[first], cut[first] | (self.short == self.taken)
        self.observation, self.whole = self._observe(), self._whole()
        return self._rewards(), terminated, truncated & ~terminated

    def _rewards(self) -> Tensor:
        # What has blown up is bad enough at thirty times the unit.
        near = self.observation[..., : self.cells].square().mean(-1)
        whole = torch.from_numpy(self.env.errors / self.sight.scale**2).float()[:, None].expand_as(near)
        if self.pay.root:
            near, whole = near.sqrt(), whole.sqrt()
        bad = self.pay.share * near + (1 - self.pay.share) * whole
        return -torch.nan_to_num(bad, nan=30.0, posinf=30.0).clamp(max=30.0)

    def begin_anew(self, ended: NDArray[np.bool_]) -> None:
        """New episodes where one has ended."""
        if ended.any():
            self.env.reset(options={"reset_mask": ended})
            self.observation, self.whole = self._observe(), self._whole()
