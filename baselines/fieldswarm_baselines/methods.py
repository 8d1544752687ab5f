"""Which methods there are, and the module that each is in.

Modules are imported when they are asked for: Stable-Baselines3 and TorchRL take seconds to load, and a method must
not fail because another's library is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from .learner import Learner
from .refusal import Refused

# By name: the module below this package and its function that begins a training.
PLACES = {
    "ppo": "ppo:begin",
    "td3": "td3:begin",
    "mappo": "mappo:begin",
    "matd3": "matd3:begin",
    "mappo-deeponet": "mappo:begin_deeponet",
    "matd3-deeponet": "matd3:begin_deeponet",
}
# The paper has these on turbulence-2d alone.
ABLATIONS = ("mappo-deeponet", "matd3-deeponet")
ABLATED = "turbulence-2d"


def beginning(method: str, problem: str) -> Callable[[str, int], Learner]:
    """What begins the training of a method: a function of problem and seed."""
    if method not in PLACES:
        raise Refused(f"there is no method '{method}'; choose one of: {', '.join(PLACES)}")
    if method in ABLATIONS and problem != ABLATED:
        raise Refused(f"{method} is an ablation on {ABLATED}, as in the paper; there is none on {problem}")
    module, function = PLACES[method].split(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), function)
