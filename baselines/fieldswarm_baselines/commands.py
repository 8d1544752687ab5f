"""The command line: `python -m fieldswarm_baselines`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import machine
from .refusal import Refused

EXAMPLES = """examples:
  train td3 heat-1d --budget 10m --agent-steps 5000000 --seed 1
  train td3 heat-1d --budget 20m --resume
  score runs/baselines/heat-1d-* --csv scores.csv
  export runs/baselines/heat-1d-mappo-1 -o mappo.policy
  plot runs/baselines/heat-1d-* -o curves.svg --ours ours.csv
  quick
"""


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for; 0, or 2 where it is refused."""
    given = parser().parse_args(arguments)
    threads = getattr(given, "threads", None) or machine.cores()
    # Read by the engine and by PyTorch when they are first used.
    for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(threads)
    try:
        return given.do(given, threads) or 0
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """All commands."""
    whole = argparse.ArgumentParser(
        prog="fieldswarm_baselines",
        description="Reinforcement learning on the problems: train, score, export, plot.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    train = _command(commands, "train", _train, "train until the budget is spent; Ctrl-C and --resume as you like")
    train.add_argument("method", metavar="METHOD", help="ppo, td3, mappo, matd3, mappo-deeponet or matd3-deeponet")
    train.add_argument("problem", metavar="PROBLEM", help="as `agent-sim problems` lists them")
    train.add_argument(
        "--budget", type=seconds, default=600.0, help="of training alone, such as 10m or 20s (default 10m)"
    )
    train.add_argument("--agent-steps", type=int, default=0, help="to be reached besides (default 0)")
    train.add_argument("--seed", type=int, default=1, help="of networks, exploration and episodes (default 1)")
    train.add_argument(
        "--out", type=Path, default=Path("runs/baselines"), help="folder of runs (default runs/baselines)"
    )
    train.add_argument("--resume", action="store_true", help="go on with a run that is there")
    _threads(train)

    score = _command(commands, "score", _score, "score the best of runs, and add lines to a table")
    _runs(score)
    score.add_argument("--csv", type=Path, required=True, help="the table")
    score.add_argument("--episodes", type=int, help="the first of each set only")
    _threads(score)

    export = _command(commands, "export", _export, "write the best of a decentralised run as a policy for agents")
    export.add_argument("run", metavar="RUN", type=Path, help="folder of a run")
    export.add_argument("-o", "--out", type=Path, required=True, help="the blob")

    curves = _command(commands, "curves", _curves, "learning curves of runs as one table")
    _runs(curves)
    curves.add_argument("--csv", type=Path, required=True, help="the table")

    plot = _command(commands, "plot", _plot, "learning curves of a problem's runs as a picture")
    _runs(plot)
    plot.add_argument("-o", "--out", type=Path, required=True, help="the picture, .svg or .png")
    plot.add_argument("--ours", type=Path, help="curve of our trainer: a CSV of seconds, agent_steps, error")

    quick = _command(commands, "quick", _quick, "that all of this works, method by method, on heat-1d")
    quick.add_argument("--seconds", type=float, default=20.0, help="of each training (default 20)")
    quick.add_argument("--methods", nargs="+", help="these alone")
    return whole


def _command(commands, name: str, do, words: str) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    made.set_defaults(do=do)
    return made


def _runs(command: argparse.ArgumentParser) -> None:
    command.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="folder of a run")


def _threads(command: argparse.ArgumentParser) -> None:
    command.add_argument("--threads", type=int, help="to use at most (default: all cores)")


def seconds(text: str) -> float:
    """Of a text such as 10m, 20s or 1h."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = text[:-1], text[-1:]
    try:
        found = float(number) * units[unit]
    except (KeyError, ValueError):
        found = 0.0
    if not found > 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no time: give it as 20s, 10m or 1h")
    return found


# What follows is imported when it is asked for: some of it takes seconds to load.


def _train(given: argparse.Namespace, threads: int) -> int:
    from .training import Budget, train

    budget = Budget(given.budget, given.agent_steps)
    run = train(
        given.method,
        given.problem,
        budget,
        seed=given.seed,
        runs=given.out,
        resume=given.resume,
        threads=threads,
    )
    return 0 if run.progress.complete else 1


def _score(given: argparse.Namespace, threads: int) -> None:
    from .scores import score

    for run in given.runs:
        score(run, given.csv, given.episodes, threads)


def _export(given: argparse.Namespace, threads: int) -> None:
    from .scores import export

    export(given.run, given.out)


def _curves(given: argparse.Namespace, threads: int) -> None:
    from .curves import merge

    merge(given.runs, given.csv)


def _plot(given: argparse.Namespace, threads: int) -> None:
    from .curves import plot

    plot(given.runs, given.out, given.ours)


def _quick(given: argparse.Namespace, threads: int) -> int:
    from .quick import quick

    return quick(given.seconds, given.methods, threads)
