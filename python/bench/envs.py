"""How fast environments are: `python python/bench/envs.py`.

Agent-steps per second of heat-1d through `SwarmVectorEnv` with zero actions, against the same environment written
in NumPy (all environments in one array, no loop over them or over agents; and one by one, as `SyncVectorEnv` would
step them) and against the engine where nobody looks.
They take turns, and the best of their rounds counts. Before that the two environments are held against each
other under random actions.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import fieldswarm
from fieldswarm.envs import SwarmVectorEnv


class NumpySwarm:
    """heat-1d in NumPy: Crank-Nicolson on 100 points, Gaussian actuators, patches of 8 cells and one position.

    The system of a step is solved by its dense inverse, which for a hundred points is the fastest that NumPy has.
    """

    def __init__(self, initial, target, positions):
        """Environments with these fields (envs, points) and agents there (envs, agents)."""
        self.z, self.target, self.x = initial.astype(float), target.astype(float), positions.astype(float)
        points, r, self.dt = self.z.shape[1], 2.0, 1e-3
        self.grid = np.linspace(0, 1, points)
        inner = points - 2
        off = np.eye(inner, k=1) + np.eye(inner, k=-1)
        implicit = (1 + r) * np.eye(inner) - r / 2 * off
        explicit = (1 - r) * np.eye(inner) + r / 2 * off
        inverse = np.linalg.inv(implicit)
        self.go_on = (inverse @ explicit).T.copy()
        self.push = (self.dt * inverse).T.copy()
        self.offsets = np.arange(-4, 4)
        self.rows = np.arange(len(self.z))[:, None, None]
        self.limits = np.array([40.0, 2.0])
        self.taken = 0
        self.last = 0.0

    def observe(self):
        """Errors of the windows, sin and cos of positions: (envs, agents, 10)."""
        cell = (self.x.astype(np.float32) * np.float32(99)).astype(int).clip(0, 99)
        cells = (cell[..., None] + self.offsets).clip(0, 99)
        errors = (self.z - self.target)[self.rows, cells]
        angle = np.pi * self.x[..., None]
        return np.concatenate([errors, np.sin(angle), np.cos(angle)], axis=2).astype(np.float32)

    def step(self, actions):
        """One control interval under actions in -1..1; what `SwarmVectorEnv` returns, as arrays."""
        orders = np.clip(actions, -1, 1) * self.limits
        bumps = np.exp(-((self.grid - self.x[..., None]) ** 2) / (2 * 0.1**2))
        force = np.einsum("ea,eax->ex", orders[..., 0], bumps)
        self.z[:, 1:-1] = self.z[:, 1:-1] @ self.go_on + force[:, 1:-1] @ self.push
        self.z[:, [0, -1]] = 0
        self.x = np.clip(self.x + self.dt * orders[..., 1], 0, 1)
        error = ((self.z - self.target) ** 2).mean(axis=1)
        reward, self.last = self.last - error, error
        self.taken += 1
        ended = np.full(len(self.z), self.taken >= 300)
        return self.observe(), reward, np.zeros(len(self.z), bool), ended


def both(envs: int, agents: int, seed: int) -> tuple[SwarmVectorEnv, NumpySwarm]:
    """The two environments at the start of the same episodes."""
    env = SwarmVectorEnv("heat-1d", envs, agents=agents)
    env.reset(seed=seed)
    batch = env._patches.episodes.batch
    return env, NumpySwarm(batch.fields(), batch.targets(), batch.position[..., 0])


def hold_together(envs: int, agents: int) -> float:
    """The largest difference of what agents see under the same random actions."""
    env, numpy = both(envs, agents, 1)
    rng = np.random.default_rng(1)
    largest = 0.0
    for _ in range(50):
        actions = rng.uniform(-1, 1, (envs, agents, 2)).astype(np.float32)
        _, rewards, _, _, _ = env.step_all(actions)
        seen, expected, _, _ = numpy.step(actions)
        # Whoever stands on the border of a cell may see one cell further along.
        near = np.isclose(env.observations, seen, atol=1e-4).all(axis=2)
        if near.mean() < 0.99:
            raise SystemExit(f"the environments differ: only {near.mean():.1%} of the agents see the same")
        largest = max(largest, float(np.abs(env.observations - seen)[near].max()))
        np.testing.assert_allclose(rewards["agent_0"], expected, atol=1e-4)
    return largest


def main() -> None:
    """Measure, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--steps", type=int, default=299, help="of a round; an episode has 300")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    shape = (options.envs, options.agents)
    print(f"the same within {hold_together(*shape):.1e} over 50 steps of random actions")
    names = ["SwarmVectorEnv", "NumPy, one array", "NumPy, one by one", "the engine"]
    best = dict.fromkeys(names, np.inf)
    actions = {f"agent_{k}": np.zeros((options.envs, 2), np.float32) for k in range(options.agents)}
    nothing = np.zeros((*shape, 2), np.float32)
    for seed in range(options.rounds):
        env, numpy = both(*shape, seed)
        start = time.perf_counter()
        for _ in range(options.steps):
            env.step(actions)
        ours = time.perf_counter()
        for _ in range(options.steps):
            numpy.step(nothing)
        theirs = time.perf_counter()
        single = [
            NumpySwarm(numpy.z[k : k + 1], numpy.target[k : k + 1], numpy.x[k : k + 1])
            for k in range(options.envs)
        ]
        alone = time.perf_counter()
        for _ in range(options.steps // 10):
            for one in single:
                one.step(nothing[:1])
        alone = 10 * (time.perf_counter() - alone)
        env.reset(seed=seed)
        engine = env._patches.episodes.batch.bench(options.steps)
        for name, seconds in zip(best, (ours - start, theirs - ours, alone, engine), strict=True):
            best[name] = min(best[name], seconds)
    steps = options.envs * options.agents * options.steps
    rate = {name: steps / seconds for name, seconds in best.items()}
    ours = rate["SwarmVectorEnv"]
    print(f"fieldswarm {fieldswarm.__version__}, heat-1d, {options.envs} environments of {options.agents} agents")
    for name, value in rate.items():
        print(f"{name:<20}{value / 1e6:8.2f} M agent-steps/s{ours / value:8.2f} x")
    print(f"\nSwarmVectorEnv / NumPy in one array {ours / rate['NumPy, one array']:.2f} (bar: 5)")
    print(f"SwarmVectorEnv / NumPy one by one {ours / rate['NumPy, one by one']:.2f} (bar: 5)")
    print(f"SwarmVectorEnv / engine {ours / rate['the engine']:.2f} (bar: 0.5)")


if __name__ == "__main__":
    main()
