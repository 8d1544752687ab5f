"""Policies from networks that were trained elsewhere.

:func:`deeponet` says what a policy for a problem looks like: its header and the shapes of its
arrays. Numbers for it may come from NumPy (:meth:`Design.policy`), PyTorch (:func:`from_torch`)
or Flax (:func:`from_flax`); what comes out runs on any board.

>>> import numpy as np
>>> design = deeponet("heat-1d", branch=[16], trunk=[8], head=[8], window=12)
>>> design.shapes["branch.0.weight"]
(24, 16)
>>> rng = np.random.default_rng(1)
>>> arrays = {name: rng.normal(0, 0.1, shape) for name, shape in design.shapes.items()}
>>> policy = design.policy(arrays)
>>> policy.problem, policy.self_test()
('heat-1d', True)

A network reads features (:attr:`Design.features` of them: errors, slopes, the coarse picture of
the whole, the memory; docs/policy-format.md has their order) and the waves of its position, and
gives outputs whose tanh is the share of the largest force and velocity. That last tanh is the
agent's: leave it out of the head.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._native import Policy, blank_header

PARTS = ("convolutions", "branch", "trunk", "head")
KINDS = "a policy has dense layers and convolutions, each with weights and a bias"

__all__ = ["Design", "deeponet", "from_flax", "from_torch"]


@dataclass(frozen=True)
class Design:
    """What a policy looks like before it has numbers."""

    header: dict[str, Any]
    """All but the numbers, as :meth:`fieldswarm.Policy.from_arrays` takes it."""
    frequencies: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    """Of the waves that the trunk reads."""

    @property
    def features(self) -> int:
        """Values that the network's branch, or its first convolution's branch, reads."""
        return _branch_inputs(self.header, convolved=False)

    @property
    def outputs(self) -> int:
        """Values that the head gives: those of the memory first, then force and velocities."""
        return self.header["network"]["head"][-1]["outputs"]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays that a policy needs, by name; weights are ``[inputs, outputs]``."""
        network = self.header["network"]
        shapes: dict[str, tuple[int, ...]] = {}
        for part in PARTS:
            for k, layer in enumerate(network[part]):
                kernel = (3, 3) if part == "convolutions" else ()
                shapes[f"{part}.{k}.weight"] = (*kernel, layer["inputs"], layer["outputs"])
                shapes[f"{part}.{k}.bias"] = (layer["outputs"],)
        return shapes

    def policy(self, arrays: Mapping[str, np.ndarray]) -> Policy:
        """The policy with these numbers, which have the names and shapes of :attr:`shapes`.

        Arrays of other types than float32 are converted; frequencies are the design's.
        """
        numbers = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
        if self.frequencies.size:
            numbers["frequencies"] = self.frequencies
        return Policy.from_arrays(numbers, self.header)


def deeponet(
    problem: str,
    *,
    branch: Sequence[int] = (64, 64),
    trunk: Sequence[int] = (32, 32),
    head: Sequence[int] = (32,),
    window: int | None = None,
    channels: Sequence[str] | None = None,
    wide: tuple[int, int] | None = None,
    frequencies: Sequence[float] = (1.0, 2.0, 4.0, 8.0),
    fusion: str = "concatenate",
    activation: str = "tanh",
    norm: str = "none",
    memory: int = 0,
    convolutions: Sequence[Mapping[str, Any]] = (),
    flatten: str = "none",
    governor: Mapping[str, float] | None = None,
    weights: str = "f32",
) -> Design:
    """A policy that joins what an agent sees (branch) with where it is (trunk).

    ``problem`` is a published problem's name or a described field's file: what agents may do,
    the domain, the clock and, unless given here, the window come from it. ``branch``, ``trunk``
    and ``head`` are the lengths of the layers' outputs; the head's last layer, to force and
    velocities, is added. All layers but that one end in ``activation``: "tanh", "relu" or
    "identity". ``norm`` is "soft" for branch layers that divide their sums by their length + 1.
    Without a ``trunk`` agents do not know where they are.

    ``channels`` are those of the observation: "error", "slope", "across". ``wide`` is a coarse
    picture of the whole domain. ``fusion`` is "concatenate" or "multiply". ``memory`` numbers
    are read behind the features, and the head gives a push and a gate for each before all else.
    ``convolutions`` are of 3 by 3 cells, each like ``{"outputs": 8, "stride": 2, "padding": 1}``.
    ``governor`` eases off outputs that overshoot, like ``{"growth": 1.01, "floor": 0.001,
    "band": 0.0}``. ``weights`` are stored as "f32" or "int8".

    >>> design = deeponet("heat-2d", branch=[32], trunk=[], window=8)
    >>> design.features, design.outputs
    (64, 3)
    """
    header = copy.deepcopy(blank_header(problem, window))
    sensing, network, limits = header["sensing"], header["network"], header["limits"]
    if channels is not None:
        sensing["channels"] = list(channels)
    if wide is not None:
        sensing["wide"] = [int(cells) for cells in wide]
    if memory:
        network["memory"] = {"floats": int(memory), "leak": 0.05, "gain": 0.2}
    network["fusion"], network["encoding"], network["flatten"] = fusion, weights, flatten
    limits["governor"] = {key: float(value) for key, value in governor.items()} if governor else None
    inputs = len(sensing["channels"])
    for layer in convolutions:
        outputs = int(layer["outputs"])
        network["convolutions"].append(
            {
                "inputs": inputs,
                "outputs": outputs,
                "stride": int(layer.get("stride", 1)),
                "padding": int(layer.get("padding", 0)),
                "activation": layer.get("activation", activation),
            }
        )
        inputs = outputs

    def chain(inputs: int, lengths: Sequence[int], norm: str) -> list[dict[str, Any]]:
        layers = []
        for outputs in lengths:
            layers.append({"inputs": inputs, "outputs": int(outputs), "norm": norm, "activation": activation})
            inputs = int(outputs)
        return layers

    axes = sensing["axes"]
    waves = 2 * axes * len(frequencies) if len(trunk) else 0
    seen = _branch_inputs(header, convolved=True)
    network["branch"] = chain(seen, branch, norm)
    network["trunk"] = chain(waves, trunk, "none")
    joined = branch[-1] if len(branch) else seen
    if fusion == "concatenate" and len(trunk):
        joined += trunk[-1]
    driven = (limits["force"] is not None) + (axes if limits["velocity"] is not None else 0)
    network["head"] = chain(joined, [*head, 2 * memory + driven], "none")
    network["head"][-1]["activation"] = "identity"
    kept = frequencies if len(trunk) else ()
    return Design(header, np.asarray(kept, np.float32))


def _branch_inputs(header: Mapping[str, Any], *, convolved: bool) -> int:
    """Values of an observation, as the branch reads them or as the first convolution does."""
    sensing, network = header["sensing"], header["network"]
    side, depth = sensing["samples"], len(sensing["channels"])
    for layer in network["convolutions"] if convolved else ():
        side = (side + 2 * layer["padding"] - 3) // max(layer["stride"], 1) + 1
        depth = layer["outputs"]
    rows, columns = sensing["wide"] or (0, 0)
    memory = (network["memory"] or {"floats": 0})["floats"]
    return side ** sensing["axes"] * depth + rows * columns + memory


def from_torch(network: Any, design: Design) -> Policy:
    """The policy of a PyTorch module, or of its ``state_dict()``.

    Layers are taken in the order in which the module has them, from its children ``branch``,
    ``trunk`` and ``head`` (and ``convolutions``), whatever numbers they have there: ``Linear``
    has weights ``[outputs, inputs]``, ``Conv2d`` ``[outputs, inputs, 3, 3]``. A module that
    flattens a picture has its channels first; here cells come first, and the weights behind are
    brought into that order.

    A layer without bias has one of zeros.
    """
    state = network.state_dict() if hasattr(network, "state_dict") else network
    if not isinstance(state, Mapping):
        raise TypeError(f"a {type(network).__name__} is neither a torch module nor a state_dict")
    parts: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for name, tensor in state.items():
        array = _to_numpy(name, tensor)
        part, _, rest = name.partition(".")
        layer, _, kind = rest.rpartition(".")
        if kind == "weight":
            array = np.transpose(array, (2, 3, 1, 0)) if array.ndim == 4 else array.T
        parts.setdefault(part, {}).setdefault(layer, {})[kind] = array
    return design.policy(_numbered(parts, design))


def from_flax(parameters: Mapping[str, Any], design: Design) -> Policy:
    """The policy of Flax parameters: nested mappings, a ``kernel`` and a ``bias`` for each layer.

    ``parameters`` may have a level ``params``. Below ``branch``, ``trunk``, ``head`` (and
    ``convolutions``) layers are in the order of the numbers in their names: ``Dense_0``,
    ``Dense_1``. Kernels are ``[inputs, outputs]``, those of convolutions ``[3, 3, inputs,
    outputs]``; nothing is turned around.
    """
    if not isinstance(parameters, Mapping):
        raise TypeError(f"a {type(parameters).__name__} is no mapping of Flax parameters")
    tree = parameters.get("params", parameters)
    parts: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for part, layers in tree.items():
        if not isinstance(layers, Mapping):
            raise TypeError(f"'{part}' has no layers: give kernels and biases below branch, trunk and head")
        if "kernel" in layers:
            layers = {"0": layers}
        for name in sorted(layers, key=_number):
            found = layers[name]
            if not isinstance(found, Mapping) or "kernel" not in found:
                raise ValueError(f"the layer '{part}.{name}' has no kernel; {KINDS}")
            arrays = {
                "weight" if key == "kernel" else key: _to_numpy(f"{part}.{name}.{key}", array)
                for key, array in found.items()
            }
            parts.setdefault(part, {})[name] = arrays
    return design.policy(_numbered(parts, design, channels_last=True))


def _numbered(
    parts: Mapping[str, Mapping[str, dict[str, np.ndarray]]],
    design: Design,
    *,
    channels_last: bool = False,
) -> dict[str, np.ndarray]:
    """The arrays under the names that a policy has them."""
    arrays: dict[str, np.ndarray] = {}
    for part, layers in parts.items():
        if part not in PARTS:
            raise ValueError(f"there is no place for '{part}': layers are below {', '.join(PARTS)}")
        for k, (name, kinds) in enumerate(layers.items()):
            for kind, array in kinds.items():
                if kind not in ("weight", "bias"):
                    raise ValueError(f"the layer '{part}.{name}' has '{kind}'; {KINDS}")
                arrays[f"{part}.{k}.{kind}"] = array
            weight = kinds.get("weight")
            if weight is not None and "bias" not in kinds:
                arrays[f"{part}.{k}.bias"] = np.zeros(weight.shape[-1], np.float32)
    if not channels_last and design.header["network"]["convolutions"] and "branch.0.weight" in arrays:
        arrays["branch.0.weight"] = _cells_first(arrays["branch.0.weight"], design)
    return arrays


def _cells_first(weight: np.ndarray, design: Design) -> np.ndarray:
    """The rows of the layer behind convolutions, from channel after channel to cell after cell."""
    depth = design.header["network"]["convolutions"][-1]["outputs"]
    expected = design.shapes["branch.0.weight"]
    if weight.shape != expected:
        return weight  # refused with both shapes where all are
    side2 = (_branch_inputs(design.header, convolved=True) - _beside(design.header)) // depth
    near = weight[: side2 * depth].reshape(depth, side2, -1).transpose(1, 0, 2)
    return np.concatenate([near.reshape(side2 * depth, -1), weight[side2 * depth :]])


def _beside(header: Mapping[str, Any]) -> int:
    """What the branch reads behind the cells of a window: the coarse picture and the memory."""
    rows, columns = header["sensing"]["wide"] or (0, 0)
    return rows * columns + (header["network"]["memory"] or {"floats": 0})["floats"]


def _number(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return (int(digits) if digits else 0, name)


def _to_numpy(name: str, tensor: Any) -> np.ndarray:
    """A tensor of any package as an array of float32."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().numpy()
    array = np.asarray(tensor)
    if array.dtype.kind != "f":
        raise TypeError(f"'{name}' has elements of {array.dtype}; weights are floating-point numbers")
    return array.astype(np.float32)
