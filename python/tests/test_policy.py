"""Policies from files and arrays, and agents that act."""

import doctest
import pickle
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fieldswarm
from fieldswarm import Policy, build

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "policies").glob("*.policy"))
FIELDS = sorted((ROOT / "examples" / "fields").glob("*.policy"))


def shown(policy, agents, seed=0):
    """Noise of the shapes that a policy looks at."""
    rng = np.random.default_rng(seed)
    sensing, limits = policy.header["sensing"], policy.header["limits"]
    axes = sensing["axes"]

    def noise(*shape):
        return rng.uniform(-1, 1, shape).astype(np.float32)

    side = (sensing["window"] + 2,) * axes
    low, high = np.array(limits["low"][:axes]), np.array(limits["high"][:axes])
    observation = {
        "field": noise(agents, *side),
        "position": (low + (high - low) * rng.uniform(0.1, 0.9, (agents, axes))).astype(np.float32),
    }
    if sensing["target"]:
        observation["target"] = noise(agents, *side)
    if sensing["wide"]:
        observation["wide_field"] = noise(*sensing["wide"][:axes])
        if sensing["target"]:
            observation["wide_target"] = noise(*sensing["wide"][:axes])
    return observation


@pytest.mark.parametrize("path", SHIPPED + FIELDS, ids=lambda path: path.stem)
def test_arrays_make_the_same_bytes_again(path):
    policy = Policy.load(path)
    assert policy.self_test()
    arrays, header = policy.to_arrays()
    assert all(array.dtype == np.float32 for array in arrays.values())
    again = Policy.from_arrays(arrays, header)
    assert again.bytes == path.read_bytes()
    assert again.hash == policy.hash
    assert again.header == header


def test_there_are_eight_shipped_policies():
    assert len(SHIPPED) == 8
    for path in SHIPPED:
        assert Policy.shipped(path.stem).bytes == path.read_bytes()


def test_a_policy_is_saved_whole_and_pickled(tmp_path):
    policy = Policy.shipped("heat-1d")
    policy.save(tmp_path / "my.policy")
    assert Policy.load(tmp_path / "my.policy").bytes == policy.bytes
    assert pickle.loads(pickle.dumps(policy)).hash == policy.hash
    assert policy.problem in repr(policy)
    with pytest.raises(OSError, match="nowhere"):
        policy.save(tmp_path / "nowhere" / "my.policy")


class SplitMix:
    """The generator of agent-core's tests."""

    def __init__(self, state):
        self.state = state

    def bits(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def next(self):
        return np.float32(self.bits() >> 40) / np.float32(1 << 23) - np.float32(1)


def noise_between_walls(header, random):
    """What agent-core/tests/sample shows an agent, to the bit."""
    sensing = header["sensing"]
    axes, side, centre = sensing["axes"], sensing["window"] + 2, 1 + sensing["window"] // 2
    inside = np.zeros((1, axes, 2), np.uint16)
    for axis in range(axes):
        for end, room in enumerate((centre, side - 1 - centre)):
            near = min(random.bits() % (2 * room + 2), room)
            inside[0, axis, end] = near if end == 0 else centre + near
    outside = np.ones((side,) * axes, bool)
    outside[tuple(slice(first, last + 1) for first, last in inside[0].tolist())] = False

    def noise(shape):
        count = int(np.prod(shape))
        return np.array([np.float32(3) * random.next() for _ in range(count)], np.float32).reshape(shape)

    observation = {"inside": inside}
    for name in ("field", "target") if sensing["target"] else ("field",):
        cells = noise((side,) * axes)
        cells[outside] = np.nan
        observation[name] = cells[None]
    if sensing["wide"]:
        for name in ("wide_field", "wide_target") if sensing["target"] else ("wide_field",):
            observation[name] = noise(sensing["wide"][:axes])
    return observation


GOLDEN = re.findall(
    r'golden!\(\s*"(.*?)",.*?(0x[0-9a-f_]+)\s*\)',
    (ROOT / "agent-core" / "tests" / "golden.rs").read_text(),
    re.DOTALL,
)


@pytest.mark.parametrize(("name", "digest"), GOLDEN, ids=[name for name, _ in GOLDEN])
def test_agents_give_the_bits_of_agent_core(name, digest):
    """The walk of agent-core/tests/golden.rs: noise, faults, silences; the CRC of all actions."""
    policy = Policy.load(ROOT / "agent-core" / "tests" / "golden" / name)
    agents, header, random = policy.agents(1), policy.header, SplitMix(2024)
    timing, limits, axes = header["timing"], header["limits"], header["sensing"]["axes"]
    low, high = np.array(limits["low"], np.float32), np.array(limits["high"], np.float32)
    modes = ["waiting", "active", "holding", "failed-safe"]
    found, now_us, half = 0, 0, np.float32(0.5)
    for step in range(300):
        observation = noise_between_walls(header, random)
        if step % 13 == 5:
            observation["field"][:] = np.nan
        position = [low[k] + (half + half * random.next()) * (high[k] - low[k]) for k in range(2)]
        observation["position"] = np.array([position[:axes]], np.float32)
        now_us += 2 * timing["fail_safe_us"] if step % 50 == 49 else timing["period_us"]
        if step % 7 == 3 or step % 50 == 49:
            actions = agents.idle(now_us)
        else:
            actions = agents.act({**observation, "time_us": now_us})
        row = np.zeros(3, np.float32)
        row[: 1 + axes] = actions[0]
        found = zlib.crc32(row.tobytes() + bytes([modes.index(agents.modes[0])]), found)
    assert found == int(digest, 16)


def test_all_golden_files_are_found():
    assert len(GOLDEN) == 10


def reference(policy, observation, agent):
    """The network in NumPy and float64, with an empty memory, by docs/policy-format.md."""
    arrays, header = policy.to_arrays()
    error = observation["field"][agent].astype(float) - observation["target"][agent]
    slope = (error[2:] - error[:-2]) / 2
    features = np.concatenate([error[1:-1], slope, np.zeros(header["network"]["memory"]["floats"])])

    def run(part, x):
        for k, layer in enumerate(header["network"][part]):
            x = x @ arrays[f"{part}.{k}.weight"].astype(float) + arrays[f"{part}.{k}.bias"]
            if layer["norm"] == "soft":
                x = x / (np.linalg.norm(x) + 1)
            if layer["activation"] == "tanh":
                x = np.tanh(x)
        return x

    angles = np.pi * arrays["frequencies"] * float(observation["position"][agent, 0])
    joined = np.concatenate(
        [run("branch", features), run("trunk", np.concatenate([np.sin(angles), np.cos(angles)]))]
    )
    limits = np.array([header["limits"]["force"], header["limits"]["velocity"]])
    return limits * np.tanh(run("head", joined)[-2:])


def test_actions_are_those_of_the_format():
    policy = Policy.shipped("heat-1d")
    observation = shown(policy, 20)
    # Far from the walls, so that no velocity is cut.
    observation["position"] = np.linspace(0.3, 0.7, 20, dtype=np.float32)[:, None]
    actions = policy.act(observation)
    for agent in range(20):
        expected = reference(policy, observation, agent)
        np.testing.assert_allclose(actions[agent], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_an_agent_does_alone_what_it_does_among_others(path):
    policy = Policy.load(path)
    together, alone = policy.agents(18), [policy.agents(1) for _ in range(18)]
    for step in range(4):
        observation = shown(policy, 18, step)
        actions = together.act(observation)
        axes = policy.header["sensing"]["axes"]
        assert actions.shape == (18, 1 + axes) and actions.dtype == np.float32
        for agent, one in enumerate(alone):
            own = {k: v if k.startswith("wide") else v[agent : agent + 1] for k, v in observation.items()}
            assert one.act(own).tobytes() == actions[agent : agent + 1].tobytes()
        if step == 0:
            assert policy.act(observation).tobytes() == actions.tobytes()
            own = {k: v if k.startswith("wide") else v[7] for k, v in observation.items()}
            assert policy.act(own).tobytes() == actions[7].tobytes()
            assert policy.act(SimpleNamespace(**observation)).tobytes() == actions.tobytes()
    assert together.modes == ["active"] * 18


def test_agents_remember_hold_fail_safe_and_forget():
    policy = Policy.shipped("heat-1d")
    agents = policy.agents(2)
    observation = shown(policy, 2)
    first = agents.act(observation)
    assert agents.time_us == 1000
    assert agents.act(observation).tobytes() != first.tobytes(), "a memory fills"
    observation["field"][0] = np.nan
    agents.act(observation)
    assert agents.modes == ["holding", "active"]
    assert np.all(agents.idle(1_000_000) == 0)
    assert agents.modes == ["failed-safe"] * 2
    agents.reset()
    assert agents.modes == ["waiting"] * 2 and agents.time_us == 0
    assert agents.act(shown(policy, 2)).tobytes() == first.tobytes()


def test_inside_says_where_the_walls_are():
    policy = Policy.shipped("heat-1d")
    observation = shown(policy, 2)
    inside = np.array([[[0, 21]], [[8, 21]]], np.uint16)
    free, walled = policy.act(observation), policy.act({**observation, "inside": inside})
    assert free[0].tobytes() == walled[0].tobytes()
    assert free[1].tobytes() != walled[1].tobytes()


@pytest.mark.parametrize(
    ("change", "error", "facts"),
    [
        ({"field": np.zeros((3, 22))}, TypeError, "float64.*float32"),
        ({"field": [[0.0] * 22] * 3}, TypeError, "list"),
        ({"field": np.zeros((3, 21), np.float32)}, ValueError, r"\[3, 21\].*\[3, 22\]"),
        ({"field": np.zeros((2, 22), np.float32)}, ValueError, "target|2 agents"),
        ({"target": None}, ValueError, "no target"),
        ({"position": np.zeros((3, 2), np.float32)}, ValueError, r"position.*\[3, 2\].*\[3, 1\]"),
        ({"inside": np.zeros((3, 1, 2), np.int64)}, TypeError, "inside.*int64.*uint16"),
        ({"wide_field": np.zeros((4, 4), np.float32)}, ValueError, "window alone"),
        ({"time_us": -1}, OverflowError, "negative"),
        ({"time_us": "soon"}, TypeError, "int"),
    ],
)
def test_observations_that_do_not_fit_are_refused(change, error, facts):
    policy = Policy.shipped("heat-1d")
    with pytest.raises(error, match=facts):
        policy.agents(3).act({**shown(policy, 3), **change})


def test_bytes_arrays_and_headers_that_do_not_fit_are_refused():
    policy = Policy.shipped("heat-1d")
    arrays, header = policy.to_arrays()
    with pytest.raises(ValueError, match="damaged"):
        Policy.from_bytes(policy.bytes[:-1] + b"x")
    with pytest.raises(ValueError, match="cut off"):
        Policy.from_bytes(policy.bytes[:100])
    with pytest.raises(OSError, match="nowhere"):
        Policy.load("nowhere.policy")
    with pytest.raises(ValueError, match="heat-9d"):
        Policy.shipped("heat-9d")
    with pytest.raises(TypeError, match=r"head.0.bias.*float64"):
        Policy.from_arrays({**arrays, "head.0.bias": np.zeros(32)}, header)
    with pytest.raises(ValueError, match=r"head.0.bias.*\(31,\).*\(32,\)"):
        Policy.from_arrays({**arrays, "head.0.bias": np.zeros(31, np.float32)}, header)
    with pytest.raises(ValueError, match=r"head.0.bias.*NaN"):
        Policy.from_arrays({**arrays, "head.0.bias": np.full(32, np.nan, np.float32)}, header)
    with pytest.raises(ValueError, match="unknown field `colour`"):
        Policy.from_arrays(arrays, {**header, "colour": "red"})
    with pytest.raises(ValueError, match="too many"):
        policy.agents(1 << 40)


def test_a_policy_of_int8_weights_comes_back_too():
    arrays, header = Policy.shipped("heat-1d").to_arrays()
    header["network"]["encoding"] = "int8"
    small = Policy.from_arrays(arrays, header)
    assert 3 * len(small.bytes) < len(Policy.shipped("heat-1d").bytes)
    again = Policy.from_arrays(*small.to_arrays())
    assert again.bytes == small.bytes


def test_a_design_takes_numbers_of_numpy_torch_and_flax_and_makes_the_same_policy():
    design = build.deeponet("heat-1d", branch=[16, 8], trunk=[8], head=[8], window=10, norm="soft", memory=2)
    rng = np.random.default_rng(3)
    arrays = {name: rng.normal(0, 0.3, shape) for name, shape in design.shapes.items()}
    policy = design.policy(arrays)
    assert policy.problem == "heat-1d"
    assert design.features == 2 * 10 + 2 and design.outputs == 2 * 2 + 2
    flax = {"params": {}}
    for part in ("branch", "trunk", "head"):
        count = len(design.header["network"][part])
        flax["params"][part] = {
            f"Dense_{k}": {
                "kernel": arrays[f"{part}.{k}.weight"],
                "bias": arrays[f"{part}.{k}.bias"],
            }
            for k in range(count)
        }
    assert Policy.from_flax(flax, design).bytes == policy.bytes
    # As nn.Sequential numbers its layers, with activations in between.
    state = {}
    for name, array in arrays.items():
        part, k, kind = name.split(".")
        state[f"{part}.{2 * int(k)}.{kind}"] = array.T
    assert Policy.from_torch(state, design).bytes == policy.bytes
    with pytest.raises(ValueError, match="tail"):
        Policy.from_torch({**state, "tail.0.weight": np.zeros((2, 2))}, design)
    with pytest.raises(ValueError, match=r"branch.0.weight.*24 . 16.*22 . 16"):
        Policy.from_torch({**state, "branch.0.weight": np.zeros((16, 24))}, design)


def test_a_module_of_torch_does_on_agents_what_it_does_itself():
    torch = pytest.importorskip("torch", reason="pip install torch")
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = nn.Sequential(
                nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3)
            )
            self.branch = nn.Sequential(nn.Linear(6 * 2 * 2, 16), nn.Tanh())
            self.trunk = nn.Sequential(nn.Linear(16, 8), nn.Tanh())
            self.head = nn.Sequential(nn.Linear(24, 8), nn.Tanh(), nn.Linear(8, 3))

        def forward(self, picture, waves):
            seen = self.branch(torch.relu(self.convolutions(picture)).flatten(1))
            return torch.tanh(self.head(torch.cat([seen, self.trunk(waves)], 1)))

    torch.manual_seed(0)
    net = Net().double()
    design = build.deeponet(
        "heat-2d",
        branch=[16],
        trunk=[8],
        head=[8],
        window=8,
        convolutions=[
            {"outputs": 4, "stride": 2, "padding": 1, "activation": "relu"},
            {"outputs": 6, "activation": "relu"},
        ],
    )
    policy = Policy.from_torch(net, design)
    observation = shown(policy, 12)
    share = np.linspace(0.3, 0.7, 24).reshape(12, 2)
    limits = policy.header["limits"]
    low, high = np.array(limits["low"]), np.array(limits["high"])
    observation["position"] = (low + share * (high - low)).astype(np.float32)
    share = (observation["position"].astype(float) - low) / (high - low)
    angles = np.pi * share[:, :, None] * design.frequencies.astype(float)
    waves = np.concatenate([np.sin(angles).reshape(12, -1), np.cos(angles).reshape(12, -1)], 1)
    errors = observation["field"].astype(float) - observation["target"]
    with torch.no_grad():
        expected = net(torch.tensor(errors[:, None, 1:-1, 1:-1]), torch.tensor(waves)).numpy()
    expected = expected * [limits["force"], limits["velocity"], limits["velocity"]]
    np.testing.assert_allclose(policy.act(observation), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("module", [build, fieldswarm._native], ids=["build", "native"])
def test_examples_in_docstrings_run(module):
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner()
    names = {"Policy": Policy, "deeponet": build.deeponet}
    public = module.__all__ if module is build else ["Policy", "Agents"]
    for thing in [module, *(getattr(module, name) for name in public)]:
        for test in finder.find(thing, thing.__name__, globs=dict(names)):
            runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


def test_the_example_of_the_document_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "import.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(block, names)
    assert names["actions"].shape == (8, 2)
    assert Policy.load("my.policy").problem == "heat-1d"
