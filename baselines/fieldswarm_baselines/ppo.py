"""PPO of Stable-Baselines3 on the whole swarm."""

from __future__ import annotations

import math

import torch
from stable_baselines3 import PPO
from torch import nn

from . import convolutional, settings
from .centralised import BACKBONE, DISCOUNT, Centralised
from .sb3_swarms import Swarms


class PacedPPO(PPO):
    """PPO whose actor and critic have rates of their own, which follow the training's budget."""

    rates: tuple[settings.Rate, settings.Rate]
    progress = 0.0

    def _update_learning_rate(self, optimizers: torch.optim.Optimizer) -> None:
        for group, rate in zip(optimizers.param_groups, self.rates, strict=True):
            group["lr"] = rate.at(self.progress)


class CentralisedPPO(Centralised):
    """A rollout and its epochs at a time."""

    model: PacedPPO

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        """One for both networks."""
        return {"critic": self.model.policy.optimizer}

    def actor(self) -> nn.Module:
        """The mean of its actions."""
        policy = self.model.policy
        return nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)


def begin(problem: str, seed: int) -> CentralisedPPO:
    """PPO on a problem."""
    given = settings.ppo(problem)
    field = problem == convolutional.PROBLEM
    model = PacedPPO(
        convolutional.ActorCritic if field else "MlpPolicy",
        Swarms(problem, given.envs, given.reward, seed),
        n_steps=given.rollout,
        batch_size=given.batch,
        n_epochs=given.epochs,
        gamma=DISCOUNT,
        gae_lambda=0.95,
        clip_range=given.clip,
        ent_coef=given.entropy,
        vf_coef=given.value,
        max_grad_norm=given.gradient,
        target_kl=given.target_kl,
        policy_kwargs={
            "log_std_init": math.log(given.deviation),
            # Stable-Baselines3's own epsilon; fused is faster here, and else the same.
            "optimizer_kwargs": {"eps": 1e-5, "fused": True},
        }
        | ({} if field else BACKBONE),
        seed=seed,
        device="cpu",
    )
    model.rates = (given.actor, given.critic)
    policy = model.policy
    critic = [*policy.mlp_extractor.value_net.parameters(), *policy.value_net.parameters()]
    theirs = {id(weights) for weights in critic}
    actor = [weights for weights in policy.parameters() if id(weights) not in theirs]
    groups = [{"params": actor, "lr": given.actor.first}, {"params": critic, "lr": given.critic.first}]
    policy.optimizer = torch.optim.Adam(groups, **policy.optimizer_kwargs)
    return CentralisedPPO(problem, seed, model, given, given.rollout)
