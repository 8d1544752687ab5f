"""What all environments share: episodes that are drawn, rewards, and who is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .simulation import as_problem

# What an environment can be told to draw for every episode: a value, a range, or a function of a generator.
Draw = Any


def drawn(what: Draw, rng: np.random.Generator, whole: bool) -> Any:
    """A value of a range (low, high), both included, or what a function makes of a generator, or the value."""
    if callable(what):
        return what(rng)
    if isinstance(what, tuple):
        low, high = what
        return int(rng.integers(low, high + 1)) if whole else float(rng.uniform(low, high))
    return what


def most(agents: Draw, at_most: int | None) -> int:
    """The largest swarm that can be drawn."""
    if callable(agents):
        if at_most is None:
            raise ValueError("give most_agents, the largest swarm that the function of agents can draw")
        return at_most
    return max(agents) if isinstance(agents, tuple) else agents


class Episodes:
    """Environments of one problem, side by side, with what reinforcement learning asks for.

    Args:
        problem: a `Problem`, the name of a published one, or the path of a file that describes one.
        envs: how many environments.
        agents: of every episode: a number, a range (low, high) or a function of a `numpy` generator.
        most_agents: the largest number that such a function gives.
        faults: of every episode: texts as on the command line, or a function of a generator that gives them.
        noise: standard deviation of sensors: a number, a range or a function.
        steps: of an episode; the problem's if not given.
        window: cells that agents see along an axis, of each field that they see; as published if not given.
        frequencies: of the position in what agents see.
        reward: "score": the rewards of an episode add up to minus its score, the problem's headline figure;
            "error": minus the mean squared error after every step.
        set: where episodes are taken from: "fresh", "table" or the path of a `.npy` file.
    """

    def __init__(
        self,
        problem: Any,
        envs: int,
        *,
        agents: Draw = None,
        most_agents: int | None = None,
        faults: Iterable[str] | Callable[[np.random.Generator], Iterable[str]] = (),
        noise: Draw = 0.0,
        steps: int | None = None,
        window: int | None = None,
        frequencies: Sequence[float] = (),
        reward: str = "score",
        set: str = "fresh",
    ):
        if reward not in ("score", "error"):
            raise ValueError(f"reward must be 'score' or 'error', not {reward!r}")
        self.problem = as_problem(problem)
        self.sizes = self.problem.agents if agents is None else agents
        self.faults = faults if callable(faults) else list(faults)
        self.noise = noise
        self.reward = reward
        self.set = set
        self.most_agents = most(self.sizes, most_agents)
        self.batch = _native.Batch(
            self.problem,
            envs,
            self.most_agents,
            steps=steps,
            window=window,
            frequencies=[float(f) for f in frequencies],
            patches=False,
        )
        self.steps = self.batch.steps
        self.seen, self.heard = self.batch.seen, self.batch.heard
        self.error, self.recorded_now = self.batch.error, self.batch.recorded
        self.final = self.problem.headline == "final_error"
        self.scored_from = self.problem.scored_from
        self.alive = np.zeros((envs, self.most_agents), bool)
        self.all_alive = False
        self.over = np.zeros(envs, bool)
        self.any_over = False
        # Steps of all environments so far, and how many those were when each began.
        self.now, self.begun = 0, np.zeros(envs, np.int64)
        # Steps until an environment can have had all of its own.
        self.left = 0
        self.recorded = np.zeros(envs)
        self.rngs: list[np.random.Generator | None] = [None] * envs

    def seed(self, seeds: Sequence[int | None]) -> None:
        """Begin the chance of every environment anew; those with None go on, or begin anywhere."""
        for env, seed in enumerate(seeds):
            if seed is not None or self.rngs[env] is None:
                self.rngs[env] = np.random.default_rng(seed)

    def reset(self, envs: Sequence[int]) -> None:
        """Begin an episode in each of these environments."""
        seeds, agents, faults = [], [], []
        for env in envs:
            rng = self.rngs[env]
            assert rng is not None, "seeded before the first reset"
            seeds.append(int(rng.integers(1 << 63)))
            agents.append(int(drawn(self.sizes, rng, True)))
            given = self.faults(rng) if callable(self.faults) else self.faults
            noise = float(drawn(self.noise, rng, False))
            faults.append(list(given) + [f"noise,std={noise}"] * (noise > 0))
        # Stored episodes are numbered; which one is drawn too.
        indices = [0] * len(seeds) if self.set == "fresh" else [seed % self.stored for seed in seeds]
        self.batch.reset(list(envs), seeds, indices, agents, faults, set=self.set)
        for env, count in zip(envs, agents, strict=True):
            self.alive[env] = np.arange(self.most_agents) < count
            self.begun[env] = self.now
            self.recorded[env] = 0.0
            self.over[env] = False
        self.any_over = bool(self.over.any())
        self.left = self.steps - (self.now - int(self.begun.min()))
        self.look_after_the_dead()

    @property
    def stored(self) -> int:
        """Episodes of a stored set."""
        return self.problem.stored_episodes(self.set)

    def step(self, actions: NDArray[np.float32]) -> tuple[NDArray[np.float64], dict[int, str]]:
        """One control interval under actions in -1..1; the rewards, and why environments failed.

        Agents that fall silent are dead from then on, and rest should they come back.
        """
        if not self.all_alive:
            actions = np.where(self.alive[..., None], actions, np.float32(0))
        failures = dict(self.batch.step(actions, shares=True))
        self.now += 1
        self.left -= 1
        if not (self.all_alive and self.batch.all_heard):
            self.alive &= self.heard
            self.look_after_the_dead()
        return self.rewards(failures), failures

    def look_after_the_dead(self) -> None:
        """The dead see nothing."""
        self.all_alive = bool(self.alive.all())
        if not self.all_alive:
            self.seen[~self.alive] = 0

    def advance(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """A step of all environments, but for those that were over: they begin anew instead."""
        begun = np.flatnonzero(self.over) if self.any_over else ()
        rewards, failures = self.step(actions)
        terminated = np.zeros(len(rewards), bool)
        if self.left > 0 and not failures and not self.any_over:
            # Nobody begins and nobody ends, as in nearly every step.
            return rewards, terminated, terminated.copy(), {}
        truncated = self.ended()
        infos: dict[str, Any] = {}
        if failures:
            infos["failure"] = failures
            terminated[list(failures)] = True
            truncated &= ~terminated
        if len(begun):
            self.reset([int(env) for env in begun])
            rewards[begun] = 0.0
            terminated[begun] = truncated[begun] = False
        np.logical_or(terminated, truncated, out=self.over)
        self.any_over = np.count_nonzero(self.over) > 0
        return rewards, terminated, truncated, infos

    def rewards(self, failures: dict[int, str]) -> NDArray[np.float64]:
        """Of the last step."""
        if self.reward == "error":
            return -self.error
        recorded = self.recorded_now
        if self.final:
            # The first counts from nothing, so that they add up to the last error.
            rewards = self.recorded - recorded
            np.copyto(self.recorded, recorded)
            return rewards
        scored = max(self.steps - self.scored_from, 1)
        taken = self.now - self.begun
        rewards = np.where(taken > self.scored_from, -recorded / scored, 0.0)
        for env in failures:
            # As if it stayed as it was.
            rewards[env] *= self.steps - taken[env] + 1
        return rewards

    def ended(self) -> NDArray[np.bool_]:
        """Which environments have had their steps."""
        return self.now - self.begun >= self.steps
