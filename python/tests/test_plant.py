"""Plants as the simulator meets them: over the streams of a process, and over TCP."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldswarm import plant as plant_module
from fieldswarm.plant import Episode, Plant, ProtocolError, serve

HELLO = {
    "message": "hello",
    "protocol": 1,
    "program": "test",
    "problem": "rod",
    "variant": None,
    "file": None,
    "summary": "a rod",
    "grid": [5],
    "low": [0.0],
    "high": [2.0],
    "edges": ["wall"],
    "axes": ["x"],
    "fields": ["T"],
    "drives": "source",
    "components": 1,
    "interval": 0.5,
    "substeps": 1,
    "coefficients": {"nu": 0.1},
    "shape": [5],
}
VOLUMES = [0.5, 1, 1, 1, 0.5]


def frame(header: dict, values=()) -> bytes:
    return json.dumps(header).encode() + b"\n" + np.asarray(values, "<f8").tobytes()


def reset(values, dt=0.5) -> bytes:
    shape = [1, *np.shape(values)]
    return frame({"message": "reset", "shape": shape, "dt": dt, "seed": 7}, values)


def step(values, dt=0.5) -> bytes:
    return frame({"message": "step", "shape": [1, *np.shape(values)], "dt": dt}, values)


def answers(data: bytes) -> list[tuple[dict, np.ndarray]]:
    found = []
    stream = io.BytesIO(data)
    while line := stream.readline():
        header = json.loads(line)
        count = math.prod(header["shape"]) if "shape" in header else 0
        found.append((header, np.frombuffer(stream.read(8 * count), "<f8")))
    return found


class Rod(Plant):
    """Moves by what pushes it."""

    def reset(self, episode: Episode):
        self.episode = episode
        self.field = episode.initial.copy()
        return self.field

    def step(self, forcing, dt):
        self.field = self.field + dt * forcing
        return self.field


def converse(plant: Plant, *questions: bytes) -> list[tuple[dict, np.ndarray]]:
    out = io.BytesIO()
    plant_module._Conversation(plant, io.BytesIO(b"".join(questions)), out).hold()
    return answers(out.getvalue())


def refusal(plant: Plant, *questions: bytes, kind: type[Exception]) -> str:
    """What the other end is told; the same is raised here."""
    out = io.BytesIO()
    with pytest.raises(kind) as raised:
        plant_module._Conversation(plant, io.BytesIO(b"".join(questions)), out).hold()
    header, _ = answers(out.getvalue())[-1]
    assert header["message"] == "error"
    assert str(raised.value) in header["text"]
    return header["text"]


def test_a_plant_is_greeted_reset_and_stepped():
    rod = Rod()
    told = converse(
        rod,
        frame(HELLO, VOLUMES),
        reset(np.arange(5.0)),
        step(np.ones(5)),
        frame({"message": "bye"}),
        b"nobody reads this",
    )
    assert told[0][0] == {"message": "hello", "protocol": 1, "name": "Rod"}
    assert [header["message"] for header, _ in told] == ["hello", "field", "field"]
    assert told[1][0]["shape"] == [1, 5]
    np.testing.assert_array_equal(told[2][1], np.arange(5.0) + 0.5)
    problem = rod.episode.problem
    assert (rod.episode.dt, rod.episode.seed) == (0.5, 7)
    assert (problem.spacing, problem.edges) == ((0.5,), ("wall",))
    np.testing.assert_array_equal(problem.coordinates[0], [0, 0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(problem.volumes, VOLUMES)


def test_several_fields_and_winds_have_an_axis_of_their_own():
    class Wind(Rod):
        def step(self, forcing, dt):
            self.forcing = forcing
            return self.field

    plant = Wind()
    grid = [2, 3]
    hello = HELLO | {
        "grid": grid,
        "shape": grid,
        "low": [0, 0],
        "high": [1, 1],
        "edges": ["wall", "periodic"],
        "axes": ["x", "y"],
        "fields": ["u", "v"],
        "drives": "flow",
        "components": 2,
    }
    values = np.arange(12.0).reshape(2, 2, 3)
    shape = {"shape": [2, 2, 3], "dt": 1.0}
    told = converse(
        plant,
        frame(hello, np.ones(6)),
        frame({"message": "reset", "seed": 0} | shape, values),
        frame({"message": "step"} | shape, values),
    )
    assert told[2][0]["shape"] == [2, 2, 3]
    np.testing.assert_array_equal(plant.forcing, values)
    np.testing.assert_array_equal(plant.episode.initial, values)
    np.testing.assert_allclose(plant.episode.problem.spacing, [1.0, 1 / 3])


@pytest.mark.parametrize(
    ("value", "kind", "fact"),
    [
        (None, TypeError, "None"),
        (np.zeros(4), ValueError, "(4,)"),
        (np.zeros((1, 5)), ValueError, "(1, 5)"),
        (np.zeros(5, complex), TypeError, "complex128"),
        (["a"] * 5, TypeError, "array of real numbers"),
        (np.array([0, 1, np.nan, np.inf, 2]), ValueError, "nan at [2], the first of 2"),
        (np.full(5, 1e39), ValueError, "no sensor can show"),
    ],
)
def test_what_is_no_field_is_refused_with_the_facts(value, kind, fact):
    class Wrong(Rod):
        def step(self, forcing, dt):
            return value

    beginning = frame(HELLO, VOLUMES), reset(np.zeros(5))
    text = refusal(Wrong(), *beginning, step(np.zeros(5)), kind=kind)
    assert fact in text and "Wrong.step" in text


def test_numbers_of_other_types_are_fields_too():
    class Single(Rod):
        def reset(self, episode):
            return [0, 1, 2, 3, 4]

        def step(self, forcing, dt):
            return np.full(5, 0.5, np.float32)[::-1]

    told = converse(Single(), frame(HELLO, VOLUMES), reset(np.zeros(5)), step(np.zeros(5)))
    np.testing.assert_array_equal(told[1][1], np.arange(5.0))
    np.testing.assert_array_equal(told[2][1], np.full(5, 0.5))


@pytest.mark.parametrize(
    ("questions", "fact"),
    [
        ([frame(HELLO | {"protocol": 2}, VOLUMES)], "version 1 of the protocol and the simulator"),
        ([reset(np.zeros(5))], "a reset came before the hello"),
        ([frame(HELLO, VOLUMES), step(np.zeros(5))], "a step came before the reset"),
        ([frame(HELLO, VOLUMES), reset(np.zeros(4))], "[1, 4]"),
        ([frame(HELLO | {"grid": [0], "shape": [0]})], "not of 1 to"),
        ([frame(HELLO | {"grid": [10**12], "shape": [10**12]})], "not of 1 to"),
        ([frame({"message": "hello", "protocol": 1})], "makes no sense"),
        ([frame(HELLO, VOLUMES)[:-1]], "39 of 40 bytes"),
        ([b"GET / HTTP/1.1\r\n"], "no JSON"),
        ([b"[]\n"], "no JSON object"),
        ([frame({"message": "stop"})], "'stop'"),
        ([b"x" * 100_000], "does not begin with a line"),
        ([frame(HELLO, VOLUMES), reset(np.zeros(5), dt=-1)], "dt is -1"),
    ],
)
def test_another_protocol_is_refused(questions, fact):
    assert fact in refusal(Rod(), *questions, kind=ProtocolError)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_answered_or_refused(data, greeted):
    beginning = frame(HELLO, VOLUMES) + reset(np.zeros(5)) if greeted else b""
    out = io.BytesIO()
    conversation = plant_module._Conversation(Rod(), io.BytesIO(beginning + data), out)
    try:
        conversation.hold()
    except ProtocolError:
        assert answers(out.getvalue())[-1][0]["message"] == "error"


def script(folder: Path, body: str) -> Path:
    path = folder / "solver.py"
    path.write_text(textwrap.dedent(body))
    return path


# Prints by Python and by others, and what it reads from its input is nothing.
NOISY = """
    import os, sys
    from fieldswarm.plant import Plant, serve

    class Noisy(Plant):
        def reset(self, episode):
            print("printed")
            os.write(1, b"written\\n")
            os.system("echo echoed")
            assert sys.stdin.read() == ""
            return episode.initial

        def step(self, forcing, dt):
            raise RuntimeError("the mesh is torn")

    serve(Noisy())
    print("after")
    """


def test_prints_do_not_spoil_the_pipe(tmp_path):
    path = script(tmp_path, NOISY)
    questions = frame(HELLO, VOLUMES) + reset(np.zeros(5))
    done = subprocess.run([sys.executable, path], input=questions, capture_output=True, timeout=120, check=True)
    protocol, after = done.stdout[: -len(b"after\n")], done.stdout[-len(b"after\n") :]
    assert after == b"after\n"
    assert [header["message"] for header, _ in answers(protocol)] == ["hello", "field"]
    for word in (b"printed", b"written", b"echoed"):
        assert word in done.stderr


def test_an_exception_is_told_and_ends_the_process(tmp_path):
    path = script(tmp_path, NOISY)
    questions = frame(HELLO, VOLUMES) + reset(np.zeros(5)) + step(np.zeros(5))
    done = subprocess.run([sys.executable, path], input=questions, capture_output=True, timeout=120)
    assert done.returncode == 1
    assert answers(done.stdout)[-1][0] == {
        "message": "error",
        "text": "RuntimeError: the mesh is torn",
    }
    assert b"Traceback" in done.stderr and b"the mesh is torn" in done.stderr


def test_the_file_can_be_copied_to_where_the_solver_is(tmp_path):
    shutil.copy(plant_module.__file__, tmp_path / "plant.py")
    code = "import sys, plant; assert 'fieldswarm' not in sys.modules; print(plant.PROTOCOL)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert done.stdout == b"1\n"


def test_a_plant_listens_and_serves_one_after_the_other(tmp_path):
    path = script(
        tmp_path,
        """
        from fieldswarm.plant import Plant, serve

        class Still(Plant):
            def reset(self, episode):
                return episode.initial

            def step(self, forcing, dt):
                return forcing

        serve(Still(), "127.0.0.1:0")
        """,
    )
    process = subprocess.Popen([sys.executable, path], stderr=subprocess.PIPE)
    try:
        said = process.stderr.readline().decode()
        port = int(re.fullmatch(r"listening on tcp=127.0.0.1:(\d+)\n", said)[1])
        # The first talks nonsense; the second is served all the same.
        for questions, last in [
            (b"nonsense\n", "error"),
            (frame(HELLO, VOLUMES) + reset(np.zeros(5)) + step(np.ones(5)), "field"),
        ]:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(questions)
                connection.shutdown(socket.SHUT_WR)
                with connection.makefile("rb") as stream:
                    assert answers(stream.read())[-1][0]["message"] == last
    finally:
        process.kill()
        process.wait(timeout=60)
        process.stderr.close()


@pytest.mark.parametrize("address", ["", "host", ":80", "host:", "host:65536", "host:-1", "host:x"])
def test_senseless_addresses_are_refused(address):
    with pytest.raises(ValueError, match="host:port"):
        serve(Rod(), address)


def test_only_plants_are_served():
    with pytest.raises(TypeError, match="not type"):
        serve(Rod)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="has no step"):
        Plant().step(np.zeros(3), 0.1)


def test_doctests():
    import doctest

    assert doctest.testmod(plant_module).failed == 0
