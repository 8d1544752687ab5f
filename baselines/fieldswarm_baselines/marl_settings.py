"""Settings of MAPPO and MATD3: one row for each problem.

From the paper's tables of hyper-parameters (appendix "Baseline Reinforcement Learning Benchmarks"): learning
rates, rollouts, batches, epochs, clips, entropy, buffers, noise. Batches count the observations of single
agents, since one network is learnt from all of them. The paper does not say how many environments there are,
but for `heat-1d`, 256 on a GPU; ours are as many as make a rollout some ten to forty minibatches. What departs
from the paper, and why, stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .patches import Pay

GAMMA = 0.99


@dataclass(frozen=True)
class Mappo:
    """Of MAPPO on a problem."""

    envs: int
    rollout: int
    """Steps of every environment between updates."""
    minibatch: int
    """Agents' observations."""
    pay: Pay
    lr: float = 3e-4
    """Of actor and critic; falls linearly to 0 over the budget."""
    epochs: int = 4
    clip: float = 0.2
    entropy: float = 0.01
    grad_clip: float = 0.5
    lmbda: float = 0.95


MAPPO = {
    "heat-1d": Mappo(16, 300, 1024, Pay(0.5, True)),
    "fkpp-1d": Mappo(8, 300, 1024, Pay(0.5, True)),
    "heat-2d": Mappo(16, 128, 1024, Pay(0.5, True)),
    "heat-2d-obstacles": Mappo(16, 128, 1024, Pay(0.5, True)),
    "ks-1d": Mappo(32, 128, 1024, Pay(0.5, True)),
    "ks-2d": Mappo(4, 50, 1600, Pay(0.5, True)),
    "turbulence-2d": Mappo(4, 150, 400, Pay(0.5, True)),
    "density-2d": Mappo(32, 50, 1600, Pay(0.0, True), entropy=0.001),
}


@dataclass(frozen=True)
class Matd3:
    """Of MATD3 on a problem."""

    envs: int
    batch: int
    """Agents' observations."""
    pay: Pay
    buffer: int = 125_000
    """Steps of environments."""
    actor_lr: float = 1e-4
    critic_lr: float = 5e-4
    """On `ks-1d`, `ks-2d` and `turbulence-2d` too, where the paper has 1e-6 to 3e-5 and 3e-5 to 5e-5 for 50,000 to
    100,000 updates: several times what a budget of ten minutes has.
    """
    decays: bool = False
    """Whether learning rates fall linearly to 0 over the budget."""
    tau: float = 0.005
    delay: int = 2
    """Updates of critics for one of the actor."""
    target_noise: float = 0.2
    noise_clip: float = 0.5
    noise: float = 0.1
    """Standard deviation of exploration, of actions from -1 to 1: TD3's own, since the paper gives none."""
    grad_clip: float = 1.0
    warm_up: int = 500
    """Steps at random, before anything is learnt."""
    steps: int = 100
    """Of every environment, and updates, from one look at the clock to the next."""


MATD3 = {
    "heat-1d": Matd3(32, 256, Pay(0.5, True)),
    "fkpp-1d": Matd3(16, 1024, Pay(0.5, True), decays=True),
    "heat-2d": Matd3(16, 256, Pay(0.5, True), buffer=40_000),
    "heat-2d-obstacles": Matd3(16, 256, Pay(0.5, True), buffer=40_000),
    "ks-1d": Matd3(32, 512, Pay(0.5, True)),
    "ks-2d": Matd3(4, 1600, Pay(0.5, True), buffer=12_500),
    "turbulence-2d": Matd3(4, 512, Pay(0.5, True), buffer=8_000),
    "density-2d": Matd3(16, 256, Pay(0.0, True), buffer=50_000),
}
