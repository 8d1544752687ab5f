"""MAPPO with BenchMARL: one actor for all agents, and a critic that sees everything.

Actor, distribution, clipped loss and advantages (GAE) are those of `benchmarl.algorithms.Mappo`, that is
TorchRL's. BenchMARL's `Experiment` around it trains to an end, evaluates and writes files by itself, and cannot
be led piece by piece; the loop here does what its loop does: collect a rollout, weigh it, then epochs of
minibatches with Adam.

Two things differ from BenchMARL's defaults. Its critic gives one value for the team or needs as many networks
as there are agents; ours gives every agent a value, as in the paper (`critics`). And advantages are normalised,
as in the paper's other PPO, since rewards have no unit.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import fieldswarm
import torch
from benchmarl.algorithms import MappoConfig
from benchmarl.algorithms.mappo import Mappo
from benchmarl.models.common import ModelConfig
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import Bounded, Composite, Unbounded
from torchrl.envs.utils import ExplorationType, set_exploration_type

from . import actors
from .critics import Critic
from .marl_settings import GAMMA, MAPPO
from .patches import Swarms

GROUP = "agents"
OBSERVATION = (GROUP, "observation")


class SeeingMappo(Mappo):
    """BenchMARL's MAPPO with a critic that gives every agent a value of its own."""

    def get_critic(self, group: str) -> TensorDictModule:
        """The critic."""
        whole = self.state_spec["state"].shape[-1]
        own = self.observation_spec[OBSERVATION].shape[-1]
        return TensorDictModule(
            Critic(own, whole), in_keys=["state", OBSERVATION], out_keys=[(group, "state_value")]
        )


class SeeingMappoConfig(MappoConfig):
    """What makes it."""

    @staticmethod
    def associated_class() -> type[Mappo]:
        """The algorithm's class."""
        return SeeingMappo


class Learner:
    """MAPPO on one problem in the middle of its training."""

    def __init__(self, problem: str, seed: int, model: ModelConfig):
        """Begin with this actor."""
        self.problem, self.seed = problem, seed
        self.settings = settings = MAPPO[problem]
        torch.manual_seed(seed)
        self.swarms = Swarms(problem, settings.envs, seed, settings.pay)
        algorithm = self._algorithm(model)
        self.policy = algorithm.get_policy_for_collection()
        self.algorithm = algorithm
        actors.begin_gently(self.actor())
        self.loss = algorithm.get_loss_and_updater(GROUP)[0]
        self.loss.normalize_advantage = True
        self.parts = [list(part) for part in algorithm.get_parameters(GROUP).values()]
        self.optimiser = torch.optim.Adam(
            [{"params": part} for part in self.parts], lr=settings.lr, eps=1e-5, fused=True
        )
        self.agent_steps = self.updates = 0
        self.progress = 0.0

    def _algorithm(self, model: ModelConfig) -> Mappo:
        """The algorithm, which asks an experiment for what agents see and do."""
        (_, agents), settings = self.swarms.size, self.settings
        seen = Composite({"observation": Unbounded((agents, self.swarms.features))}, shape=(agents,))
        done = Composite({"action": Bounded(-1.0, 1.0, (agents, self.swarms.actions))}, shape=(agents,))
        config = SeeingMappoConfig(
            share_param_critic=False,
            clip_epsilon=settings.clip,
            entropy_coef=settings.entropy,
            critic_coef=0.5,
            loss_critic_type="l2",
            lmbda=settings.lmbda,
            scale_mapping="biased_softplus_0.5",
            use_tanh_normal=True,
            minibatch_advantage=False,
        )
        return config.get_algorithm(
            experiment=SimpleNamespace(
                config=SimpleNamespace(
                    train_device="cpu", buffer_device="cpu", share_policy_params=True, gamma=GAMMA
                ),
                model_config=model,
                critic_model_config=model,
                algorithm_config=config,
                on_policy=True,
                group_map={GROUP: list(self.swarms.env.possible_agents)},
                observation_spec=Composite({GROUP: seen}),
                action_spec=Composite({GROUP: done}),
                state_spec=Composite({"state": Unbounded((self.swarms.whole.shape[-1],))}),
                action_mask_spec=None,
            )
        )

    def advance(self) -> None:
        """A rollout, and its epochs of minibatches."""
        rollout = self.algorithm.process_batch(GROUP, self._collect()).exclude("next").reshape(-1)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.lr * max(1.0 - self.progress, 0.0)
        agents = self.swarms.size[1]
        frames = max(self.settings.minibatch // agents, 1)
        for _ in range(self.settings.epochs):
            for chosen in torch.randperm(len(rollout)).split(frames):
                self._learn(rollout[chosen])
        self.agent_steps += rollout.numel() * agents
        actors.check(self.actor())

    def _learn(self, minibatch: TensorDict) -> None:
        """A step of the optimiser."""
        losses = self.loss(minibatch)
        (losses["loss_objective"] + losses["loss_entropy"] + losses["loss_critic"]).backward()
        for part in self.parts:
            torch.nn.utils.clip_grad_norm_(part, self.settings.grad_clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.updates += 1

    @torch.no_grad()
    @set_exploration_type(ExplorationType.RANDOM)
    def _collect(self) -> TensorDict:
        """Steps of all environments, (environments, time)."""
        steps = []
        for _ in range(self.settings.rollout):
            step = self._seen()
            self.policy(step)
            rewards, terminated, truncated = self.swarms.step(step[GROUP, "action"])
            after = self._seen()
            after[GROUP, "reward"] = (1 - GAMMA) * rewards.unsqueeze(-1)
            after["done"] = torch.from_numpy(terminated | truncated).unsqueeze(-1)
            after["terminated"] = torch.from_numpy(terminated).unsqueeze(-1)
            steps.append(step.set("next", after))
            self.swarms.begin_anew(terminated | truncated)
        return torch.stack(steps, 1)

    def _seen(self) -> TensorDict:
        """What actors and critics see now."""
        agents = TensorDict({"observation": self.swarms.observation}, self.swarms.size)
        return TensorDict({GROUP: agents, "state": self.swarms.whole}, self.swarms.size[:1])

    def actor(self) -> torch.nn.Module:
        """The network that all agents share."""
        return self.algorithm.get_policy_for_loss(GROUP)[0][0]

    def controller(self) -> fieldswarm.Policy:
        """The actor without exploration, as a blob."""
        return actors.blob(self.problem, self.actor())

    def state(self) -> dict[str, Any]:
        """All that is needed to go on."""
        return {
            "loss": self.loss.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "agent_steps": self.agent_steps,
            "updates": self.updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there, in new episodes."""
        self.loss.load_state_dict(state["loss"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        self.agent_steps, self.updates = state["agent_steps"], state["updates"]
        seed = self.seed + 1_000_003 * self.updates
        self.swarms = Swarms(self.problem, self.settings.envs, seed, self.settings.pay)


def begin(problem: str, seed: int) -> Learner:
    """With the paper's MLP."""
    return Learner(problem, seed, actors.MLP)


def begin_deeponet(problem: str, seed: int) -> Learner:
    """With our own policies' network: the paper's ablation."""
    return Learner(problem, seed, actors.DeepONetConfig())
