"""TD3 of Stable-Baselines3 on the whole swarm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import TD3
from stable_baselines3.common.noise import NormalActionNoise, VectorizedActionNoise
from torch import nn

from . import convolutional, settings
from .centralised import BACKBONE, DISCOUNT, Centralised
from .sb3_swarms import Swarms

# Steps of each environment in an advance, each with a step of the optimisers.
SLICE = 10

# The replay buffer's arrays.
KEPT = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class PacedTD3(TD3):
    """TD3 whose actor and critic have rates of their own, which follow the training's budget."""

    rates: tuple[settings.Rate, settings.Rate]
    progress = 0.0

    def _update_learning_rate(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        for optimizer, rate in zip(optimizers, self.rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate.at(self.progress)


class Exploration(VectorizedActionNoise):
    """Normal noise for all environments in one draw, not in one for each."""

    def __init__(self, deviation: float, envs: int, numbers: int):
        """Of so many actions' numbers."""
        super().__init__(NormalActionNoise(np.zeros(numbers), np.full(numbers, deviation)), envs)
        self.shape, self.deviation = (envs, numbers), np.float32(deviation)

    def __call__(self) -> NDArray[np.float32]:
        """For a step of all environments."""
        return np.random.standard_normal(self.shape).astype(np.float32) * self.deviation

    def reset(self, indices: Iterable[int] | None = None) -> None:
        """Nothing is remembered from draw to draw."""


class CentralisedTD3(Centralised):
    """Some steps of all environments at a time, each with its own of the optimisers."""

    model: PacedTD3

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        """One for each network."""
        return {"actor": self.model.actor.optimizer, "critic": self.model.critic.optimizer}

    def actor(self) -> nn.Module:
        """The one that TD3 averages over its updates.

        The actor itself is pushed about by each of them: what it gets wrong evens out in training, but adds up
        over an episode in which it stays as it is.
        """
        return self.model.actor_target.mu

    def state(self) -> dict[str, Any]:
        """With the replay buffer, as far as it is filled."""
        buffer = self.model.replay_buffer
        filled = buffer.buffer_size if buffer.full else buffer.pos
        kept = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in KEPT}
        return super().state() | {"buffer": kept, "position": (buffer.pos, buffer.full)}

    def restore(self, state: dict[str, Any]) -> None:
        """With the replay buffer."""
        super().restore(state)
        buffer = self.model.replay_buffer
        for name, kept in state["buffer"].items():
            getattr(buffer, name)[: len(kept)] = kept.numpy()
        buffer.pos, buffer.full = state["position"]


def begin(problem: str, seed: int) -> CentralisedTD3:
    """TD3 on a problem."""
    given = settings.td3(problem)
    field = problem == convolutional.PROBLEM
    swarms = Swarms(problem, given.envs, given.reward, seed)
    model = PacedTD3(
        convolutional.ActorCritics if field else "MlpPolicy",
        swarms,
        buffer_size=given.buffer,
        learning_starts=given.warmup * given.envs,
        batch_size=given.batch,
        tau=given.tau,
        gamma=DISCOUNT,
        train_freq=1,
        gradient_steps=given.repeats,
        action_noise=Exploration(given.exploration, given.envs, swarms.action_space.shape[0]),
        policy_delay=given.delay,
        target_policy_noise=given.smoothing,
        # Fused is faster here, and else the same.
        policy_kwargs={"optimizer_kwargs": {"fused": True}} | ({} if field else BACKBONE),
        seed=seed,
        device="cpu",
    )
    model.rates = (given.actor, given.critic)
    for network in (model.actor, model.critic):
        clip(network, given.gradient)
    return CentralisedTD3(problem, seed, model, given, SLICE)


def clip(network: nn.Module, most: float) -> None:
    """Keep the gradient's norm below so much in each step: the paper does, and TD3 here has no setting for it."""
    weights = list(network.parameters())
    network.optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(weights, most) and None)
