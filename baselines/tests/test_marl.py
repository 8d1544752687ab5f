from dataclasses import replace

import fieldswarm
import numpy as np
import pytest
import torch
from tensordict import TensorDict

from fieldswarm_baselines import mappo, marl_settings, matd3
from fieldswarm_baselines.learner import Diverged
from fieldswarm_baselines.patches import Pay, Swarms
from fieldswarm_baselines.replay import Replay

METHODS = {"mappo": mappo, "matd3": matd3}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A second instead of minutes."""
    for problem, row in marl_settings.MAPPO.items():
        monkeypatch.setitem(marl_settings.MAPPO, problem, replace(row, envs=2, rollout=8, minibatch=64))
    for problem, row in marl_settings.MATD3.items():
        few = replace(row, envs=2, batch=64, buffer=200, warm_up=4, steps=8)
        monkeypatch.setitem(marl_settings.MATD3, problem, few)


def weights(learner):
    """Of the actor that becomes a blob."""
    return list(learner.actor().parameters())


def meant(learner):
    """What the actor does without exploration."""
    seen = TensorDict({"agents": TensorDict({"observation": learner.swarms._observe()}, learner.swarms.size)}, [])
    with torch.no_grad():
        given = learner.actor()(seen)["agents", "logits"]
    return given[0, :, : learner.swarms.actions].tanh().numpy()


def difference(learner, problem, steps=10):
    """The largest between the actor and its blob on an episode, as a share of the limits."""
    policy, (envs, agents) = learner.controller(), learner.swarms.size
    simulation = fieldswarm.Simulation(problem, seed=7, policy=policy)
    batch = learner.swarms.env._patches.episodes.batch
    batch.reset(list(range(envs)), [7] * envs, [0] * envs, [agents] * envs, [[]] * envs)
    limits = [simulation.problem.force_max] + [simulation.problem.velocity_max] * simulation.problem.axes
    driven, worst, rng = np.flatnonzero(limits), 0.0, np.random.default_rng(1)
    for _ in range(steps):
        expected = meant(learner)
        given = policy.act(simulation.observation)
        columns = driven if given.shape[1] == len(limits) else range(given.shape[1])
        shares = given[:, columns] / np.asarray(limits)[driven]
        worst = max(worst, float(np.abs(expected - shares).max()))
        actions = rng.uniform(-0.3, 0.3, expected.shape).astype(np.float32)
        orders = np.zeros_like(given)
        orders[:, columns] = actions * np.asarray(limits)[driven]
        simulation.step(orders)
        batch.step(np.repeat(actions[None], envs, 0), shares=True)
    assert np.abs(expected).max() > 1e-5, "nothing was compared"
    return worst


@pytest.mark.parametrize("problem", list(marl_settings.MAPPO))
def test_agents_run_exactly_what_was_learnt(problem):
    learner = mappo.begin(problem, 1)
    shake(learner)
    assert difference(learner, problem) < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_ablations_are_our_own_network(method):
    learner = METHODS[method].begin_deeponet("turbulence-2d", 1)
    shake(learner)
    assert difference(learner, "turbulence-2d") < 1e-5
    branch = learner.controller().header["network"]["branch"]
    assert [(layer["outputs"], layer["norm"]) for layer in branch] == [(64, "soft"), (64, "soft")]


def shake(learner):
    """Makes agents do more than nothing."""
    with torch.no_grad():
        for part in weights(learner):
            part += 0.03 * torch.randn_like(part)


@pytest.mark.parametrize("problem", ["heat-1d", "ks-2d", "density-2d"])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_problem_is_learnt_from(method, problem):
    learner = METHODS[method].begin(problem, 1)
    before = [part.clone() for part in weights(learner)]
    learner.advance()
    assert learner.updates > 0 and learner.agent_steps >= 16 * fieldswarm.Problem(problem).agents
    assert any((a != b).any() for a, b in zip(before, weights(learner), strict=True))
    assert difference(learner, problem, steps=2) < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_what_is_restored_is_all_there_is(method, tmp_path):
    learner = METHODS[method].begin("heat-1d", 1)
    learner.advance()
    torch.save(learner.state(), tmp_path / "state")
    other = METHODS[method].begin("heat-1d", 2)
    other.restore(torch.load(tmp_path / "state", weights_only=False))
    same(learner.state(), other.state(), "state")
    assert (other.agent_steps, other.updates) == (learner.agent_steps, learner.updates)
    assert other.controller().bytes == learner.controller().bytes
    other.advance()


def same(a, b, name):
    """Whether they are the same to the bit, but for which of a replay's steps have followers."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            if key != "whole":
                same(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, list | tuple):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{name}.{k}")
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b), name
    else:
        assert a == b, name


def test_what_is_no_number_is_noticed():
    learner = mappo.begin("heat-1d", 1)
    with torch.no_grad():
        weights(learner)[0][0] = torch.inf
    with pytest.raises((Diverged, ValueError)):
        learner.advance()


def test_mappo_explores():
    learner = mappo.begin("heat-1d", 1)
    rollout = learner._collect()
    tried, meant = rollout["agents", "action"], rollout["agents", "loc"].tanh()
    assert (tried - meant).std() > 0.1


def test_rewards_are_of_the_window_and_of_the_whole():
    for share, root in ((1.0, False), (0.0, True)):
        swarms = Swarms("heat-1d", 2, 3, Pay(share, root))
        rewards, _, _ = swarms.step(torch.zeros(*swarms.size, 2))
        state = swarms.env.state()
        errors = np.square(state["field"] - state["target"])
        if share:
            cell = int(state["position"][0, 3, 0] * 99)
            expected = errors[0, cell - 10 : cell + 10].mean()
            assert rewards[0, 3] == pytest.approx(-expected, rel=1e-5)
        else:
            np.testing.assert_allclose(rewards[0], -np.sqrt(errors[0].mean()), rtol=1e-5)


def test_first_episodes_end_at_different_times():
    swarms, cuts = Swarms("heat-1d", 3, 1, Pay(1.0, True)), []
    for step in range(300):
        _, terminated, truncated = swarms.step(torch.zeros(*swarms.size, 2))
        cuts += [(step + 1, int(env)) for env in np.flatnonzero(truncated)]
        swarms.begin_anew(terminated | truncated)
    assert cuts == [(100, 0), (200, 1), (300, 2)]


def test_a_replay_never_draws_what_nothing_follows():
    def step(k):
        seen = torch.full((2, 3, 1), float(k))
        over = torch.tensor([k == 5, False])
        none = torch.zeros(2, dtype=torch.bool)
        replay.add({"observation": seen}, torch.zeros(2, 3, 1), seen[..., 0], none, over)

    replay = Replay(16, {"observation": torch.zeros(2, 3, 1)}, torch.zeros(2, 3, 1))
    for k in range(11):
        step(k)
    drawn = set()
    for _ in range(50):
        before, after, _, rewards, _ = replay.draw(16)
        assert torch.equal(after["observation"], before["observation"] + 1)
        assert torch.equal(rewards, before["observation"][..., 0])
        drawn |= set(before["observation"][:, 0, 0].tolist())
    assert drawn == {3, 4, 5, 6, 7, 8, 9}
