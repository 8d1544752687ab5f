"""MATD3 with TorchRL: one actor for all agents, and twin critics that see everything.

The loss is TorchRL's `TD3Loss`, the target networks follow with its `SoftUpdate`, and the actor is BenchMARL's,
as in `mappo`.

AgileRL, which is known for MATD3, was tried in version 2.58.0. Agents with names like agent_0, agent_1 share
one actor there, but critics too, which are not told whose value is asked for, so that no agent can be paid for
what it did itself. One call of its `learn` goes through the agents one after the other, each with all agents'
observations: 0.2 s of CPU time for 8 agents on a line (batches of 256), 68 s for the first call with 64 agents on
a plane (512). And it does not load without some sixty packages more, a tensordict that is not this TorchRL's and
libraries for language models among them.
"""

from __future__ import annotations

from typing import Any

import fieldswarm
import torch
from benchmarl.models.common import ModelConfig
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import Tensor
from torchrl.data import Bounded, Composite, Unbounded
from torchrl.objectives import SoftUpdate, TD3Loss, ValueEstimators

from . import actors
from .critics import Critic
from .marl_settings import GAMMA, MATD3
from .patches import Swarms
from .replay import Replay

GROUP = "agents"
OBSERVATION, ACTION, VALUE = (GROUP, "observation"), (GROUP, "action"), (GROUP, "state_action_value")


class Learner:
    """MATD3 on one problem in the middle of its training."""

    def __init__(self, problem: str, seed: int, model: ModelConfig):
        """Begin with this actor."""
        self.problem, self.seed = problem, seed
        self.settings = settings = MATD3[problem]
        torch.manual_seed(seed)
        self.swarms = Swarms(problem, settings.envs, seed, settings.pay)
        self.model = self._actor(model)
        actors.begin_gently(self.model)
        bounded = TensorDictModule(torch.tanh, in_keys=[(GROUP, "logits")], out_keys=[ACTION])
        self.policy = TensorDictSequential(self.model, bounded)
        # The loss lets critics see of the next step what the actor reads; this one hands the state on.
        whole_too = TensorDictSequential(
            TensorDictModule(torch.clone, in_keys=["state"], out_keys=["state"]), self.model, bounded
        )
        (_, agents), actions = self.swarms.size, self.swarms.actions
        whole = self.swarms.whole.shape[-1] + agents * actions
        critic = Critic(self.swarms.features + actions, whole)
        self.loss = TD3Loss(
            whole_too,
            TensorDictModule(critic, in_keys=["state", OBSERVATION, ACTION], out_keys=[VALUE]),
            bounds=(-1.0, 1.0),
            policy_noise=settings.target_noise,
            noise_clip=settings.noise_clip,
            loss_function="l2",
        )
        self.loss.set_keys(
            action=ACTION,
            state_action_value=VALUE,
            reward=(GROUP, "reward"),
            done=(GROUP, "done"),
            terminated=(GROUP, "terminated"),
        )
        self.loss.make_value_estimator(ValueEstimators.TD0, gamma=GAMMA)
        self.targets = SoftUpdate(self.loss, tau=settings.tau)
        self.parts = {
            "actor": list(self.loss.actor_network_params.flatten_keys().values()),
            "critic": list(self.loss.qvalue_network_params.flatten_keys().values()),
        }
        self.optimisers = {
            "actor": torch.optim.Adam(self.parts["actor"], lr=settings.actor_lr, fused=True),
            "critic": torch.optim.Adam(self.parts["critic"], lr=settings.critic_lr, fused=True),
        }
        self.replay = Replay(settings.buffer, self._seen(), torch.zeros(*self.swarms.size, actions))
        self.agent_steps = self.updates = 0
        self.progress = 0.0

    def _actor(self, model: ModelConfig) -> torch.nn.Module:
        """The network that all agents share, before its tanh."""
        agents = self.swarms.size[1]
        seen = Composite({"observation": Unbounded((agents, self.swarms.features))}, shape=(agents,))
        given = Composite({"logits": Unbounded((agents, self.swarms.actions))}, shape=(agents,))
        done = Composite({"action": Bounded(-1.0, 1.0, (agents, self.swarms.actions))}, shape=(agents,))
        return model.get_model(
            input_spec=Composite({GROUP: seen}),
            output_spec=Composite({GROUP: given}),
            agent_group=GROUP,
            input_has_agent_dim=True,
            n_agents=agents,
            centralised=False,
            share_params=True,
            device="cpu",
            action_spec=Composite({GROUP: done}),
        )

    def _seen(self) -> dict[str, Tensor]:
        """What actors and critics see now."""
        return {"observation": self.swarms.observation, "state": self.swarms.whole}

    def advance(self) -> None:
        """Some steps of all environments, and a step of the optimisers after each."""
        for _ in range(self.settings.steps):
            self._collect()
            if self.replay.filled > self.settings.warm_up:
                self._learn()
        actors.check(self.model)

    @torch.no_grad()
    def _collect(self) -> None:
        """A step of all environments under noise; at random, to begin with."""
        seen = self._seen()
        if self.replay.filled < self.settings.warm_up:
            actions = torch.rand(*self.swarms.size, self.swarms.actions) * 2 - 1
        else:
            actions = self._meant(seen["observation"])
            actions = (actions + self.settings.noise * torch.randn_like(actions)).clamp(-1.0, 1.0)
        rewards, terminated, truncated = self.swarms.step(actions)
        failed, over = torch.from_numpy(terminated), torch.from_numpy(truncated)
        self.replay.add(seen, actions, (1 - GAMMA) * rewards, failed, over)
        self.swarms.begin_anew(terminated | truncated)
        self.agent_steps += rewards.numel()

    def _learn(self) -> None:
        """A step of the critics' optimiser, and every so often one of the actor's."""
        if self.settings.decays:
            for name, lr in (("actor", self.settings.actor_lr), ("critic", self.settings.critic_lr)):
                self.optimisers[name].param_groups[0]["lr"] = lr * max(1.0 - self.progress, 0.0)
        batch = self._batch()
        self._step("critic", self.loss.value_loss(batch)[0])
        self.updates += 1
        if self.updates % self.settings.delay == 0:
            self._step("actor", self.loss.actor_loss(batch)[0])
            self.targets.step()

    def _batch(self) -> TensorDict:
        """A few frames as the loss reads them."""
        before, after, actions, rewards, failed = self.replay.draw(
            max(self.settings.batch // self.swarms.size[1], 1)
        )
        size = actions.shape[:2]
        gone = failed[:, None, None].expand(*size, 1)
        agents = TensorDict({"observation": before["observation"], "action": actions}, size)
        later = TensorDict({"observation": after["observation"], "reward": rewards.unsqueeze(-1)}, size)
        later["done"] = later["terminated"] = gone
        following = TensorDict({GROUP: later, "state": after["state"]}, size[:1])
        return TensorDict({GROUP: agents, "state": before["state"], "next": following}, size[:1])

    def _step(self, part: str, loss: Tensor) -> None:
        self.optimisers[part].zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parts[part], self.settings.grad_clip)
        self.optimisers[part].step()

    def _meant(self, observation: Tensor) -> Tensor:
        """Actions before noise."""
        agents = TensorDict({"observation": observation}, self.swarms.size)
        return self.policy(TensorDict({GROUP: agents}, self.swarms.size[:1]))[ACTION]

    def actor(self) -> torch.nn.Module:
        """The network that all agents share."""
        return self.model

    def controller(self) -> fieldswarm.Policy:
        """The actor without exploration, as a blob."""
        return actors.blob(self.problem, self.actor())

    def state(self) -> dict[str, Any]:
        """All that is needed to go on."""
        return {
            "loss": self.loss.state_dict(),
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
            "replay": self.replay.state(),
            "random": torch.get_rng_state(),
            "agent_steps": self.agent_steps,
            "updates": self.updates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there, in new episodes."""
        self.loss.load_state_dict(state["loss"])
        for name, optimiser in self.optimisers.items():
            optimiser.load_state_dict(state["optimisers"][name])
        self.replay.restore(state["replay"])
        self.replay.cut()
        torch.set_rng_state(state["random"])
        self.agent_steps, self.updates = state["agent_steps"], state["updates"]
        seed = self.seed + 1_000_003 * (1 + self.updates)
        self.swarms = Swarms(self.problem, self.settings.envs, seed, self.settings.pay)


def begin(problem: str, seed: int) -> Learner:
    """With the paper's MLP."""
    return Learner(problem, seed, actors.MLP)


def begin_deeponet(problem: str, seed: int) -> Learner:
    """With our own policies' network: the paper's ablation."""
    return Learner(problem, seed, actors.DeepONetConfig())
