"""Environments for reinforcement learning.

`FieldEnv` and `FieldVectorEnv` (Gymnasium): one controller that sees the whole field and moves all agents.
`SwarmEnv` (PettingZoo's `ParallelEnv`) and `SwarmVectorEnv`: every agent sees its own patch.

An episode is one of the problem's: it has the problem's steps and is then truncated. All agents get the same
reward: by default the rewards of an episode add up to exactly minus its score, the figure that the problem is
judged by (its final error, or the mean of its errors over time); `reward="error"` gives minus the mean squared
error after every step. Actions are shares of what actuators can do, from -1 to 1.

>>> from fieldswarm.envs import SwarmEnv
>>> env = SwarmEnv("heat-1d", agents=(4, 16), faults=["crash,fraction=0.25,at=0.5"])
>>> observations, infos = env.reset(seed=1)
>>> while env.agents:
...     actions = {agent: env.action_space(agent).sample() * 0 for agent in env.agents}
...     observations, rewards, terminations, truncations, infos = env.step(actions)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._episodes import Episodes
from .simulation import read_only

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ImportError(
        f"environments need gymnasium and pettingzoo ({error}); pip install 'fieldswarm[envs]'"
    ) from error

# Of actions and observations; dtypes are compared sooner than types.
FLOAT = np.dtype(np.float32)

__all__ = ["FieldEnv", "FieldVectorEnv", "SwarmEnv", "SwarmVectorEnv"]


def _box(low: float, high: float, shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(np.float32(low), np.float32(high), shape, np.float32)


def _checked(actions: Any, shape: tuple[int, ...], whose: str) -> NDArray[np.float32]:
    given = np.asarray(actions)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"actions of {whose} must be real numbers, not {given.dtype}")
    if given.shape != shape:
        raise ValueError(f"actions of {whose} must have the shape {shape}, not {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"actions of {whose} must be finite, not {given[~np.isfinite(given)][0]}")
    return given.astype(np.float32, copy=False)


class _Whole:
    """What a controller of everything sees and does."""

    def __init__(self, problem: Any, envs: int, **options: Any):
        self.episodes = Episodes(problem, envs, **options)
        shape, agents = tuple(self.episodes.problem.shape), self.episodes.most_agents
        if self.episodes.problem.fields > 1:
            shape = (self.episodes.problem.fields, *shape)
        seen = {"field": _box(-np.inf, np.inf, shape)}
        if self.episodes.problem.tracking:
            seen["target"] = _box(-np.inf, np.inf, shape)
        seen["position"] = _box(0, 1, (agents, self.episodes.problem.axes))
        seen["alive"] = spaces.MultiBinary(agents)
        self.observation_space = spaces.Dict(seen)
        self.action_space = _box(-1, 1, (agents, self.episodes.batch.order_size))

    def observe(self) -> dict[str, NDArray[Any]]:
        return _all_of(self.episodes)


def _all_of(episodes: Episodes) -> dict[str, NDArray[Any]]:
    """Fields, targets and swarms as they are now."""
    batch, problem = episodes.batch, episodes.problem
    seen: dict[str, NDArray[Any]] = {"field": batch.fields().astype(np.float32)}
    if problem.tracking:
        seen["target"] = batch.targets()
    low, high = np.asarray(problem.low), np.asarray(problem.high)
    scaled = (batch.position - low) / (high - low)
    seen["position"] = np.clip(scaled, 0, 1).astype(np.float32)
    seen["alive"] = episodes.alive.astype(np.int8)
    return seen


class FieldEnv(gymnasium.Env):
    """One controller for all agents: the whole field in, all actions out.

    Observations are a dictionary: `field` and, where the problem has one, `target`, on the problem's grid;
    `position`, scaled to 0..1; `alive`. What actions say to dead agents is ignored.

    >>> env = FieldEnv("heat-1d", steps=50)
    >>> observation, info = env.reset(seed=1)
    >>> observation["field"].shape, env.action_space.shape
    ((100,), (8, 2))
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, problem: Any, **options: Any):
        """See `fieldswarm._episodes.Episodes` for the options: agents, faults, noise, steps, reward, set."""
        self._whole = _Whole(problem, 1, **options)
        self.observation_space = self._whole.observation_space
        self.action_space = self._whole.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        episodes = self._whole.episodes
        episodes.seed([seed])
        episodes.reset([0])
        return self._observation(), {"agents": int(episodes.alive.sum())}

    def _observation(self) -> dict[str, NDArray[Any]]:
        return {name: seen[0] for name, seen in self._whole.observe().items()}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """One control interval."""
        given = _checked(action, self.action_space.shape, "the controller")
        episodes = self._whole.episodes
        rewards, failures = episodes.step(given[None])
        info: dict[str, Any] = {"error": float(episodes.batch.error[0])}
        if failures:
            info["failure"] = failures[0]
        else:
            info["score"] = episodes.batch.score(0)
        ended = bool(episodes.ended()[0]) and not failures
        return self._observation(), float(rewards[0]), bool(failures), ended, info


class FieldVectorEnv(VectorEnv):
    """Many `FieldEnv` side by side, stepped in parallel; an environment that has ended begins anew with the
    next step, whose action is ignored.
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, problem: Any, num_envs: int, **options: Any):
        """See `FieldEnv`."""
        self._whole = _Whole(problem, num_envs, **options)
        self.num_envs = num_envs
        self.single_observation_space = self._whole.observation_space
        self.single_action_space = self._whole.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Begin an episode in all environments."""
        episodes = self._whole.episodes
        episodes.seed(_seeds(seed, self.num_envs))
        episodes.reset(range(self.num_envs))
        return self._whole.observe(), {}

    def step(self, actions: NDArray[np.float32]) -> tuple[Any, ...]:
        """One control interval in all of them."""
        given = _checked(actions, self.action_space.shape, "the controllers")
        rewards, terminated, truncated, infos = self._whole.episodes.advance(given)
        return self._whole.observe(), rewards, terminated, truncated, infos


def _seeds(seed: int | Sequence[int | None] | None, envs: int) -> Sequence[int | None]:
    if seed is None:
        return [None] * envs
    if isinstance(seed, int | np.integer):
        return [int(seed) + env for env in range(envs)]
    if len(seed) != envs:
        raise ValueError(f"{envs} environments need as many seeds, not {len(seed)}")
    return seed


class _Patches:
    """What agents of a swarm see, as one array for all of them."""

    def __init__(self, problem: Any, envs: int, **options: Any):
        self.episodes = Episodes(problem, envs, **options)
        self.seen = self.episodes.seen
        self.observation_space = _box(-np.inf, np.inf, self.seen.shape[2:])
        self.action_space = _box(-1, 1, (self.episodes.batch.order_size,))
        self.possible_agents = [f"agent_{k}" for k in range(self.episodes.most_agents)]


class SwarmEnv(ParallelEnv):
    """Every agent for itself, as on its microcontroller: its patch of the field in, its action out.

    An agent sees the errors (field minus target) of its window, row by row, and behind them sin(π f s), axis after
    axis, and cos(π f s) for the frequencies f, with s its position scaled to 0..1: what the branch and the trunk
    of a policy read. Agents that fall silent leave `agents` for the rest of the episode. With `absorbing=True`
    they stay, see zeros and get no reward until the end: for libraries that cannot cope; `infos[agent]["alive"]`
    tells.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "name": "fieldswarm_v0"}

    def __init__(
        self,
        problem: Any,
        *,
        frequencies: Sequence[float] = (1.0,),
        absorbing: bool = False,
        **options: Any,
    ):
        """See `fieldswarm._episodes.Episodes` for the other options."""
        self._patches = _Patches(problem, 1, frequencies=frequencies, **options)
        self.absorbing = absorbing
        self.possible_agents = list(self._patches.possible_agents)
        self._index = {name: k for k, name in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        self.render_mode = None

    def observation_space(self, agent: str) -> spaces.Space:
        """The same for all agents."""
        return self._patches.observation_space

    def action_space(self, agent: str) -> spaces.Space:
        """The same for all agents."""
        return self._patches.action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, dict[str, Any]]]:
        """Begin an episode."""
        episodes = self._patches.episodes
        episodes.seed([seed])
        episodes.reset([0])
        alive = episodes.alive[0]
        self.agents = [n for n, k in self._index.items() if alive[k] or self.absorbing]
        return self._observations(), {name: self._info(name) for name in self.agents}

    def _observations(self) -> dict[str, NDArray[np.float32]]:
        seen = self._patches.seen[0].copy()
        return {name: seen[self._index[name]] for name in self.agents}

    def _info(self, name: str) -> dict[str, Any]:
        return {"alive": bool(self._patches.episodes.alive[0, self._index[name]])}

    def step(self, actions: Mapping[str, NDArray[np.float32]]) -> tuple[Any, ...]:
        """One control interval."""
        episodes, size = self._patches.episodes, self._patches.action_space.shape
        orders = np.zeros((1, episodes.most_agents, *size), np.float32)
        for name, action in actions.items():
            if name not in self._index:
                raise ValueError(f"there is no agent {name!r}; agents: {', '.join(self.agents)}")
            orders[0, self._index[name]] = _checked(action, size, name)
        rewards, failures = episodes.step(orders)
        there, alive = list(self.agents), episodes.alive[0]
        dead = {name: not alive[self._index[name]] for name in there}
        over = bool(episodes.ended()[0]) and not failures
        observations = self._observations()
        reward = float(rewards[0])
        given = {name: 0.0 if dead[name] and self.absorbing else reward for name in there}
        gone = {name: bool(failures) or (dead[name] and not self.absorbing) for name in there}
        truncations = {name: over and not gone[name] for name in there}
        infos = {name: self._info(name) for name in there}
        for name in there:
            infos[name] |= {"failure": failures[0]} if failures else {}
        self.agents = [n for n in there if not (gone[n] or truncations[n])]
        return observations, given, gone, truncations, infos

    def render(self) -> None:
        """Nothing: `agent-sim run --gif` makes films."""

    def close(self) -> None:
        """Nothing to close."""


class SwarmVectorEnv:
    """Many `SwarmEnv` side by side, stepped in parallel: dictionaries by agent, of arrays with one row for every
    environment.

    Dead agents stay as absorbing states: they see zeros, get no reward and are terminated; an environment that has
    ended begins anew with the next step, whose actions are ignored. Observations are views that change with
    every step: copy what is to be kept. `observations`, `alive` hold those of all agents: (num_envs, agents, …),
    and `errors` the mean squared error of every field.

    >>> import numpy as np
    >>> env = SwarmVectorEnv("heat-1d", num_envs=4, agents=8)
    >>> observations, infos = env.reset(seed=1)
    >>> observations["agent_0"].shape
    (4, 10)
    >>> actions = {agent: np.zeros((4, 2), np.float32) for agent in env.possible_agents}
    >>> observations, rewards, terminations, truncations, infos = env.step(actions)
    >>> rewards["agent_0"].shape
    (4,)
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": "next_step"}

    def __init__(self, problem: Any, num_envs: int, *, frequencies: Sequence[float] = (1.0,), **options: Any):
        """See `SwarmEnv`."""
        self._patches = _Patches(problem, num_envs, frequencies=frequencies, **options)
        self.num_envs = num_envs
        self.possible_agents = list(self._patches.possible_agents)
        self.agents = list(self.possible_agents)
        self.observations = read_only(self._patches.seen)
        self.alive = self._patches.episodes.alive
        self.errors = read_only(self._patches.episodes.error)
        names = list(enumerate(self.agents))
        self._views = {name: self.observations[:, k] for k, name in names}
        self._actions = np.zeros((num_envs, len(names), *self._patches.action_space.shape), np.float32)
        slot = self._actions[:, 0].shape
        self._shapes, self._types = [slot] * len(names), [FLOAT] * len(names)
        # Agents one after the other, to be written in one go, and the same as the engine takes them.
        self._in_rows = np.zeros((len(names) * num_envs, slot[1]), np.float32)
        self._together = self._in_rows.reshape(len(names), *slot).swapaxes(0, 1)
        self._slots = {name: self._actions[:, k] for k, name in names}

    def single_observation_space(self, agent: str) -> spaces.Space:
        """Of one agent in one environment."""
        return self._patches.observation_space

    def single_action_space(self, agent: str) -> spaces.Space:
        """Of one agent in one environment."""
        return self._patches.action_space

    def observation_space(self, agent: str) -> spaces.Space:
        """Of one agent in all environments."""
        return batch_space(self._patches.observation_space, self.num_envs)

    def action_space(self, agent: str) -> spaces.Space:
        """Of one agent in all environments."""
        return batch_space(self._patches.action_space, self.num_envs)

    def reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Begin an episode in all environments, or in those of `options["reset_mask"]` alone."""
        episodes = self._patches.episodes
        episodes.seed(_seeds(seed, self.num_envs))
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        episodes.reset([int(env) for env in np.flatnonzero(mask)])
        return dict(self._views), {}

    def state(self) -> dict[str, NDArray[Any]]:
        """The whole of every environment, as a `FieldVectorEnv` shows it: for what is there in training alone,
        such as a critic.
        """
        return _all_of(self._patches.episodes)

    def step(self, actions: Mapping[str, NDArray[np.float32]]) -> tuple[Any, ...]:
        """One control interval in all of them; agents without actions rest."""
        given = list(actions.values())
        if list(actions) == self.agents and self._are_as_wanted(given):
            np.concatenate(given, out=self._in_rows)
            return self._go_on(self._together)
        if len(actions) < len(self._slots):
            self._actions[:] = 0
        for name, action in actions.items():
            slot = self._slots.get(name)
            if slot is None:
                raise ValueError(f"there is no agent {name!r}; agents: {', '.join(self.agents)}")
            slot[:] = _checked(action, slot.shape, name)
        return self._go_on(self._actions)

    def _are_as_wanted(self, actions: list[Any]) -> bool:
        """Whether they can be put side by side in one go."""
        try:
            shapes, types = [action.shape for action in actions], [action.dtype for action in actions]
        except AttributeError:
            return False
        return shapes == self._shapes and types == self._types

    def step_all(self, actions: NDArray[np.float32]) -> tuple[Any, ...]:
        """The same with actions as one array, (num_envs, agents, numbers)."""
        given = np.asarray(actions)
        if given.dtype is not FLOAT or given.shape != self._actions.shape:
            given = _checked(given, self._actions.shape, "the agents")
        return self._go_on(given)

    def _go_on(self, given: NDArray[np.float32]) -> tuple[Any, ...]:
        """A step under actions that are as wanted."""
        episodes = self._patches.episodes
        rewards, terminated, truncated, infos = episodes.advance(given)
        if episodes.all_alive:
            given = dict.fromkeys(self.agents, rewards)
            gone = dict.fromkeys(self.agents, terminated)
        else:
            alive = episodes.alive
            given = {name: rewards * alive[:, k] for k, name in enumerate(self.agents)}
            gone = {name: terminated | ~alive[:, k] for k, name in enumerate(self.agents)}
        cut = dict.fromkeys(self.agents, truncated)
        return dict(self._views), given, gone, cut, infos

    def close(self) -> None:
        """Nothing to close."""
