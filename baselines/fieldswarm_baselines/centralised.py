"""What PPO and TD3 have in common: one network that sees everything and moves all agents."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import fieldswarm
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from torch import nn

from .learner import Diverged
from .sb3_swarms import Swarms
from .settings import PPO, TD3
from .sight import Sight

# "Multi-Layer Perceptron (MLP) with two hidden layers of 256 units and ReLU activations". The paper's last hidden
# layer is divided by its length + 1 besides, which Stable-Baselines3's is not.
BACKBONE = {"net_arch": [256, 256], "activation_fn": nn.ReLU}

DISCOUNT = 0.99


class Network:
    """The actor of a centralised method, alone."""

    def __init__(self, problem: str, actor: nn.Module):
        """A copy of an actor, from rows of `Sight` to actions of all agents, as it is now."""
        self.sight = Sight(fieldswarm.Problem(problem))
        self.actor = copy.deepcopy(actor).requires_grad_(False).eval()

    @property
    def bytes(self) -> int:
        """Of its weights."""
        return sum(weights.numel() * weights.element_size() for weights in self.actor.parameters())

    def __call__(self, seen: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Actions from -1 to 1, (envs, agents, numbers)."""
        rows = torch.from_numpy(self.sight.rows(seen))
        with torch.inference_mode():
            actions = self.actor(rows).clamp(-1, 1).numpy()
        envs, agents = seen["position"].shape[:2]
        return actions.reshape(envs, agents, -1)


class Centralised:
    """A `Learner` around an algorithm of Stable-Baselines3, which learns a slice at a time."""

    def __init__(self, problem: str, seed: int, model: BaseAlgorithm, settings: PPO | TD3, slice_steps: int):
        """`slice_steps`: of each environment, in an advance."""
        self.problem = problem
        self.seed = seed
        self.model = model
        self.slice = slice_steps * settings.envs
        self.settings = settings

    @property
    def swarms(self) -> Swarms:
        """What it learns from."""
        return self.model.env

    @property
    def progress(self) -> float:
        """How much of the training is over."""
        return self.model.progress

    @progress.setter
    def progress(self, progress: float) -> None:
        self.model.progress = progress

    @property
    def agent_steps(self) -> int:
        """Steps of environments times agents."""
        return self.model.num_timesteps * self.swarms.episodes.problem.agents

    @property
    def updates(self) -> int:
        """Steps of the critic's optimiser, which are never fewer than the actor's."""
        steps = [of["step"] for of in self.optimisers()["critic"].state.values() if "step" in of]
        return int(steps[-1]) if steps else 0

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        """By what they are for."""
        raise NotImplementedError

    def actor(self) -> nn.Module:
        """From rows of what is seen to actions."""
        raise NotImplementedError

    def advance(self) -> None:
        """Collect a slice and learn from it."""
        policy = self.model.policy
        try:
            self.model.learn(self.slice, log_interval=None, reset_num_timesteps=False)
        except ValueError as error:
            # A normal distribution around what is no number is refused.
            if finite(policy):
                raise
            raise Diverged(str(error)) from error
        if not finite(policy):
            raise Diverged("weights are no numbers any more")

    def controller(self) -> Network:
        """What it has learnt, without exploration."""
        return Network(self.problem, self.actor())

    def state(self) -> dict[str, Any]:
        """All but the episodes that are under way: those begin anew."""
        return {
            "policy": self.model.policy.state_dict(),
            "optimisers": {name: of.state_dict() for name, of in self.optimisers().items()},
            "steps": self.model.num_timesteps,
            "rounds": self.model._n_updates,
            "chance": {"torch": torch.get_rng_state(), "numpy": np.random.get_state()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there, with episodes that were not there before."""
        self.model.policy.load_state_dict(state["policy"])
        for name, optimiser in self.optimisers().items():
            optimiser.load_state_dict(state["optimisers"][name])
        self.model.num_timesteps, self.model._n_updates = state["steps"], state["rounds"]
        self.model._last_obs = None
        self.swarms.chance((self.seed, self.model.num_timesteps))
        torch.set_rng_state(state["chance"]["torch"])
        np.random.set_state(state["chance"]["numpy"])


def finite(module: nn.Module) -> bool:
    """Whether all its weights are numbers."""
    return all(bool(torch.isfinite(weights).all()) for weights in module.parameters())
