"""From Stable-Baselines3 to a Cortex-M: PPO with one network for all agents, written as a blob.

    python sb3_to_blob.py                    # some minutes
    python sb3_to_blob.py --timesteps 4096   # that it works, not that it is good

docs/from-sb3-to-cortex-m.md walks through it.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import gymnasium
import numpy as np
import on_board
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import fieldswarm
from fieldswarm.build import deeponet
from fieldswarm.envs import SwarmVectorEnv

PROBLEM = "heat-1d"
FREQUENCIES = (1.0,)
WINDOW = 20


class SharedSwarm(VecEnv):
    """Swarms as SB3 wants environments: every agent is one, so that all share the network.

    The network's output goes through tanh on its way to the actuator, as an agent's does.
    """

    def __init__(self, problem: str, envs: int, agents: int):
        """Begin `envs` swarms of `agents` agents."""
        self.swarms = SwarmVectorEnv(
            problem,
            envs,
            agents=agents,
            window=WINDOW,
            frequencies=FREQUENCIES,
            reward="error",
        )
        self.size = (envs, agents)
        one = self.swarms.possible_agents[0]
        seen = self.swarms.single_observation_space(one)
        done = self.swarms.single_action_space(one)
        # Beyond 4 tanh is 1 to 3 digits: nothing is lost by cutting there.
        acts = gymnasium.spaces.Box(-4.0, 4.0, done.shape, np.float32)
        super().__init__(envs * agents, seen, acts)
        self.actions = np.zeros((*self.size, *done.shape), np.float32)

    def _seen(self) -> np.ndarray:
        return self.swarms.observations.reshape(self.num_envs, -1).copy()

    def reset(self) -> np.ndarray:
        """Begin anew everywhere."""
        self.swarms.reset(seed=self._seeds[0])
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self._seen()

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of actions."""
        self.actions = np.tanh(actions).reshape(self.actions.shape)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One control interval; episodes all have the same length and end together."""
        _, rewards, gone, cut, _ = self.swarms.step_all(self.actions)
        name = self.swarms.possible_agents[0]
        over = gone[name] | cut[name]
        reward = np.repeat(rewards[name].astype(np.float32), self.size[1])
        dones = np.repeat(over, self.size[1])
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        seen = self._seen()
        if over.any():
            for k in np.flatnonzero(dones):
                infos[k] = {"terminal_observation": seen[k], "TimeLimit.truncated": True}
            # An environment that has ended begins anew with the next step.
            self.swarms.step_all(np.zeros_like(self.actions))
            seen = self._seen()
        return seen, reward, dones, infos

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of the environments, which have nothing else."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing to set."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kw: Any) -> list[Any]:
        """Nothing to call."""
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None is."""
        return [False] * self.num_envs


def to_policy(model: PPO) -> fieldswarm.Policy:
    """The actor of PPO as a policy.

    Its first layer reads errors and waves side by side, so it is the head's first: errors come to it
    as they are, without a branch, and the trunk hands its waves on.
    """
    hidden = [layer for layer in model.policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
    layers = [*hidden, model.policy.action_net]
    lengths = [layer.out_features for layer in hidden]
    waves = 2 * fieldswarm.Problem(PROBLEM).axes * len(FREQUENCIES)
    design = deeponet(
        PROBLEM,
        window=WINDOW,
        channels=["error"],
        branch=[],
        trunk=[waves],
        head=lengths,
        frequencies=FREQUENCIES,
    )
    design.header["network"]["trunk"][0]["activation"] = "identity"
    arrays = {"trunk.0.weight": np.eye(waves), "trunk.0.bias": np.zeros(waves)}
    for k, layer in enumerate(layers):
        # PyTorch has weights [outputs, inputs].
        arrays[f"head.{k}.weight"] = layer.weight.detach().cpu().numpy().T
        arrays[f"head.{k}.bias"] = layer.bias.detach().cpu().numpy()
    return design.policy(arrays)


def compare(model: PPO, policy: fieldswarm.Policy) -> float:
    """The largest difference between SB3 and the policy on an episode, as a share of the limit."""
    simulation = fieldswarm.Simulation(PROBLEM, seed=1, window=WINDOW)
    limits = np.array([simulation.problem.force_max, simulation.problem.velocity_max])
    worst = 0.0
    rng = np.random.default_rng(1)
    for _ in range(20):
        seen = simulation.observation
        low, high = simulation.problem.low[0], simulation.problem.high[0]
        place = (seen["position"] - low) / (high - low)
        waves = [wave(np.pi * f * place) for wave in (np.sin, np.cos) for f in FREQUENCIES]
        errors = (seen["field"] - seen["target"])[:, 1:-1]
        mean, _ = model.predict(np.hstack([errors, *waves]).astype(np.float32), deterministic=True)
        ours = policy.act(seen)
        worst = max(worst, float(np.abs(np.tanh(mean) - ours / limits).max()))
        simulation.step(rng.uniform(-1, 1, ours.shape) * limits)
    return worst


def score(policy: Any, episodes: int, **options: Any) -> float:
    """Mean final error on fresh episodes."""
    runs = [fieldswarm.run(PROBLEM, policy, seed=k, **options) for k in range(episodes)]
    return float(np.mean([run.score["headline"] for run in runs]))


def main() -> None:
    """Train, write, compare, judge, run on a board."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timesteps", type=int, default=500_000, help="of all agents together")
    parser.add_argument("--envs", type=int, default=8, help="swarms side by side")
    parser.add_argument("--episodes", type=int, default=20, help="to judge by")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/sb3"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    agents = fieldswarm.Problem(PROBLEM).agents
    swarms = SharedSwarm(PROBLEM, arguments.envs, agents)
    steps = min(300, max(8, arguments.timesteps // swarms.num_envs))
    model = PPO("MlpPolicy", swarms, n_steps=steps, batch_size=8 * steps, seed=0, device="cpu")
    model.learn(arguments.timesteps)

    policy = to_policy(model)
    path = arguments.out / "ppo.policy"
    policy.save(path)
    print(f"{path}: {len(policy.bytes)} bytes")
    difference = compare(model, policy)
    print(f"largest difference to SB3: {difference:.1e} of the limit")
    assert difference < 1e-5, "the blob is not SB3's network"

    for name, run in {
        "PPO": {"policy": policy},
        "shipped": {"policy": None},
        "proportional": {"policy": None, "controller": "proportional"},
        "nobody": {"policy": None, "controller": "none"},
    }.items():
        print(f"{name:>12}: mean final error {score(episodes=arguments.episodes, **run):.2e}")

    try:
        errors = on_board.run_on_boards(PROBLEM, path, arguments.out / "board", seed=7, steps=50)
    except FileNotFoundError as missing:
        print(f"not run on a board: {missing}")
    else:
        host = fieldswarm.run(PROBLEM, policy, seed=7, steps=50).errors
        assert np.array_equal(errors, host), "the board gives other bits"
        print("one agent on an emulated Cortex-M4F: the same bits")


if __name__ == "__main__":
    main()
