"""One episode, led from Python or run by a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._native import Policy, Problem, Recording
from .plant import InProcess, Plant


def as_problem(problem: Problem | str) -> Problem:
    """The problem itself, or the one of that name or file."""
    return problem if isinstance(problem, Problem) else Problem(problem)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: what is in it belongs to the engine."""
    view = array.view()
    view.flags.writeable = False
    return view


def _blob(policy: Any) -> bytes | None:
    if policy is None or isinstance(policy, bytes):
        return policy
    blob = getattr(policy, "bytes", None)
    if not isinstance(blob, bytes):
        raise TypeError(f"policy must be a Policy or the bytes of one, not {type(policy).__name__}")
    return blob


class Simulation:
    """An episode whose agents do as they are told.

    Arrays are views of what the engine holds, and change with every step: copy what is to be kept.

    >>> import fieldswarm
    >>> simulation = fieldswarm.Simulation("heat-1d", agents=4, seed=7)
    >>> simulation.observation["field"].shape
    (4, 10)
    >>> error = simulation.error
    >>> for _ in range(10):
    ...     simulation.step(-8 * (simulation.observation["field"] - simulation.observation["target"])
    ...                     .mean(axis=1, keepdims=True) * [[1, 0]])
    >>> simulation.error < error
    True
    >>> simulation.kill(0)
    >>> simulation.step()
    >>> simulation.heard
    array([False,  True,  True,  True])

    Faults are written as on the command line:

    >>> simulation = fieldswarm.Simulation("heat-1d", faults=["crash,fraction=0.5,at=0.1"])
    >>> while not simulation.done:
    ...     simulation.step()
    >>> int(simulation.heard.sum())
    4
    """

    def __init__(
        self,
        problem: Problem | str,
        *,
        agents: int | None = None,
        seed: int = 0,
        episode: int = 0,
        set: str = "fresh",
        faults: Iterable[str] = (),
        steps: int | None = None,
        window: int | None = None,
        wide: tuple[int, int] | None = None,
        policy: Policy | None = None,
        plant: Plant | None = None,
    ):
        """Begin an episode.

        Args:
            problem: a `Problem`, the name of a published one, or the path of a file that describes one.
            agents: how many; as published if not given.
            seed: of a fresh episode and of faults.
            episode: which one under that seed, or of the set.
            set: "fresh", "table" (the published ones) or the path of a `.npy` file.
            faults: such as "crash,fraction=0.3,at=0.5"; `agent-sim faults` lists them.
            steps: of the episode, of which faults' times are shares; the problem's if not given.
            window: cells that agents see along an axis; as published if not given.
            wide: cells of a coarse picture of the whole field, for policies that ask for one; where agents see
                several fields the others' windows are shown in its place, one after the other.
            policy: shows agents what this one asks for, in place of `window` and `wide`: then
                `policy.agents(n).act(simulation.observation)` are actions.
            plant: computes the field in place of the built-in solver; see `fieldswarm.plant`.
        """
        self.problem = as_problem(problem)
        count = self.problem.agents if agents is None else agents
        if policy is not None:
            sensing = policy.header["sensing"]
            window, wide = sensing["window"], sensing["wide"]
        self._batch = _native.Batch(self.problem, 1, count, steps=steps, window=window, wide=wide)
        self._start = ([seed], [episode], [count], [list(faults)])
        self._set = set
        self._plant = None if plant is None else InProcess(plant)
        # Of a force and velocities, those that agents have.
        force, axes = self.problem.force_max > 0, self.problem.axes
        self._driven = [0] * force + list(range(1, 1 + axes)) * (self.problem.velocity_max > 0)
        self._orders = np.zeros((1, count, self._batch.order_size), np.float32)
        self._views = {
            name: read_only(getattr(self._batch, name)[0])
            for name in ("field", "target", "inside", "position", "wide_field", "wide_target")
        }
        self._views = {name: view for name, view in self._views.items() if view.size}
        self.reset()

    def reset(self) -> None:
        """Begin the same episode again."""
        self._batch.reset([0], *self._start, set=self._set, plant=self._plant)

    def step(self, actions: ArrayLike | None = None) -> None:
        """One control interval.

        Args:
            actions: (agents, 1 + axes): the force, then a velocity along each axis, in the problem's units, as
                `Agents.act` gives them; actuators cut them to what they can do. Nothing: agents rest.
        """
        if actions is None:
            self._orders[:] = 0
        else:
            given = np.asarray(actions)
            if given.dtype.kind not in "fiu":
                raise TypeError(f"actions must be real numbers, not {given.dtype}")
            shape = (self._orders.shape[1], 1 + self.problem.axes)
            if given.shape != shape:
                raise ValueError(
                    f"actions must have the shape {shape} (agents, force and velocities), not {given.shape}"
                )
            self._orders[0] = given[:, self._driven]
        if failure := self._batch.failure(0):
            raise RuntimeError(f"the run has ended: {failure}; reset it to begin again")
        failures = self._batch.step(self._orders)
        if failures:
            raise RuntimeError(failures[0][1])

    def kill(self, agent: int) -> None:
        """End an agent for the rest of the episode."""
        self._batch.kill(0, agent)

    @property
    def observation(self) -> Mapping[str, NDArray[Any]]:
        """What agents see: `field` and, where there is one, `target` (agents, side[, side]) with one cell beyond
        the window on each side; `inside`, the first and last cell of it inside the domain; `position`.
        """
        return self._views

    @property
    def time_us(self) -> int:
        """The time of the observation, as agents' clocks have it."""
        return round(self.steps_taken * self.problem.interval * 1e6)

    @property
    def field(self) -> NDArray[np.float64]:
        """The whole field, on the problem's grid."""
        return self._batch.fields()[0]

    @property
    def target(self) -> NDArray[np.float32]:
        """What it should be now."""
        return self._batch.targets()[0]

    @property
    def positions(self) -> NDArray[np.float32]:
        """Where agents are."""
        return self._views["position"]

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Which agents answered in the last step."""
        return self._batch.heard[0].copy()

    @property
    def deeds(self) -> NDArray[np.float32]:
        """What actuators did in the last step: force, then velocities, of each agent."""
        return self._batch.deeds(0)

    @property
    def error(self) -> float:
        """Mean squared error to the target."""
        return float(self._batch.error[0])

    @property
    def steps_taken(self) -> int:
        """Steps so far."""
        return self._batch.steps_taken(0)

    @property
    def done(self) -> bool:
        """Whether the episode has had its steps."""
        return self.steps_taken >= self._batch.steps

    @property
    def score(self) -> dict[str, float]:
        """The run's figures so far; `headline` is the one that the problem is judged by."""
        return self._batch.score(0)

    def __repr__(self) -> str:
        agents = self._orders.shape[1]
        return f"<Simulation of {self.problem.name}: {agents} agents, step {self.steps_taken}>"


def run(
    problem: Problem | str,
    policy: Any = None,
    *,
    controller: str | None = None,
    gain: float | None = None,
    agents: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    episode: int = 0,
    set: str = "fresh",
    faults: Iterable[str] = (),
    plant: Plant | None = None,
) -> Recording:
    """Run a whole episode with agents that decide by themselves, as `agent-sim run` does.

    Args:
        problem: a `Problem`, the name of a published one, or the path of a file that describes one.
        policy: a `Policy` or its bytes; the shipped one if there is one and nothing else is asked for.
        controller: "policy", "proportional" or "none".
        gain: of proportional feedback.
        agents, steps, seed, episode, set, faults, plant: as for `Simulation`.

    >>> import fieldswarm
    >>> fieldswarm.run("heat-1d", seed=1).score["headline"] < 1e-4
    True
    >>> alone = fieldswarm.run("heat-1d", controller="none", seed=1)
    >>> alone.errors.shape, alone.fields.shape
    ((301,), (301, 100))
    """
    return _native.run(
        as_problem(problem),
        policy=_blob(policy),
        controller=controller,
        gain=gain,
        agents=agents,
        steps=steps,
        seed=seed,
        episode=episode,
        set=set,
        faults=list(faults),
        plant=None if plant is None else InProcess(plant),
    )
