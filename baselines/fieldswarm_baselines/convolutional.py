"""The paper's centralised networks for turbulence: fully convolutional, from 64 by 64 cells to 8 by 8 agents.

The paper: "The actors downsample the 4,096-dimensional global vorticity field directly into an [8 by 8 by 1]
spatial action grid. Centralized critics utilize Global Average Pooling". How many channels it does not say.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.td3.policies import Actor, ContinuousCritic, TD3Policy
from torch import nn

PROBLEM = "turbulence-2d"
CELLS, AGENTS, CHANNELS = 64, 8, 32


def _convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Module:
    """Around the torus."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, padding_mode="circular")


def trunk() -> nn.Sequential:
    """From a flat field to 8 by 8 places of channels."""
    return nn.Sequential(
        nn.Unflatten(1, (1, CELLS, CELLS)),
        _convolution(1, CHANNELS // 2, 5, 4),
        nn.ReLU(),
        _convolution(CHANNELS // 2, CHANNELS, 3, 2),
        nn.ReLU(),
    )


def actor() -> nn.Sequential:
    """From a flat field to an action for each agent, in rows as agents are."""
    return nn.Sequential(
        trunk(), _convolution(CHANNELS, CHANNELS, 3, 1), nn.ReLU(), nn.Conv2d(CHANNELS, 1, 1), nn.Flatten()
    )


def pooled(inputs: int) -> nn.Sequential:
    """From places to channels alone."""
    return nn.Sequential(_convolution(inputs, CHANNELS, 3, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Critic(nn.Module):
    """What field and actions are worth: the actions are one more channel of the 8 by 8 places."""

    def __init__(self):
        """With weights of its own."""
        super().__init__()
        self.trunk, self.rest = trunk(), nn.Sequential(pooled(CHANNELS + 1), nn.Linear(CHANNELS, 1))

    def forward(self, both: torch.Tensor) -> torch.Tensor:
        """Of flat fields with flat actions behind them."""
        field, actions = both.split((CELLS**2, AGENTS**2), dim=1)
        places = self.trunk(field)
        return self.rest(torch.cat([places, actions.unflatten(1, (1, AGENTS, AGENTS))], dim=1))


class ActorCritics(TD3Policy):
    """TD3's networks, in which these are in the others' place."""

    def make_actor(self, features_extractor: Any = None) -> Actor:
        """An actor."""
        made = super().make_actor(features_extractor)
        made.mu = nn.Sequential(actor(), nn.Tanh())
        return made

    def make_critic(self, features_extractor: Any = None) -> ContinuousCritic:
        """Two critics."""
        made = super().make_critic(features_extractor)
        made.q_networks = [Critic() for _ in made.q_networks]
        for k, critic in enumerate(made.q_networks):
            setattr(made, f"qf{k}", critic)
        return made


class Apart(nn.Module):
    """PPO's two networks up to where it puts its own last layer."""

    latent_dim_pi = AGENTS**2
    latent_dim_vf = CHANNELS

    def __init__(self):
        """With weights of their own."""
        super().__init__()
        self.policy_net, self.value_net = actor(), nn.Sequential(trunk(), pooled(CHANNELS))

    def forward(self, fields: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both."""
        return self.policy_net(fields), self.value_net(fields)

    def forward_actor(self, fields: torch.Tensor) -> torch.Tensor:
        """The actor's."""
        return self.policy_net(fields)

    def forward_critic(self, fields: torch.Tensor) -> torch.Tensor:
        """The critic's."""
        return self.value_net(fields)


class ActorCritic(ActorCriticPolicy):
    """PPO's networks, likewise; the actor's last layer is convolutional too, so nothing comes behind it."""

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = Apart()

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = nn.Identity()
