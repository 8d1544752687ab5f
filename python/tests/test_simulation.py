import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fieldswarm
from fieldswarm import Problem, Simulation, _native, build
from fieldswarm.envs import SwarmEnv

FIELDS = Path(__file__).parents[2] / "examples/fields"


def test_all_published_problems_step_and_score():
    for name in fieldswarm.problems():
        simulation = Simulation(name, steps=3)
        problem = simulation.problem
        assert simulation.field.shape == tuple(problem.shape)
        while not simulation.done:
            simulation.step()
        assert set(simulation.score) >= {"headline", "final_error", "time_mean_error"}
        assert simulation.score["headline"] == simulation.score[problem.headline]


def test_views_stay_where_they_are_and_cannot_be_written_to():
    simulation = Simulation("heat-1d")
    seen = simulation.observation["field"]
    before = seen.copy()
    simulation.step(np.full((8, 2), 1.0))
    assert simulation.observation["field"] is seen
    assert not np.array_equal(seen, before)
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1.0


def test_patches_are_the_field_around_agents():
    simulation = Simulation("ks-1d", agents=3, window=8)
    field, patches = simulation.field, simulation.observation["field"]
    assert patches.shape == (3, 10)
    for patch in patches:
        around = [np.roll(field, -k)[:10] for k in range(len(field))]
        assert min(np.abs(a - patch).max() for a in around) < 1e-6


def test_rest_is_what_nobody_does():
    alone = fieldswarm.run("heat-1d", controller="none", seed=5, steps=40)
    simulation = Simulation("heat-1d", seed=5, steps=40)
    while not simulation.done:
        simulation.step()
    assert simulation.error == alone.errors[-1]
    np.testing.assert_array_equal(simulation.field.astype(np.float32), alone.fields[-1])


def test_the_same_seed_gives_the_same_bits():
    a, b = (fieldswarm.run("heat-1d", seed=2, faults=["noise,std=0.1"], steps=20) for _ in range(2))
    assert a.csv() == b.csv()
    assert a.csv() != fieldswarm.run("heat-1d", seed=3, faults=["noise,std=0.1"], steps=20).csv()


def test_files_describe_problems_too(tmp_path):
    simulation = Simulation(str(FIELDS / "excitable-tissue.toml"), steps=2)
    simulation.step()
    # Two fields, both of which agents see.
    assert simulation.problem.fields == 2 and simulation.field.shape[0] == 2
    with pytest.raises(ValueError, match=r"line\.toml: it cannot be read"):
        Problem(str(tmp_path / "line.toml"))


def test_agents_may_see_several_fields():
    path = FIELDS / "excitable-tissue.toml"
    design = build.deeponet(str(path), branch=[8], trunk=[4], head=[6])
    rng = np.random.default_rng(1)
    policy = design.policy({name: rng.normal(size=shape) for name, shape in design.shapes.items()})
    simulation = Simulation(str(path), steps=3, policy=policy)
    agents = policy.agents(36)
    for _ in range(3):
        # The windows of 12 by 12 without the halo, at the walls too.
        both, seen = simulation.field, simulation.observation
        assert seen["wide_field"].shape == (36, 12, 12)
        middle = 14
        for field, patch in (both[0], seen["field"][middle, 1:-1, 1:-1]), (both[1], seen["wide_field"][middle]):
            windows = np.lib.stride_tricks.sliding_window_view(field, (12, 12))
            assert (windows.astype(np.float32) == patch).all(axis=(2, 3)).any()
        simulation.step(agents.act(simulation.observation))
    env = SwarmEnv(str(path), frequencies=[], steps=2)
    observations, _ = env.reset(seed=1)
    assert observations["agent_0"].shape == (2 * 144,)
    with pytest.raises(ValueError, match="see several fields"):
        Simulation(str(path), wide=(41, 41))


def test_problems_pickle_and_have_forms():
    problem = Problem("fkpp-1d", physics={"nu": 0.004}, grid=150)
    again = pickle.loads(pickle.dumps(problem))
    assert again.physics == problem.physics and again.shape == [150]
    with pytest.raises(ValueError, match="no coefficient 'speed'"):
        Problem("fkpp-1d", physics={"speed": 1.0})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Problem("heat-3d"), ValueError, "no problem called 'heat-3d'"),
        (lambda: Problem(3), TypeError, "str"),
        (lambda: Problem("heat-1d", grid="wide"), TypeError, "grid must be"),
        (lambda: Simulation("heat-1d", agents=0), ValueError, "0 agents"),
        (lambda: Simulation("heat-1d", agents=1 << 40), ValueError, "too many"),
        (lambda: Simulation("heat-1d", agents=-1), OverflowError, "negative"),
        (lambda: Simulation("heat-1d", steps=0), ValueError, "0 steps"),
        (lambda: Simulation("heat-1d", window=1000), ValueError, "1000 cells"),
        (lambda: Simulation("heat-1d", wide=(7, 1)), ValueError, "does not divide"),
        (lambda: Simulation("heat-1d", faults=["crush"]), ValueError, "crush"),
        (lambda: Simulation("heat-1d", faults=["clock,rate=0.1"]), ValueError, "clock"),
        (lambda: Simulation("heat-1d", set="nowhere.npy"), OSError, "nowhere.npy"),
        (lambda: Simulation("heat-1d", set="table", episode=10_000), ValueError, "10000"),
        (lambda: fieldswarm.run("heat-1d", b"nonsense"), ValueError, "that was given"),
        (lambda: fieldswarm.run("heat-1d", 3), TypeError, "policy must be"),
        (lambda: fieldswarm.run("heat-1d", controller="fuzzy"), ValueError, "fuzzy"),
        (
            lambda: fieldswarm.run("heat-1d", Problem("ks-1d").shipped_policy),
            ValueError,
            "ks-1d",
        ),
        (lambda: Simulation("heat-1d").kill(8), IndexError, "no agent 8"),
        (lambda: Simulation("heat-1d").step(np.zeros((7, 2))), ValueError, r"\(8, 2\)"),
        (lambda: Simulation("heat-1d").step("all"), TypeError, "real numbers"),
        (lambda: Simulation("heat-1d").step(np.full((8, 2), np.nan)), ValueError, "agent 0"),
        (lambda: _native.Batch(Problem("heat-1d"), 0, 1), ValueError, "0 environments"),
        (lambda: _native.Batch(Problem("heat-1d"), 1 << 30, 1), ValueError, "too many"),
        (lambda: _native.Batch(Problem("heat-1d"), 2, 1).score(0), ValueError, "reset it first"),
        (lambda: _native.Batch(Problem("heat-1d"), 2, 1).score(2), IndexError, "among 2"),
        (
            lambda: _native.Batch(Problem("heat-1d"), 2, 1).step(np.zeros((2, 1, 2))),
            TypeError,
            "float64",
        ),
    ],
)
def test_bad_input_is_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_refused_step_changes_nothing():
    simulation = Simulation("heat-1d")
    before = simulation.field
    with pytest.raises(ValueError, match="finite"):
        simulation.step(np.full((8, 2), np.inf))
    np.testing.assert_array_equal(simulation.field, before)
    assert simulation.steps_taken == 0


arrays = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.complex64, np.bool_, object, "U3"]),
    hnp.array_shapes(min_dims=0, max_dims=4, max_side=9),
)
actions = st.one_of(
    arrays,
    st.none(),
    st.text(),
    st.lists(st.floats()),
    hnp.arrays(np.float32, (8, 2), elements=st.floats(width=32)),
)


@given(actions)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_actions_are_taken_or_refused(given_actions):
    simulation = Simulation("heat-1d", steps=5)
    try:
        simulation.step(given_actions)
    except (TypeError, ValueError):
        assert simulation.steps_taken == 0
    else:
        assert simulation.steps_taken == 1
        assert np.isfinite(simulation.field).all()


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-3, 10), max_size=3),
)


@given(
    st.dictionaries(st.sampled_from(["agents", "seed", "episode", "steps", "window", "wide", "faults"]), anything)
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_options_are_taken_or_refused(options):
    if isinstance(options.get("agents"), int) and options["agents"] > 1000:
        options["agents"] = 1000
    try:
        Simulation("heat-1d", **options).step()
    except (TypeError, ValueError, OverflowError):
        pass


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 64), st.integers(0, 9)), max_size=4), arrays)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_use_of_a_batch_is_taken_or_refused(starts, orders):
    batch = _native.Batch(Problem("heat-1d"), 4, 6, steps=5)
    envs, seeds, agents = ([s[k] for s in starts] for k in range(3))
    for attempt in (
        lambda: batch.reset(envs, seeds, [0] * len(envs), agents, [[]] * len(envs)),
        lambda: batch.step(orders),
        lambda: batch.step(np.zeros((4, 6, 2), np.float32)),
        lambda: batch.fields(),
        lambda: batch.kill(1, 2),
    ):
        try:
            attempt()
        except (TypeError, ValueError, IndexError, OverflowError):
            pass
