"""How far a training is, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Training

#: Seconds between two lines where there is no terminal.
LINE_EVERY = 10.0


class Progress:
    """A bar of tqdm where that is installed, else a line on stderr."""

    def __init__(self, training: Training) -> None:
        """Show a training from the step that it is at."""
        self.training = training
        self.bar: Any = _tqdm_bar(training) or _Line(training)

    def update(self) -> None:
        """Show the step that it is at now."""
        self.bar.set_postfix_str(_figures(self.training), refresh=False)
        self.bar.n = self.training.step
        self.bar.refresh()

    def close(self) -> None:
        """Show where it ended, and leave that."""
        self.update()
        self.bar.close()


def _figures(training: Training) -> str:
    figures = [("loss", training.loss), ("validation", training.best)]
    return "  ".join(f"{name} {value:.3g}" for name, value in figures if value is not None)


def _tqdm_bar(training: Training) -> Any | None:
    try:
        with warnings.catch_warnings():
            # A notebook without widgets gets a bar of characters; nobody needs to be told.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=training.steps, initial=training.step, desc=training.problem, unit="step")


class _Line:
    """A line that is written over on a terminal, and written anew now and then elsewhere."""

    def __init__(self, training: Training) -> None:
        self.what, self.steps = training.problem, training.steps
        self.n = self.first = training.step
        self.began = self.spoken = time.monotonic()
        self.figures = ""

    def set_postfix_str(self, figures: str, refresh: bool = False) -> None:
        self.figures = figures

    def text(self) -> str:
        rate = (self.n - self.first) / max(time.monotonic() - self.began, 1e-9)
        left = f"  eta {(self.steps - self.n) / rate:.0f} s" if rate > 0 else ""
        return f"{self.what}: step {self.n}/{self.steps}  {rate:.1f}/s{left}  {self.figures}"

    def refresh(self) -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if terminal:
            sys.stderr.write(f"\r\x1b[K{self.text()}")
            sys.stderr.flush()
        elif time.monotonic() - self.spoken >= LINE_EVERY:
            self.spoken = time.monotonic()
            print(self.text(), file=sys.stderr)

    def close(self) -> None:
        if sys.stderr is not None:
            start = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(f"{start}{self.text()}", file=sys.stderr)
