import csv
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import fieldswarm
import numpy as np
import pytest

from fieldswarm_baselines import trials
from fieldswarm_baselines.commands import main
from fieldswarm_baselines.runs import Run, frozen
from fieldswarm_baselines.training import Budget, train

BUILT = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
SIMULATOR = Path(os.environ.get("AGENT_SIM", BUILT / "release/agent-sim"))
simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="agent-sim is not built")


def by_agent_sim(problem, trial, *controller):
    """The final error, of a problem that is judged by it."""
    agents = fieldswarm.Problem(problem).agents * trial.times
    options = ["--set", trial.set, "--seed", str(trial.seed), "--agents", str(agents)]
    options += [] if trial.episodes is None else ["--episodes", str(trial.episodes)]
    options += [word for fault in trial.faults for word in ("--fault", fault)]
    command = [SIMULATOR, "eval", problem, *controller, *options, "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return told["final"]


class Nobody:
    """Leads a swarm nowhere."""

    bytes = 0

    def __call__(self, seen):
        return np.zeros((*seen["position"].shape[:2], 2), np.float32)


@simulator
@pytest.mark.parametrize("condition", list(trials.CONDITIONS))
def test_a_decentralised_score_is_agent_sims(condition, tmp_path):
    policy, trial = fieldswarm.Policy.shipped("heat-1d"), trials.CONDITIONS[condition]
    found, told = trials.errors("heat-1d", policy, trial, 2), by_agent_sim("heat-1d", trial)
    assert found.mean() == pytest.approx(told["mean"], rel=1e-12)
    assert found.std() == pytest.approx(told["std"], rel=1e-12)


@simulator
@pytest.mark.parametrize("condition", ["table", "fresh"])
def test_episodes_side_by_side_are_agent_sims(condition):
    trial = trials.CONDITIONS[condition]
    told = by_agent_sim("heat-1d", trial, "--controller", "none")
    assert trials.errors("heat-1d", Nobody(), trial).mean() == pytest.approx(told["mean"], rel=1e-12)


class Proportional:
    """Each of ks-1d's agents pushes against what is where it stands."""

    bytes = 0

    def __init__(self):
        problem = fieldswarm.Problem("ks-1d")
        share = problem.placement()[:, 0] / problem.high[0]
        self.cells = (share * problem.shape[0]).round().astype(int)

    def __call__(self, seen):
        return np.clip(-seen["field"][:, self.cells, None], -1, 1).astype(np.float32)


def test_agents_that_crash_do_nothing_more():
    table, crash = (replace(trials.CONDITIONS[name], episodes=5) for name in ("table", "crash"))
    unharmed, harmed = (trials.errors("ks-1d", Proportional(), trial) for trial in (table, crash))
    assert (harmed != unharmed).all() and harmed.mean() < 0.5


def test_a_table_has_a_line_for_each_condition(small, tmp_path):
    folder = train("ppo", "heat-1d", Budget(0.3), runs=tmp_path).folder
    table = tmp_path / "scores.csv"
    for _ in range(2):
        assert main(["score", str(folder), "--csv", str(table), "--episodes", "2"]) == 0
    with open(table, newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["condition"] for line in lines] == ["table", "fresh", "crash"] * 2
    assert {line["complete"] for line in lines} == {"true"} and {line["agents"] for line in lines} == {"8"}
    assert float(lines[0]["decision_us"]) > 0 and int(lines[0]["bytes"]) > 100_000
    assert lines[0]["error"] == lines[3]["error"]


def test_a_policy_is_exported_and_scored_in_a_larger_swarm(small, tmp_path):
    folder = train("ppo", "heat-1d", Budget(0.2), runs=tmp_path).folder
    run = Run(folder)
    (folder / "best.pt").unlink()
    run.write_best(*frozen(fieldswarm.Policy.shipped("heat-1d")))
    blob, table = tmp_path / "out.policy", tmp_path / "scores.csv"
    assert main(["export", str(folder), "-o", str(blob)]) == 0
    assert blob.read_bytes() == fieldswarm.Policy.shipped("heat-1d").bytes
    assert main(["score", str(folder), "--csv", str(table), "--episodes", "1"]) == 0
    with open(table, newline="") as file:
        agents = {line["condition"]: int(line["agents"]) for line in csv.DictReader(file)}
    assert agents == {"table": 8, "fresh": 8, "crash": 8, "fourfold": 32}


def test_curves_become_a_table_and_a_picture(small, tmp_path):
    runs = [str(train("ppo", "heat-1d", Budget(0.3), seed=seed, runs=tmp_path).folder) for seed in (1, 2)]
    table, picture, ours = tmp_path / "curves.csv", tmp_path / "curves.svg", tmp_path / "ours.csv"
    assert main(["curves", *runs, "--csv", str(table)]) == 0
    lines = table.read_text().splitlines()
    assert lines[0] == "problem,method,seed,seconds,agent_steps,updates,error"
    assert len(lines) == 1 + sum(len(Run(Path(run)).curve()) for run in runs)
    ours.write_text("seconds,agent_steps,error\n1,1000,0.1\n2,2000,0.01\n")
    assert main(["plot", *runs, "-o", str(picture), "--ours", str(ours)]) == 0
    assert "<svg" in picture.read_text()
