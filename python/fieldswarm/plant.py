"""Any solver as the field: a class with two methods, served to ``agent-sim``.

Write a :class:`Plant`, call :func:`serve`, and name the script where a problem's own solver would be::

    agent-sim run my-plate.toml --plant 'python my_solver.py'

The protocol is that of docs/plants.md. This file needs numpy and nothing else of the package: it may be
copied to where the solver runs.
"""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PROTOCOL", "Episode", "Plant", "ProblemFacts", "ProtocolError", "serve"]

#: The version of the protocol that is spoken here.
PROTOCOL = 1

LONGEST_LINE = 65536
MOST_VALUES = 1 << 26
#: Beyond, a sensor would show an infinity.
LARGEST = float(np.finfo(np.float32).max)

Array = NDArray[np.float64]


class ProtocolError(Exception):
    """What the other end says is not the protocol, or not its version."""


@dataclass(frozen=True)
class ProblemFacts:
    """What there is to solve, as the simulator has it."""

    #: Its name: ``heat-2d``, or that of a file that describes a field.
    name: str
    #: Another form of it, where that was asked for.
    variant: str | None
    #: Path of the file that describes it, where one does, on the simulator's machine.
    file: str | None
    #: One line about it.
    summary: str
    #: Points along each axis.
    grid: tuple[int, ...]
    #: The lowest coordinate of each axis; the first point stands there.
    low: tuple[float, ...]
    #: The highest coordinate of each axis.
    high: tuple[float, ...]
    #: What lies beyond the ends of each axis: ``wall`` (points stand on both ends) or ``periodic``.
    edges: tuple[str, ...]
    #: Names of the axes.
    axes: tuple[str, ...]
    #: Names of the fields.
    fields: tuple[str, ...]
    #: What agents do: ``source`` is added to the fields' rates, ``flow`` is a wind that carries them.
    drives: str
    #: Arrays of a forcing: one a field, or one an axis for a wind.
    components: int
    #: Time between two actions.
    interval: float
    #: Steps in that time of the simulator's own solver.
    substeps: int
    #: The equation's coefficients by name, as far as they can be changed.
    coefficients: dict[str, float]
    #: Each point's share of a full cell: less on walls, 0 where something is cut out.
    volumes: Array

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring points along each axis."""
        ends = zip(self.grid, self.low, self.high, self.edges, strict=True)
        return tuple((high - low) / max(points - (edge == "wall"), 1) for points, low, high, edge in ends)

    @property
    def coordinates(self) -> tuple[Array, ...]:
        """The points' coordinates along each axis."""
        lines = zip(self.grid, self.low, self.spacing, strict=True)
        return tuple(low + h * np.arange(points) for points, low, h in lines)

    @property
    def field_shape(self) -> tuple[int, ...]:
        """Shape of a field: the grid's, with an axis for the fields before it if there are several."""
        return self.grid if len(self.fields) == 1 else (len(self.fields), *self.grid)

    @property
    def forcing_shape(self) -> tuple[int, ...]:
        """Shape of a forcing: the grid's, with an axis before it if there are several components."""
        return self.grid if self.components == 1 else (self.components, *self.grid)


@dataclass(frozen=True)
class Episode:
    """What a plant is told when a run begins."""

    problem: ProblemFacts
    #: The field to begin with.
    initial: Array
    #: Length of the steps to come.
    dt: float
    #: Decides what the plant leaves to chance, so that a run can be repeated.
    seed: int


class Plant:
    """A field that can be put to a start and pushed on from there.

    Fields and forcings are arrays of ``float64`` in the shapes :attr:`ProblemFacts.field_shape` and
    :attr:`ProblemFacts.forcing_shape`, ``[x]`` or ``[x, y]`` where there is one field.

    >>> import numpy as np
    >>> class Cooling(Plant):
    ...     def reset(self, episode):
    ...         self.field = episode.initial.copy()
    ...         return self.field
    ...
    ...     def step(self, forcing, dt):
    ...         self.field += dt * (forcing - self.field)
    ...         return self.field
    ...
    >>> Cooling().name
    'Cooling'

    A script ends with ``serve(Cooling())``.
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        return type(self).__name__

    def reset(self, episode: Episode) -> ArrayLike:
        """Begin an episode; return the field that it begins with, ``episode.initial`` if it can be.

        A problem that the plant cannot solve is refused by an exception, whose text is shown.
        """
        raise NotImplementedError(f"{self.name} has no reset")

    def step(self, forcing: Array, dt: float) -> ArrayLike:
        """Return the field ``dt`` later, under a forcing that is held constant until then."""
        raise NotImplementedError(f"{self.name} has no step")


def serve(plant: Plant, tcp: str | None = None, *, once: bool = False) -> None:
    """Let the simulator use a plant, over standard input and output or over TCP.

    Without ``tcp`` it returns when the simulator says goodbye. Meanwhile what the solver prints goes to
    standard error, of which the simulator shows the end when something goes wrong. An exception of the
    plant is told to the simulator and raised.

    With ``tcp``, ``"host:port"``, it listens there and serves one simulator after the other until it is
    interrupted, or only the first with ``once``. Port 0 takes a free one; the address is printed to
    standard error. Whoever can connect can run the plant: leave the host ``127.0.0.1`` unless the network
    is trusted.
    """
    if not isinstance(plant, Plant):
        raise TypeError(f"serve takes a fieldswarm.plant.Plant, not {type(plant).__name__}")
    if tcp is None:
        with _standard_streams() as (question, answer):
            _Conversation(plant, question, answer).hold()
        return
    host, _, port = tcp.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"tcp={tcp!r} is no address; give 'host:port', port 0 to 65535")
    with socket.create_server((host.strip("[]"), int(port))) as listener:
        print(f"listening on tcp={host}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        while True:
            connection, _ = listener.accept()
            try:
                with connection:
                    # Every message is a question whose answer is waited for; who is gone without a word
                    # is found out.
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                    with connection.makefile("rb") as question, connection.makefile("wb") as answer:
                        _Conversation(plant, question, answer).hold()
            except Exception:
                if once:
                    raise
                # The next one may have better luck.
                traceback.print_exc()
            if once:
                return


@contextmanager
def _standard_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The process's own streams for the protocol alone; prints go to standard error meanwhile.

    By the system's numbers, not only by Python's names: libraries in C print too.
    """
    sys.stdout.flush()
    before = [os.dup(number) for number in (0, 1)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    printed = sys.stdout
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        with (
            os.fdopen(os.dup(before[0]), "rb") as question,
            os.fdopen(os.dup(before[1]), "wb") as answer,
        ):
            yield question, answer
    finally:
        sys.stdout = printed
        os.dup2(before[0], 0)
        os.dup2(before[1], 1)
        for number in (*before, nothing):
            os.close(number)


class _Conversation:
    """Questions and answers until one side has had enough."""

    def __init__(self, plant: Plant, question: BinaryIO, answer: BinaryIO) -> None:
        self.plant = plant
        self.question = question
        self.answer = answer
        self.problem: ProblemFacts | None = None
        self.begun = False

    def hold(self) -> None:
        """Answer until the other end says goodbye or is gone."""
        try:
            while (header := self._header()) is not None:
                if not self._turn(header):
                    return
        except BrokenPipeError:
            return
        except Exception as error:
            self._complain(error)
            raise

    def _turn(self, header: dict[str, Any]) -> bool:
        message = header.get("message")
        if message == "hello":
            self.problem = self._hello(header)
            self.begun = False
            self._say({"message": "hello", "protocol": PROTOCOL, "name": str(self.plant.name)})
        elif message == "bye":
            return False
        elif message in ("reset", "step"):
            problem = self.problem
            if problem is None:
                raise ProtocolError(f"a {message} came before the hello")
            if message == "reset":
                self._field(problem, "reset", self._reset(problem, header))
                self.begun = True
            elif not self.begun:
                raise ProtocolError("a step came before the reset")
            else:
                self._field(problem, "step", self._step(problem, header))
        else:
            raise ProtocolError(f"{message!r} is no message that a plant knows")
        return True

    def _hello(self, header: dict[str, Any]) -> ProblemFacts:
        version = header.get("protocol")
        if version != PROTOCOL:
            raise ProtocolError(
                f"this plant speaks version {PROTOCOL} of the protocol and the simulator version {version!r}"
            )
        try:
            grid = tuple(int(points) for points in header["grid"])
            return _described(header, self._array(header, grid))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(f"the hello makes no sense: {error!r}") from error

    def _reset(self, problem: ProblemFacts, header: dict[str, Any]) -> ArrayLike:
        initial = self._array(header, (len(problem.fields), *problem.grid))
        initial = initial.reshape(problem.field_shape)
        episode = Episode(problem, initial, _number(header, "dt"), int(header.get("seed", 0)))
        return self.plant.reset(episode)

    def _step(self, problem: ProblemFacts, header: dict[str, Any]) -> ArrayLike:
        forcing = self._array(header, (problem.components, *problem.grid))
        return self.plant.step(forcing.reshape(problem.forcing_shape), _number(header, "dt"))

    def _field(self, problem: ProblemFacts, what: str, value: ArrayLike) -> None:
        field = _checked(value, problem.field_shape, f"{self.plant.name}.{what}")
        shape = (len(problem.fields), *problem.grid)
        self._say({"message": "field", "shape": shape}, field)

    def _header(self) -> dict[str, Any] | None:
        line = self.question.readline(LONGEST_LINE)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise ProtocolError(f"a message of {len(line)} bytes does not begin with a line of JSON")
        try:
            header = json.loads(line)
        except ValueError as error:
            raise ProtocolError(f"the line {line[:80]!r} is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise ProtocolError(f"the line {line[:80]!r} is no JSON object")
        return header

    def _array(self, header: dict[str, Any], shape: tuple[int, ...]) -> Array:
        """The array that follows a header, which must have this shape."""
        if header.get("shape") != list(shape):
            raise ProtocolError(f"a shape of {header.get('shape')!r} came in place of {list(shape)}")
        count = math.prod(shape)
        if min(shape) < 1 or count > MOST_VALUES:
            raise ProtocolError(f"an array of shape {shape} is not of 1 to {MOST_VALUES} values")
        data = self.question.read(8 * count)
        if len(data) < 8 * count:
            raise ProtocolError(f"the line ended after {len(data)} of {8 * count} bytes of an array")
        return np.frombuffer(data, "<f8").astype(np.float64).reshape(shape)

    def _say(self, header: dict[str, Any], values: Array | None = None) -> None:
        data = b"" if values is None else values.astype("<f8", order="C").tobytes()
        self.answer.write(json.dumps(header).encode() + b"\n" + data)
        self.answer.flush()

    def _complain(self, error: Exception) -> None:
        """Tell the other end why there is no answer, if it still listens."""
        text = str(error) if isinstance(error, ProtocolError) else f"{type(error).__name__}: {error}"
        try:
            self._say({"message": "error", "text": text[:4000]})
        except OSError:
            pass


def _described(header: dict[str, Any], volumes: Array) -> ProblemFacts:
    """The problem of a hello."""
    return ProblemFacts(
        name=str(header["problem"]),
        variant=header["variant"],
        file=header["file"],
        summary=str(header["summary"]),
        grid=tuple(int(points) for points in header["grid"]),
        low=tuple(float(x) for x in header["low"]),
        high=tuple(float(x) for x in header["high"]),
        edges=tuple(str(edge) for edge in header["edges"]),
        axes=tuple(str(axis) for axis in header["axes"]),
        fields=tuple(str(name) for name in header["fields"]),
        drives=str(header["drives"]),
        components=int(header["components"]),
        interval=float(header["interval"]),
        substeps=int(header["substeps"]),
        coefficients={str(k): float(v) for k, v in header["coefficients"].items()},
        volumes=volumes,
    )


class InProcess:
    """A plant that the engine calls without a line in between; `Simulation(plant=...)` makes one."""

    def __init__(self, plant: Plant) -> None:
        """For a plant of one's own."""
        if not isinstance(plant, Plant):
            raise TypeError(f"plant must be a fieldswarm.plant.Plant, not {type(plant).__name__}")
        self.plant = plant
        self.problem: ProblemFacts | None = None

    def reset(self, hello: str, volumes: Array, initial: Array, dt: float, seed: int) -> Array:
        """Begin an episode of the problem that a hello describes; the field that it begins with."""
        header = json.loads(hello)
        self.problem = _described(header, volumes.reshape(header["grid"]))
        episode = Episode(self.problem, initial.reshape(self.problem.field_shape), dt, seed)
        return self._field("reset", self.plant.reset(episode))

    def step(self, forcing: Array, dt: float) -> Array:
        """The field `dt` later."""
        assert self.problem is not None, "reset before the first step"
        return self._field("step", self.plant.step(forcing.reshape(self.problem.forcing_shape), dt))

    def _field(self, what: str, value: ArrayLike) -> Array:
        assert self.problem is not None
        return _checked(value, self.problem.field_shape, f"{self.plant.name}.{what}").ravel()


def _number(header: dict[str, Any], name: str) -> float:
    value = header.get(name)
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ProtocolError(f"{name} is {value!r}, not a number above 0")
    return float(value)


def _checked(value: ArrayLike, shape: tuple[int, ...], whose: str) -> Array:
    """A solver's answer as a field, or the reason why it is none."""
    field = np.asarray(value)
    if field.dtype.kind not in "fiub":
        raise TypeError(f"{whose} returned {_kind(value, field)}; return an array of real numbers")
    if field.shape != shape:
        raise ValueError(f"{whose} returned the shape {field.shape}; the field's is {shape}")
    field = field.astype(np.float64)
    wild = ~(np.abs(field) <= LARGEST)
    if wild.any():
        first = tuple(int(i) for i in np.argwhere(wild)[0])
        raise ValueError(
            f"{whose} returned {field[first]} at {list(first)}, the first of {int(wild.sum())} values "
            f"that no sensor can show"
        )
    return field


def _kind(value: object, array: NDArray[Any]) -> str:
    return "None" if value is None else f"{type(value).__name__} of dtype {array.dtype}"


def command_line(make: Callable[[], Plant], about: str) -> None:
    """The ``main`` of a script that serves one plant, with ``--tcp host:port`` as its one option."""
    import argparse

    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--tcp",
        metavar="HOST:PORT",
        help="listen there in place of standard input and output; port 0 takes a free one",
    )
    given = parser.parse_args()
    try:
        serve(make(), given.tcp)
    except KeyboardInterrupt:
        pass
    except ValueError as error:
        if given.tcp is None:
            raise
        parser.error(str(error))
