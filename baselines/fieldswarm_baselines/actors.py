"""Actors, which all agents share, and the blobs they become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import fieldswarm
import numpy as np
import torch
from benchmarl.models import MlpConfig
from benchmarl.models.common import Model, ModelConfig
from fieldswarm.build import Design, deeponet
from numpy.typing import NDArray
from tensordict import TensorDictBase
from torch import Tensor, nn

from .learner import Diverged
from .patches import FREQUENCIES, SIGHTS

# The paper's backbone.
MLP = MlpConfig(num_cells=[256, 256], activation_class=nn.ReLU, layer_class=nn.Linear)


class Branch(nn.Module):
    """Dense layers whose sums are divided by their length + 1, then tanh, as in our own policies."""

    def __init__(self, inputs: int, outputs: int):
        """One of these layers."""
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """A layer's outputs."""
        h = self.layer(x)
        return torch.tanh(h / (torch.linalg.vector_norm(h, dim=-1, keepdim=True) + 1))


class DeepONet(nn.Module):
    """Our own policies' network: branch on what is seen, trunk on where, head on both."""

    def __init__(self, seen: int, waves: int, outputs: int):
        """The published sizes on a plane."""
        super().__init__()
        self.seen = seen
        self.branch = nn.Sequential(Branch(seen, 64), Branch(64, 64))
        self.trunk = nn.Sequential(nn.Linear(waves, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(96, 64), nn.Tanh(), nn.Linear(64, outputs))

    def forward(self, observation: Tensor) -> Tensor:
        """Outputs before their tanh."""
        seen, waves = observation[..., : self.seen], observation[..., self.seen :]
        return self.head(torch.cat([self.branch(seen), self.trunk(waves)], -1))


class _DeepONetModel(Model):
    """The network as BenchMARL takes one."""

    def __init__(self, **options):
        super().__init__(**options)
        inputs = self.input_leaf_spec.shape[-1]
        waves = 2 * 2 * len(FREQUENCIES)
        self.network = DeepONet(inputs - waves, waves, self.output_leaf_spec.shape[-1])

    def _forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        return tensordict.set(self.out_key, self.network(tensordict.get(self.in_key)))


@dataclass
class DeepONetConfig(ModelConfig):
    """What makes that network."""

    @staticmethod
    def associated_class() -> type[Model]:
        """The network's class."""
        return _DeepONetModel


def check(actor: nn.Module) -> None:
    """Raises `Diverged` if it is made of something that is no number."""
    if not all(part.isfinite().all() for part in actor.parameters()):
        raise Diverged("the actor's weights are no numbers any more")


def blob(problem: str, actor: Model) -> fieldswarm.Policy:
    """The actor as agents carry it."""
    if isinstance(actor, _DeepONetModel):
        return deeponet_blob(problem, actor.network)
    return mlp_blob(problem, [(layer.weight, layer.bias) for layer in dense(actor)])


def dense(actor: Model) -> list[nn.Linear]:
    """The dense layers of an actor, in order."""
    network = actor.network if isinstance(actor, _DeepONetModel) else actor.mlp.get_stateful_net()
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


def begin_gently(actor: nn.Module) -> None:
    """Makes the last layer's weights a hundredth of what they are, so that agents begin by doing little.

    Half of all networks push errors up, more the larger they are: without this a field is far away from
    anything worth seeing before a method has learnt a thing. It is what PPO's authors and most libraries do.
    """
    with torch.no_grad():
        for last in list(actor.parameters())[-2:]:
            last *= 0.01


def numbers(layers: Iterable[tuple[Tensor, Tensor]]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Weights, [inputs, outputs], and biases of layers whose weights are [outputs, inputs]."""
    return [tuple(part.detach().double().numpy().T for part in layer) for layer in layers]


def mlp_blob(problem: str, layers: Iterable[tuple[Tensor, Tensor]]) -> fieldswarm.Policy:
    """An MLP on errors and waves side by side: the head's first layer reads both, the branch is empty and the
    trunk hands its waves on.

    Of the last layer's outputs the first are the actions; MAPPO's others are deviations, which nobody needs any
    more.
    """
    found = numbers(layers)
    problem_waves = 2 * fieldswarm.Problem(problem).axes * len(FREQUENCIES)
    lengths = [len(bias) for _, bias in found[:-1]]
    design = _design(problem, branch=[], trunk=[problem_waves], head=lengths, activation="relu")
    design.header["network"]["trunk"][0]["activation"] = "identity"
    arrays = {"trunk.0.weight": np.eye(problem_waves), "trunk.0.bias": np.zeros(problem_waves)}
    return _written(problem, design, arrays | _named("head", found, design), first="head.0.weight")


def deeponet_blob(problem: str, network: DeepONet) -> fieldswarm.Policy:
    """The DeepONet, layer for layer."""
    design = _design(problem, branch=[64, 64], trunk=[32, 32], head=[64], activation="tanh", norm="soft")
    arrays: dict[str, NDArray[np.float64]] = {}
    for part in ("branch", "trunk", "head"):
        modules = [m for m in getattr(network, part).modules() if isinstance(m, nn.Linear)]
        arrays |= _named(part, numbers((m.weight, m.bias) for m in modules), design)
    return _written(problem, design, arrays, first="branch.0.weight")


def _design(problem: str, **layers) -> Design:
    sight = SIGHTS[problem]
    return deeponet(
        problem, window=sight.window, wide=sight.wide, channels=["error"], frequencies=FREQUENCIES, **layers
    )


def _named(part: str, layers: list, design: Design) -> dict[str, NDArray[np.float64]]:
    """Arrays under a blob's names, without outputs that it does not have."""
    arrays = {}
    for k, (weight, bias) in enumerate(layers):
        outputs = design.shapes[f"{part}.{k}.bias"][0]
        arrays[f"{part}.{k}.weight"], arrays[f"{part}.{k}.bias"] = weight[:, :outputs].copy(), bias[:outputs]
    return arrays


def _written(problem: str, design: Design, arrays: dict, first: str) -> fieldswarm.Policy:
    """The blob, which sees errors as they are: their unit goes into the weights of the layer that reads them."""
    arrays[first][: design.features] /= SIGHTS[problem].scale
    return design.policy(arrays)
