"""What MATD3 learns from: the last steps of all environments."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Replay:
    """A ring of steps, each of all environments.

    What is seen is kept once, in half precision: what followed a step stands with the next one. A step at which
    time was up has no such follower and is never drawn; where an environment failed nothing follows that
    counts.
    """

    def __init__(self, frames: int, first: dict[str, Tensor], actions: Tensor):
        """Room for so many frames like this one, of a step of every environment."""
        envs, agents = actions.shape[:2]
        self.room = frames // envs
        self.seen = {
            name: torch.zeros((self.room, *part.shape), dtype=torch.float16) for name, part in first.items()
        }
        self.actions = torch.zeros((self.room, *actions.shape))
        self.rewards = torch.zeros((self.room, envs, agents))
        self.terminated = torch.zeros((self.room, envs), dtype=torch.bool)
        self.whole = torch.zeros((self.room, envs), dtype=torch.bool)
        """Which steps have a follower, or none that counts."""
        self.at = self.filled = 0

    def add(
        self, seen: dict[str, Tensor], actions: Tensor, rewards: Tensor, terminated: Tensor, truncated: Tensor
    ) -> None:
        """A step of every environment."""
        for name, part in seen.items():
            self.seen[name][self.at] = part
        self.actions[self.at], self.rewards[self.at] = actions, rewards
        self.terminated[self.at], self.whole[self.at] = terminated, ~truncated
        self.at = (self.at + 1) % self.room
        self.filled = min(self.filled + 1, self.room)

    def draw(self, frames: int) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor, Tensor, Tensor]:
        """So many frames, or the few less whose followers are missing: what was seen before and after, actions,
        rewards, failures.
        """
        # Counted back from the latest step, which nothing follows yet.
        ago = torch.randint(2, self.filled + 1, (frames,))
        when, env = (self.at - ago) % self.room, torch.randint(0, self.whole.shape[1], (frames,))
        good = self.whole[when, env]
        when, env = when[good], env[good]
        then = (when + 1) % self.room
        before = {name: part[when, env].float() for name, part in self.seen.items()}
        after = {name: part[then, env].float() for name, part in self.seen.items()}
        return before, after, self.actions[when, env], self.rewards[when, env], self.terminated[when, env]

    def cut(self) -> None:
        """The latest step has no follower: episodes begin anew."""
        if self.filled:
            self.whole[self.at - 1] = False

    def _parts(self) -> dict[str, Tensor]:
        named = {f"seen.{name}": part for name, part in self.seen.items()}
        return named | {name: getattr(self, name) for name in ("actions", "rewards", "terminated", "whole")}

    def state(self) -> dict[str, Any]:
        """The steps so far."""
        return {"at": self.at, "filled": self.filled} | {
            n: p[: self.filled].clone() for n, p in self._parts().items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        """These steps."""
        self.at, self.filled = state["at"], state["filled"]
        for name, part in self._parts().items():
            part[: self.filled] = state[name]
