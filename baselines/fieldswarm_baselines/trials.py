"""What controllers are judged by: whole episodes of a problem, and the figure that the problem is judged by."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import fieldswarm
import numpy as np
import torch
from fieldswarm.envs import _Whole
from numpy.typing import NDArray

from .learner import Whole
from .refusal import Refused

Controller = fieldswarm.Policy | Whole

# Fields of so many episodes are in memory side by side.
SIDE_BY_SIDE = 50


@dataclass(frozen=True)
class Trial:
    """Episodes as `agent-sim eval --set … --seed … --episodes … --fault …` has them."""

    set: str = "fresh"
    seed: int = 0
    episodes: int | None = None
    """All of the set unless given."""
    faults: tuple[str, ...] = ()
    times: int = 1
    """Agents, in multiples of the published number."""


# Trainings keep what is best here. The published test episodes are in none of it.
VALIDATION = Trial(seed=11, episodes=10)

# What the scores are of.
CONDITIONS = {
    "table": Trial(set="table"),
    "fresh": Trial(seed=1, episodes=50),
    "crash": Trial(set="table", faults=("crash,fraction=0.3,at=0.5",)),
    "fourfold": Trial(set="table", times=4),
}


def errors(problem: str, controller: Controller, trial: Trial, threads: int = 1) -> NDArray[np.float64]:
    """The headline figure of each episode; infinite where the field blew up."""
    described = fieldswarm.Problem(problem)
    episodes = described.stored_episodes(trial.set) if trial.episodes is None else trial.episodes
    agents = described.agents * trial.times
    if isinstance(controller, fieldswarm.Policy):
        with ThreadPoolExecutor(threads) as pool:
            alone = [pool.submit(_alone, described, controller, trial, agents, k) for k in range(episodes)]
            return np.array([outcome.result() for outcome in alone])
    if trial.times != 1:
        raise Refused(f"a centralised network has as many outputs as {described.agents} agents need, and no more")
    firsts = range(0, episodes, SIDE_BY_SIDE)
    shares = [range(first, min(first + SIDE_BY_SIDE, episodes)) for first in firsts]
    return np.concatenate([_together(described, controller, trial, share) for share in shares])


def _alone(
    problem: fieldswarm.Problem, policy: fieldswarm.Policy, trial: Trial, agents: int, episode: int
) -> float:
    """Of one episode, whose agents decide for themselves."""
    try:
        recording = fieldswarm.run(
            problem, policy, agents=agents, seed=trial.seed, episode=episode, set=trial.set, faults=trial.faults
        )
    except RuntimeError:
        return math.inf
    return recording.score["headline"]


def _together(problem: fieldswarm.Problem, controller: Whole, trial: Trial, indices: range) -> NDArray[np.float64]:
    """Of several episodes side by side, each of which the controller leads as a whole."""
    whole = _Whole(problem, len(indices))
    batch, envs = whole.episodes.batch, range(len(indices))
    faults = [list(trial.faults)] * len(envs)
    batch.reset(
        list(envs), [trial.seed] * len(envs), list(indices), [problem.agents] * len(envs), faults, set=trial.set
    )
    for _ in range(batch.steps):
        batch.step(np.ascontiguousarray(controller(whole.observe()), np.float32), shares=True)
    return np.array([math.inf if batch.failure(env) else batch.score(env)["headline"] for env in envs])


def decision_us(problem: str, controller: Controller, seconds: float = 1.0) -> float:
    """Microseconds that a decision takes on one thread of this machine.

    One agent's, where agents decide for themselves; of all agents together where the controller leads them.
    """
    if isinstance(controller, fieldswarm.Policy):
        simulation = fieldswarm.Simulation(problem, policy=controller)
        agents, seen = controller.agents(len(simulation.positions)), simulation.observation
        return _microseconds(lambda: agents.act(seen), seconds) / len(agents)
    whole = _Whole(problem, 1)
    whole.episodes.seed([0])
    whole.episodes.reset([0])
    seen, threads = whole.observe(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _microseconds(lambda: controller(seen), seconds)
    finally:
        torch.set_num_threads(threads)


def _microseconds(work, seconds: float) -> float:
    """The median time of a call, over so many seconds."""
    taken, ends = [], time.perf_counter() + seconds
    while not taken or time.perf_counter() < ends:
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken)) * 1e6


def weights_bytes(controller: Controller) -> int:
    """Bytes of the weights: of a whole blob, where there is one."""
    return len(controller.bytes) if isinstance(controller, fieldswarm.Policy) else controller.bytes
