"""Trainings that are started, watched, stopped and resumed from Python."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldswarm

#: Seconds within which anything here ends, on any machine.
PATIENCE = 120

#: A training of a second.
SMALL = {"steps": 24, "batch": 2, "agents": "2,3..5", "seed": 3, "physics": {"nu": (0.1, 0.4)}}


def small(out, **more):
    return fieldswarm.train("heat-1d", out=out, **{**SMALL, **more})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A training from beginning to end."""
    training = small(tmp_path_factory.mktemp("undisturbed"))
    return training.wait(PATIENCE, progress=False)


def trainer_program():
    """The trainer as a program, of which CI says where it is."""
    given = os.environ.get("TRAINER")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    found = [pathlib.Path(given)] if given else [target / p / "trainer" for p in ("debug", "release")]
    found = [path for path in found if path.is_file()]
    if not found:
        assert "CI" not in os.environ, "no trainer to compare with; set TRAINER"
        pytest.skip("no trainer to compare with: cargo build -p trainer")
    return found[0]


def test_a_training_shows_its_curves_and_ends(undisturbed):
    assert undisturbed.outcome == "finished" and not undisturbed.running
    assert undisturbed.step == undisturbed.steps == 24
    losses, validations = undisturbed.losses, undisturbed.validations
    assert losses.dtype == validations.dtype == np.float64
    assert (losses[:, 0] == np.arange(1, 25)).all() and np.isfinite(losses).all()
    assert validations[-1, 0] == 24 and undisturbed.best == validations[:, 1].min()
    assert undisturbed.loss == losses[-1, 1]
    shown = repr(undisturbed)
    for fact in ("heat-1d", "step 24 of 24", "finished", str(undisturbed.folder)):
        assert fact in shown
    assert {"latest", "best", "report.json"} <= set(os.listdir(undisturbed.folder))


def test_the_policy_is_that_of_the_program_to_the_bit(undisturbed, tmp_path):
    program, out, blob = trainer_program(), tmp_path / "runs", tmp_path / "cli.policy"
    settings = "--steps 24 --batch 2 --agents 2,3..5 --seed 3 --physics nu=0.1..0.4 --threads 1"
    command = [program, "train", "heat-1d", "--preset", "quick", *settings.split(), "--out", out]
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)
    export = [program, "export", out / "heat-1d" / "best", "-o", blob]
    subprocess.run(export, check=True, timeout=PATIENCE, capture_output=True)
    path = undisturbed.export(tmp_path / "python.policy")
    assert path.read_bytes() == blob.read_bytes(), "built from the same commit?"
    assert undisturbed.blob() == undisturbed.policy().bytes == blob.read_bytes()


def test_a_resumed_training_is_the_undisturbed_one_to_the_bit(undisturbed, tmp_path):
    # Long enough not to be over before it is stopped, and then of the same length.
    training = small(tmp_path)
    while training.step < 2 and training.running:
        time.sleep(0.001)
    training.stop(PATIENCE)
    assert training.outcome in ("stopped", "finished")
    if training.outcome == "stopped":
        stopped_at = training.step
        training = small(tmp_path, resume=True)
        assert training.step >= stopped_at
        training.wait(PATIENCE, progress=False)
    assert training.outcome == "finished"
    assert training.blob() == undisturbed.blob()
    assert training.blob("latest") == undisturbed.blob("latest")


def test_threads_do_not_matter(undisturbed, tmp_path):
    training = small(tmp_path, threads=3).wait(PATIENCE, progress=False)
    assert training.blob() == undisturbed.blob()


def test_python_runs_on_while_it_trains(tmp_path):
    with pytest.raises(RuntimeError, match=r"first validation comes after step \d+.*latest"):
        training = small(tmp_path, steps=100_000)
        before = training.step
        deadline = time.monotonic() + PATIENCE
        while training.step <= before:
            assert time.monotonic() < deadline
            sum(range(1000))
        assert training.running and training.outcome is None
        assert training.wait(0.01, progress=False) is training and training.running
        training.blob()
    training.stop(PATIENCE)
    assert training.outcome == "stopped" and training.step == len(training.losses)
    assert len(training.blob("latest")) > 10_000


REFUSED = [
    ({"steps": 0}, ValueError, "steps 0"),
    ({"steps": -1}, ValueError, "steps -1"),
    ({"steps": 10**30}, ValueError, "steps 1000000000000000000000000000000"),
    ({"steps": 10**12}, ValueError, "100000000"),
    ({"steps": 2.5}, TypeError, "steps is a whole number, not float"),
    ({"steps": True}, TypeError, "steps is a whole number, not bool"),
    ({"batch": 0}, ValueError, "batch 0"),
    ({"seed": "3"}, TypeError, "seed is a whole number, not str"),
    ({"lr": -1}, ValueError, "lr -1"),
    ({"lr": float("nan")}, ValueError, "lr NaN"),
    ({"lr": "fast"}, TypeError, "lr is a number, not str"),
    ({"agents": 0}, ValueError, "agents: a swarm has 1 to 4096"),
    ({"agents": [8, "9..3"]}, ValueError, "3..64"),
    ({"agents": object()}, ValueError, "agents"),
    ({"physics": {"nu": (0.4, 0.1)}}, ValueError, "ends below where it begins"),
    ({"physics": {"mu": 0.1}}, ValueError, "physics: .*'mu'"),
    ({"physics": {"nu": "thick"}}, TypeError, "physics is a dict"),
    ({"weight": {"beauty": 1}}, ValueError, "weight: .*effort"),
    ({"preset": "best"}, ValueError, "full, quick, published"),
    ({"backend": "abacus"}, ValueError, "flex"),
    ({"window": 65}, ValueError, "window 65 .* 1 to 64"),
    ({"memory": 17}, ValueError, "memory 17 .* 0 to 16"),
    ({"deaths": 1.5}, ValueError, "deaths 1.5"),
    ({"threads": 2000}, ValueError, "leave threads out"),
    ({"resume": True, "overwrite": True}, ValueError, "resume=True .* overwrite=True"),
    ({"resume": "yes"}, TypeError, "resume is True or False, not str"),
    ({"resume": True}, FileNotFoundError, "train first"),
    ({"from_policy": "nowhere.policy"}, FileNotFoundError, "nowhere.policy.*from_policy"),
    ({"step": 3}, TypeError, "no argument 'step'"),
]


@pytest.mark.parametrize(("settings", "kind", "said"), REFUSED)
def test_settings_that_cannot_be_are_refused_in_keywords(tmp_path, settings, kind, said):
    with pytest.raises(kind, match=said) as refused:
        fieldswarm.train("heat-1d", out=tmp_path / "runs", **{"threads": 1, **settings})
    assert "--" not in str(refused.value)
    assert not (tmp_path / "runs" / "heat-1d" / "latest").exists()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
NAMES = st.sampled_from(
    "preset batch seed agents out resume overwrite lr window memory rests physics weight scatter "
    "deadly_episodes deaths deaths_by sensor_noise actuator_noise delay patience retreats "
    "from_policy backend".split()
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(NAMES | st.text(), ANYTHING, max_size=4))
def test_whatever_is_given_is_refused_with_an_exception(given):
    # No steps: also what is usable comes to nothing.
    with pytest.raises((TypeError, ValueError, OSError)):
        fieldswarm.train("heat-1d", **{**given, "steps": 0, "threads": 1})


def test_problems_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"cold-1d.*heat-1d"):
        fieldswarm.train("cold-1d", out=tmp_path)
    with pytest.raises(ValueError, match=r"nowhere\.toml: it cannot be read"):
        fieldswarm.train(pathlib.Path("nowhere.toml"), out=tmp_path)
    with pytest.raises(TypeError, match="not int"):
        fieldswarm.train(7, out=tmp_path)
    changed = fieldswarm.Problem("heat-1d", physics={"nu": 0.1})
    with pytest.raises(ValueError, match="by physics"):
        fieldswarm.train(changed, out=tmp_path)


def test_runs_that_are_there_are_kept(tmp_path):
    running = small(tmp_path, steps=100_000)
    with pytest.raises(OSError, match="is being written to by"):
        small(tmp_path, overwrite=True)
    running.stop(PATIENCE)
    with pytest.raises(FileExistsError, match=r"resume=True .* overwrite=True"):
        small(tmp_path)
    with pytest.raises(ValueError, match=r"batch 2, not 5.*overwrite=True"):
        small(tmp_path, resume=True, batch=5)
    with pytest.raises(ValueError, match=r"already has \d+ steps; give more with steps"):
        small(tmp_path, resume=True, steps=1)
    again = small(tmp_path, overwrite=True, steps=2)
    assert again.wait(PATIENCE, progress=False).step == 2


def test_a_folder_that_is_none_is_an_oserror(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="choose another with out"):
        small(tmp_path / "file")


def test_a_loss_that_is_no_number_is_raised_by_whoever_waits(tmp_path):
    # Beyond single precision: the gradient of the first step is none.
    training = small(tmp_path, weight={"track": 1e300}, retreats=0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"stopped being a number.*smaller lr"):
            training.wait(PATIENCE, progress=False)
    assert training.outcome == "failed" and "failed" in repr(training)


def test_exports_that_cannot_be_are_refused(undisturbed, tmp_path):
    with pytest.raises(ValueError, match="'worst'"):
        undisturbed.blob("worst")
    with pytest.raises(FileNotFoundError, match="missing"):
        undisturbed.export(tmp_path / "missing" / "my.policy")
    with pytest.raises(TypeError, match="path is a path, not int"):
        undisturbed.export(3)
    for timeout in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout"):
            undisturbed.wait(timeout)


TRAIN_FOR_LONG = """
    import fieldswarm, sys
    training = fieldswarm.train("heat-1d", steps=100_000, batch=1, agents=2, out=sys.argv[-1])
"""


def run_for_long(code, tmp_path):
    program = textwrap.dedent(TRAIN_FOR_LONG) + textwrap.dedent(code)
    command = [sys.executable, "-c", program, str(tmp_path)]
    return subprocess.Popen(command, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


def latest_goes_on(tmp_path):
    step = small(tmp_path, batch=None, agents=None, seed=None, physics=None, resume=True, steps=10**6)
    step.stop(PATIENCE)
    return step.step


def test_an_interrupt_keeps_the_checkpoint(tmp_path):
    child = run_for_long("print('waiting', flush=True)\ntraining.wait()", tmp_path)
    assert child.stdout.readline() == "waiting\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode != 0 and "KeyboardInterrupt" in said, said
    assert latest_goes_on(tmp_path) > 0


@pytest.mark.parametrize("ending", ["", "del training", "raise SystemExit(3)", "1 / 0"])
def test_an_interpreter_ends_while_it_trains(tmp_path, ending):
    child = run_for_long(ending, tmp_path)
    _, said = child.communicate(timeout=PATIENCE)
    expected = {"": 0, "del training": 0, "raise SystemExit(3)": 3, "1 / 0": 1}[ending]
    assert child.returncode == expected, said
    assert "Fatal" not in said and "panicked" not in said
    assert latest_goes_on(tmp_path) >= 0


def test_one_that_nobody_holds_stops(tmp_path):
    small(tmp_path, steps=100_000)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            small(tmp_path, resume=True, steps=100_000).stop(PATIENCE)
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_several_are_watched_from_several_threads(tmp_path):
    trainings = [small(tmp_path / str(k), seed=k) for k in range(3)]
    watchers = [threading.Thread(target=t.wait, args=(PATIENCE, False)) for t in trainings]
    for watcher in watchers:
        watcher.start()
    while any(training.running for training in trainings):
        assert all(t.losses.shape[1] == t.validations.shape[1] == 2 for t in trainings)
    for watcher in watchers:
        watcher.join(PATIENCE)
    assert len({t.blob() for t in trainings}) == 3


@pytest.mark.parametrize("bar", ["tqdm", "line"])
def test_progress_is_shown_with_tqdm_and_without(tmp_path, capsys, monkeypatch, bar):
    if bar == "line":
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    else:
        pytest.importorskip("tqdm")
    small(tmp_path).wait(PATIENCE)
    said = capsys.readouterr().err
    assert "24/24" in said and "loss" in said and "validation" in said, said
