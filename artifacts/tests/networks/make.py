"""Writes the networks that the import is tested with, as PyTorch and ONNX' own helpers write them.

Needs torch, onnx, onnxscript and safetensors; what it wrote lies beside it.
"""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).parent


def export(net, inputs, names, path):
    options = {
        "input_names": names,
        "output_names": ["actions"],
        "external_data": False,
    }
    torch.onnx.export(net.eval(), inputs, HERE / path, dynamo=True, **options)
    # Where in whose files its operators come from.
    model = onnx.load(HERE / path)
    for thing in [
        model,
        model.graph,
        *model.graph.node,
        *model.graph.input,
        *model.graph.output,
    ]:
        del thing.metadata_props[:]
        thing.doc_string = ""
    for thing in [*model.graph.value_info, *model.graph.initializer]:
        del thing.metadata_props[:]
    onnx.save(model, HERE / path)


class Line(nn.Module):
    """For heat-1d with a window of 8: soft norms, concatenation, a tanh at the end."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(16, 12), nn.Linear(12, 8))
        self.trunk = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.head = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, observation, waves):
        for layer in self.branch:
            h = layer(observation)
            h = h / (torch.linalg.vector_norm(h, dim=1, keepdim=True) + 1)
            observation = torch.tanh(h)
        return torch.tanh(self.head(torch.cat([observation, self.trunk(waves)], 1)))


class Plane(nn.Module):
    """For heat-2d with a window of 8: convolutions and nothing of the position."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 3, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(3, 4, 3),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(16, 8),
            nn.ReLU(),
            nn.Linear(8, 3),
        )

    def forward(self, observation):
        return self.layers(observation)


class Foreign(nn.Module):
    """With a layer that no policy has."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 8), nn.Sigmoid(), nn.Linear(8, 2))

    def forward(self, observation):
        return self.layers(observation)


def by_hand(path):
    """For heat-1d with a window of 8: MatMul and Add, the trunk first, layers multiplied."""
    rng = np.random.default_rng(4)
    shapes = {
        "b0": (16, 8),
        "b0b": (8,),
        "t0": (8, 8),
        "t0b": (8,),
        "h0": (8, 2),
        "h0b": (2,),
    }
    arrays = {
        name: rng.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }

    def node(operator, inputs, output, **settings):
        return helper.make_node(operator, inputs, [output], **settings)

    nodes = [
        node("MatMul", ["seen", "b0"], "b1"),
        node("Add", ["b0b", "b1"], "b2"),
        node("Relu", ["b2"], "b3"),
        node("MatMul", ["waves", "t0"], "t1"),
        node("Add", ["t1", "t0b"], "t2"),
        node("Tanh", ["t2"], "t3"),
        node("Mul", ["t3", "b3"], "joint"),
        node("Gemm", ["joint", "h0", "h0b"], "actions"),
    ]
    graph = helper.make_graph(
        nodes,
        "by hand",
        [
            helper.make_tensor_value_info("seen", TensorProto.FLOAT, ["n", 16]),
            helper.make_tensor_value_info("waves", TensorProto.FLOAT, ["n", 8]),
        ],
        [helper.make_tensor_value_info("actions", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.checker.check_model(model)
    onnx.save(model, HERE / path)


def main():
    torch.manual_seed(1)
    line = Line()
    export(
        line,
        (torch.zeros(1, 16), torch.zeros(1, 8)),
        ["observation", "waves"],
        "line.onnx",
    )
    export(Plane(), (torch.zeros(1, 1, 8, 8),), ["observation"], "plane.onnx")
    export(Foreign(), (torch.zeros(1, 16),), ["observation"], "sigmoid.onnx")
    by_hand("by-hand.onnx")
    words = {"norm": "soft"}
    save_file(line.state_dict(), HERE / "line.safetensors", metadata=words)
    # The same as Flax has it: kernels, numbered by kind.
    flax = {}
    for name, tensor in line.state_dict().items():
        part, number, kind = name.split(".")
        number = int(number) if part == "branch" else int(number) // 2
        kind = {"weight": "kernel"}.get(kind, kind)
        flax[f"{part}.Dense_{number}.{kind}"] = np.ascontiguousarray(tensor.numpy().T)
    save_arrays(flax, HERE / "line-flax.safetensors", metadata=words)


if __name__ == "__main__":
    main()
