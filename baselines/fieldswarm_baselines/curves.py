"""Learning curves: tables and pictures."""

from __future__ import annotations

import csv
from dataclasses import astuple, fields
from pathlib import Path

from .refusal import Refused
from .runs import Point, Run

AXES = {"seconds": "seconds of training", "agent_steps": "agent-steps"}


def merge(folders: list[Path], table: Path) -> None:
    """The curves of runs as one table."""
    with open(table, "w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["problem", "method", "seed", *(field.name for field in fields(Point))])
        for folder in folders:
            run = Run.there(folder)
            asked = run.settings
            for point in run.curve():
                lines.writerow([asked["problem"], asked["method"], asked["seed"], *astuple(point)])


def plot(folders: list[Path], picture: Path, ours: Path | None = None) -> None:
    """Error against time and against agent-steps, of one problem's runs; seeds of a method have its colour."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    runs = [Run.there(folder) for folder in folders]
    problems = sorted({run.settings["problem"] for run in runs})
    if len(problems) > 1:
        raise Refused(f"a picture is of one problem, not of {' and '.join(problems)}: plot them one by one")
    curves = [(run.settings["method"], [vars(point) for point in run.curve()]) for run in runs]
    if ours is not None:
        curves.append(("ours", _ours(ours)))
    methods = list(dict.fromkeys(method for method, _ in curves))
    colours = {method: "black" if method == "ours" else f"C{k}" for k, method in enumerate(methods)}
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, (axis, words) in zip(panels, AXES.items(), strict=True):
        named: set[str] = set()
        for method, points in curves:
            label = None if method in named else method
            named.add(method)
            across, up = [point[axis] for point in points], [point["error"] for point in points]
            panel.plot(across, up, color=colours[method], label=label, linewidth=1.2)
        panel.set(xscale="log", yscale="log", xlabel=words)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("error of validation episodes")
    panels[0].set_title(problems[0], loc="left")
    panels[1].legend(frameon=False)
    figure.savefig(picture)
    pyplot.close(figure)
    print(picture)


def _ours(table: Path) -> list[dict[str, float]]:
    """The curve of our trainer."""
    with open(table, newline="") as file:
        return [{name: float(row[name]) for name in (*AXES, "error")} for row in csv.DictReader(file)]
