"""Swarms as Stable-Baselines3 wants environments: one controller leads all agents of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fieldswarm.envs import _Whole
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from .sight import Sight

Numbers, Rewards = NDArray[np.float32], NDArray[np.float64]

# Episodes end in so many groups, so that what is learnt from at a time is of all parts of an episode.
GROUPS = 10


class Swarms(VecEnv):
    """Swarms side by side, stepped in parallel.

    It stands on what `FieldVectorEnv` stands on: Gymnasium's vectors begin an episode in the step after the last,
    Stable-Baselines3 wants its first sight with the last step.
    """

    def __init__(self, problem: str, envs: int, reward: Callable[[Rewards], Rewards], seed: int):
        """So many swarms; `reward` makes one of mean squared errors."""
        self.whole = _Whole(problem, envs, reward="error")
        self.episodes = self.whole.episodes
        self.sight = Sight(self.episodes.problem)
        self.reward = reward
        self.orders = (envs, *self.whole.action_space.shape)
        sees = spaces.Box(-np.inf, np.inf, (self.sight.size,), np.float32)
        does = spaces.Box(-1.0, 1.0, (int(np.prod(self.orders[1:])),), np.float32)
        super().__init__(envs, sees, does)
        self.chance(seed)

    def chance(self, seed: int | Sequence[int]) -> None:
        """Draw other episodes from now on."""
        seeds = np.random.SeedSequence(seed).generate_state(self.num_envs)
        self.episodes.seed([int(seed) for seed in seeds])

    def _look(self) -> Numbers:
        return self.sight.rows(self.whole.observe())

    def reset(self) -> Numbers:
        """Begin anew everywhere; the first episodes are cut short, one group's more than the other's."""
        self.episodes.reset(range(self.num_envs))
        group = 1 + np.arange(self.num_envs) % GROUPS
        self.cut = self.episodes.now + group * self.episodes.steps // GROUPS
        return self._look()

    def step_async(self, actions: Numbers) -> None:
        """Take note of actions."""
        self.actions = np.ascontiguousarray(actions, np.float32).reshape(self.orders)

    def step_wait(self) -> tuple[Numbers, Numbers, NDArray[np.bool_], list[dict[str, Any]]]:
        """One control interval."""
        episodes = self.episodes
        rewards, failures = episodes.step(self.actions)
        dones = episodes.ended() | (episodes.now == self.cut)
        dones[list(failures)] = True
        seen = self._look()
        infos: list[dict[str, Any]] = [{}] * self.num_envs
        over = [int(env) for env in np.flatnonzero(dones)]
        if over:
            for env in over:
                infos[env] = {
                    "terminal_observation": seen[env].copy(),
                    "TimeLimit.truncated": env not in failures,
                }
            episodes.reset(over)
            seen = self._look()
        return seen, self.reward(-rewards).astype(np.float32), dones, infos

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of the environments, which have nothing of their own."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing to set."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Nothing to call."""
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None is."""
        return [False] * self.num_envs
