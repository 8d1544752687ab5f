import copy
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fieldswarm
import numpy as np
import pytest
import torch

from fieldswarm_baselines import training
from fieldswarm_baselines.commands import main
from fieldswarm_baselines.learner import Diverged
from fieldswarm_baselines.refusal import Refused
from fieldswarm_baselines.runs import Run
from fieldswarm_baselines.training import Budget, train

HERE = Path(__file__).parent


@pytest.mark.parametrize("method", ["ppo", "td3"])
def test_a_run_ends_with_its_budget_and_goes_on_where_it_was(method, small, tmp_path):
    run = train(method, "heat-1d", Budget(1.0), runs=tmp_path)
    first, curve = run.progress, run.curve()
    assert first.complete and first.seconds >= 1.0 and first.updates > 0
    assert len(curve) >= 3 and curve[-1].agent_steps == first.agent_steps
    assert first.error == min(point.error for point in curve)

    before = run.kept()["learner"]
    again = train(method, "heat-1d", Budget(2.0), runs=tmp_path, resume=True)
    second = again.progress
    assert second.seconds >= 2.0 and second.complete
    assert second.agent_steps > first.agent_steps and second.updates > first.updates
    assert again.curve()[: len(curve)] == curve and len(again.curve()) > len(curve)
    assert second.error <= first.error
    if method == "td3":
        kept = run.kept()["learner"]["buffer"]["observations"]
        there = min(len(before["buffer"]["observations"]), before["position"][0])
        if not run.kept()["learner"]["position"][1]:
            assert torch.equal(kept[:there], before["buffer"]["observations"][:there])


@pytest.mark.parametrize("method", ["ppo", "td3"])
def test_what_is_restored_is_what_was_kept(method, small):
    from fieldswarm_baselines.methods import beginning

    learner = beginning(method, "heat-1d")("heat-1d", 1)
    for _ in range(5):
        learner.advance()
    state = copy.deepcopy(learner.state())
    other = beginning(method, "heat-1d")("heat-1d", 2)
    other.restore(state)
    assert (other.agent_steps, other.updates) == (learner.agent_steps, learner.updates)
    seen = fieldswarm.envs.FieldVectorEnv("heat-1d", 3).reset(seed=1)[0]
    assert np.array_equal(other.controller()(seen), learner.controller()(seen))
    other.advance()
    assert other.updates > learner.updates


def test_both_parts_of_a_budget_must_be_spent(small, tmp_path):
    progress = train("ppo", "heat-1d", Budget(0.01, 20_000), runs=tmp_path).progress
    assert progress.agent_steps >= 20_000
    assert Budget(10.0, 100).spent(20.0, 50) == 0.5 and Budget(10.0).spent(20.0, 0) == 1.0


def test_what_cannot_be_is_refused_by_name(small, tmp_path):
    run = train("ppo", "heat-1d", Budget(0.2), runs=tmp_path)
    with pytest.raises(Refused, match="--resume"):
        train("ppo", "heat-1d", Budget(0.2), runs=tmp_path)
    with pytest.raises(Refused, match="no run"):
        train("td3", "heat-1d", Budget(0.2), runs=tmp_path, resume=True)
    with pytest.raises(Refused, match="'a2c'"):
        train("a2c", "heat-1d", Budget(0.2), runs=tmp_path)
    with pytest.raises(Refused, match="turbulence-2d"):
        train("mappo-deeponet", "heat-1d", Budget(0.2), runs=tmp_path)
    for name, other in {"method": "td3", "problem": "fkpp-1d", "seed": 7}.items():
        run.begin(run.settings | {name: other})
        with pytest.raises(Refused, match=f"{name} {other}"):
            train("ppo", "heat-1d", Budget(0.4), runs=tmp_path, resume=True)
        run.begin(run.settings | {"method": "ppo", "problem": "heat-1d", "seed": 1})
    assert main(["export", str(run.folder), "-o", str(tmp_path / "x.policy")]) == 2
    assert not (tmp_path / "x.policy").exists()
    held = Run(run.folder)
    held.lock()
    with pytest.raises(Refused, match="another training"):
        train("ppo", "heat-1d", Budget(0.4), runs=tmp_path, resume=True)
    held.unlock()


def test_what_is_asked_for_is_written_down(small, tmp_path):
    asked = train("td3", "heat-1d", Budget(0.2), seed=3, runs=tmp_path).settings
    assert (asked["method"], asked["problem"], asked["seed"]) == ("td3", "heat-1d", 3)
    assert asked["versions"]["torch"] == torch.__version__.split("+")[0]
    assert asked["hyper_parameters"]["batch"] == 32 and asked["machine"]


def test_divergence_ends_a_run_and_keeps_the_best(small, tmp_path, monkeypatch):
    from fieldswarm_baselines import td3

    advance = td3.CentralisedTD3.advance

    def worse_and_worse(learner):
        advance(learner)
        if learner.progress > 0.5:
            with torch.no_grad():
                next(learner.model.policy.parameters()).fill_(math.nan)
            advance(learner)

    monkeypatch.setattr(td3.CentralisedTD3, "advance", worse_and_worse)
    progress = train("td3", "heat-1d", Budget(1.5), runs=tmp_path).progress
    assert progress.diverged and not progress.complete and math.isfinite(progress.error)
    assert (
        main(["score", str(tmp_path / "heat-1d-td3-1"), "--csv", str(tmp_path / "s.csv"), "--episodes", "2"]) == 0
    )


def test_ppo_says_that_it_has_diverged(small):
    from fieldswarm_baselines import ppo

    learner = ppo.begin("heat-1d", 1)
    learner.advance()
    with torch.no_grad():
        learner.model.policy.action_net.weight.fill_(math.nan)
    with pytest.raises(Diverged):
        learner.advance()


TRAINS = """
import sys
sys.path[:0] = sys.argv[1:3]
from conftest import make_small
from fieldswarm_baselines import training
from fieldswarm_baselines.commands import main
make_small(dict.__setitem__)
training.CHECKPOINT_EVERY, training.CHECKPOINT_SHARE = 0.3, 1.0
sys.exit(main(sys.argv[3:]))
"""


def start(runs):
    command = [sys.executable, "-c", TRAINS, str(HERE), str(HERE.parent)]
    return subprocess.Popen([*command, "train", "td3", "heat-1d", "--budget", "60s", "--out", str(runs)])


def wait_for_a_checkpoint(process, progress):
    """Of a training that has learnt something."""
    for _ in range(600):
        assert process.poll() is None
        if progress.exists() and json.loads(progress.read_text())["updates"] > 0:
            return
        time.sleep(0.1)
    raise AssertionError("no checkpoint in a minute")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_can_be_resumed(number, small, tmp_path):
    folder = tmp_path / "heat-1d-td3-1"
    process = start(tmp_path)
    wait_for_a_checkpoint(process, folder / "progress.json")
    os.kill(process.pid, number)
    status = process.wait(timeout=60)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 1)
    there = Run(folder).progress
    assert there.updates > 0 and not there.complete
    assert training.Run(folder).kept()["seconds"] == there.seconds
    resumed = train("td3", "heat-1d", Budget(there.seconds + 0.5), runs=tmp_path, resume=True)
    assert resumed.progress.complete and resumed.progress.updates > there.updates
    seconds = [point.seconds for point in resumed.curve()]
    assert seconds == sorted(seconds)
