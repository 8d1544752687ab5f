"""The critic of MAPPO and of MATD3: it sees everything, and gives a value for every agent."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchrl.modules import MLP


class Critic(nn.Module):
    """A value for every agent from what is its own and from the whole, with the same weights for all.

    An MLP of 2 x 256 ReLU that reads both side by side. What its first layer makes of the whole is the same for
    all agents of an environment and computed once; each agent's own part says which of them is meant, and
    carries its local error, which is what most of its reward is about.
    """

    def __init__(self, own: int, whole: int, cells: int = 256):
        """For so many numbers of an agent's own and of the whole."""
        super().__init__()
        self.own = nn.Linear(own, cells)
        self.whole = nn.Linear(whole, cells, bias=False)
        self.rest = MLP(
            in_features=cells,
            out_features=1,
            num_cells=[cells],
            activation_class=nn.ReLU,
            activate_last_layer=False,
        )

    def forward(self, whole: Tensor, own: Tensor, actions: Tensor | None = None) -> Tensor:
        """Values, (..., agents, 1), of a state, or of a state and all agents' actions."""
        if actions is not None:
            own = torch.cat([own, actions], -1)
            whole = torch.cat([whole, actions.flatten(-2)], -1)
        return self.rest(torch.relu(self.own(own) + self.whole(whole).unsqueeze(-2)))
