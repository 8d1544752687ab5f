import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from fieldswarm.envs import FieldEnv, FieldVectorEnv, SwarmEnv, SwarmVectorEnv
from fieldswarm.plant import InProcess, Plant

CRASH = ["crash,fraction=0.5,at=0.4"]


@pytest.mark.parametrize("problem", ["heat-1d", "ks-1d", "density-2d"])
def test_gymnasium_is_content(problem):
    with warnings.catch_warnings():
        # Fields have no bounds, and none would be true.
        warnings.filterwarnings("ignore", message=".*(infinity|symmetric).*")
        check_env(FieldEnv(problem, steps=5), skip_render_check=True)


@pytest.mark.parametrize(
    "options", [{}, {"agents": (3, 9)}, {"faults": CRASH}, {"faults": CRASH, "absorbing": True}]
)
def test_pettingzoo_is_content(options):
    parallel_api_test(SwarmEnv("heat-1d", steps=20, **options), num_cycles=60)
    parallel_seed_test(lambda: SwarmEnv("heat-1d", steps=20, **options))


def rewards_of_an_episode(problem, **options):
    env = FieldEnv(problem, **options)
    env.reset(seed=4)
    total, over = 0.0, False
    while not over:
        _, reward, terminated, over, info = env.step(np.full(env.action_space.shape, 0.05, np.float32))
        assert not terminated
        total += reward
    return total, info["score"]


@pytest.mark.parametrize("problem", ["heat-1d", "ks-1d", "turbulence-2d"])
def test_rewards_add_up_to_minus_the_score(problem):
    total, score = rewards_of_an_episode(problem, steps=12)
    assert total == pytest.approx(-score["headline"], rel=1e-12)


def test_rewards_can_be_errors():
    total, score = rewards_of_an_episode("heat-1d", steps=12, reward="error")
    assert total == pytest.approx(-12 * score["time_mean_error"], rel=1e-12)


def test_the_dead_leave_and_do_nothing():
    env = SwarmEnv("heat-1d", steps=20, faults=CRASH)
    env.reset(seed=3)
    assert len(env.agents) == 8
    sizes, gone = [], set()
    while env.agents:
        before = set(env.agents)
        _, _, terminations, truncations, _ = env.step({agent: np.ones(2, np.float32) for agent in env.agents})
        gone |= {agent for agent in before if terminations[agent]}
        sizes.append(len(env.agents))
        assert all(truncations[agent] != terminations[agent] for agent in before - set(env.agents))
    # Four crash at 0.4 of 20 steps, the others are there until the end.
    assert len(gone) == 4 and sizes == [8] * 8 + [4] * 11 + [0]


def test_absorbing_states_keep_everybody():
    env = SwarmEnv("heat-1d", steps=20, faults=CRASH, absorbing=True)
    env.reset(seed=3)
    for step in range(20):
        seen, rewards, terminations, _, infos = env.step({agent: np.ones(2, np.float32) for agent in env.agents})
        dead = [agent for agent in seen if not infos[agent]["alive"]]
        assert len(seen) == 8 and not any(terminations.values())
        assert len(dead) == (0 if step < 8 else 4)
        assert all(not seen[agent].any() and rewards[agent] == 0 for agent in dead)
    assert env.agents == []


def test_sizes_faults_and_noise_are_drawn_for_every_episode():
    env = SwarmEnv("heat-1d", agents=(3, 12), noise=(0.0, 0.5), steps=5)
    sizes = set()
    for seed in range(12):
        env.reset(seed=seed)
        sizes.add(len(env.agents))
    assert len(sizes) > 4 and min(sizes) >= 3 and max(sizes) <= 12
    loud, quiet = (SwarmEnv("heat-1d", noise=noise, steps=5) for noise in (1.0, 0.0))
    rough = [np.abs(np.diff(env.reset(seed=1)[0]["agent_3"][:8])).mean() for env in (loud, quiet)]
    assert rough[0] > 3 * rough[1]

    def faults(rng):
        return ["crash,fraction=1"] if rng.random() < 0.5 else []

    env = SwarmEnv("heat-1d", faults=faults, steps=5)
    left = []
    for seed in range(10):
        env.reset(seed=seed)
        env.step({})
        left.append(len(env.agents))
    assert set(left) == {0, 8}


def test_agents_see_what_policies_read():
    env = SwarmEnv("heat-1d", frequencies=(1.0, 2.0))
    seen, _ = env.reset(seed=1)
    batch = env._patches.episodes.batch
    field, target = batch.fields()[0].astype(np.float32), batch.targets()[0]
    s = float(batch.position[0, 3, 0])
    cells = int(s * 99) + np.arange(-4, 4)
    np.testing.assert_array_equal(seen["agent_3"][:8], (field - target)[cells])
    expected = [np.sin(np.pi * s), np.sin(2 * np.pi * s), np.cos(np.pi * s), np.cos(2 * np.pi * s)]
    np.testing.assert_allclose(seen["agent_3"][8:], expected, atol=1e-5)


def test_vector_forms_do_what_single_ones_do():
    many, whole = SwarmVectorEnv("heat-1d", 3, steps=6, faults=CRASH), FieldVectorEnv("heat-1d", 3, steps=6)
    singles = [SwarmEnv("heat-1d", steps=6, faults=CRASH, absorbing=True) for _ in range(3)]
    fields = [FieldEnv("heat-1d", steps=6) for _ in range(3)]
    seen, _ = many.reset(seed=10)
    for k, env in enumerate(singles):
        alone, _ = env.reset(seed=10 + k)
        for agent, view in alone.items():
            np.testing.assert_array_equal(seen[agent][k], view)
    whole.reset(seed=10)
    for k, env in enumerate(fields):
        env.reset(seed=10 + k)
    push = {agent: np.full((3, 2), 0.1, np.float32) for agent in many.possible_agents}
    for step in range(6):
        seen, rewards, _, cut, _ = many.step(push)
        all_seen, all_rewards, _, all_cut, _ = whole.step(np.full((3, 8, 2), 0.1, np.float32))
        for k, (env, field) in enumerate(zip(singles, fields, strict=True)):
            alone, reward, _, _, _ = env.step({agent: push[agent][k] for agent in env.agents})
            for agent, view in alone.items():
                np.testing.assert_array_equal(seen[agent][k], view)
                assert rewards[agent][k] == reward[agent]
            alone, reward, _, _, _ = field.step(np.full((8, 2), 0.1, np.float32))
            np.testing.assert_array_equal(all_seen["field"][k], alone["field"])
            assert all_rewards[k] == reward
        assert all_cut.all() == (step == 5) == cut["agent_0"].all()
    # The next step begins anew.
    _, rewards, _, cut, _ = many.step(push)
    assert not rewards["agent_0"].any() and not cut["agent_0"].any()
    episodes = many._patches.episodes
    assert (episodes.begun == episodes.now).all()


@pytest.mark.parametrize("problem", ["heat-1d", "ks-1d"])
def test_a_critic_sees_the_whole_of_what_agents_see_a_patch_of(problem):
    many, whole = SwarmVectorEnv(problem, 3), FieldVectorEnv(problem, 3)
    many.reset(seed=4)
    expected, _ = whole.reset(seed=4)
    state = many.state()
    assert list(state) == list(expected)
    for name, part in expected.items():
        np.testing.assert_array_equal(state[name], part)
    error = state["field"] - state["target"] if "target" in state else state["field"]
    np.testing.assert_allclose(many.errors, np.square(error).mean(1), rtol=1e-5)
    with pytest.raises(ValueError, match="read-only"):
        many.errors[:] = 0


def test_one_environment_can_begin_anew_while_others_go_on():
    env = SwarmVectorEnv("heat-1d", 3, steps=4)
    env.reset(seed=1)
    for _ in range(2):
        env.step({})
    before = env.state()["field"]
    env.reset(options={"reset_mask": np.array([False, True, False])})
    after = env.state()["field"]
    assert list((before == after).all(1)) == [True, False, True]
    cuts = [env.step({})[3]["agent_0"] for _ in range(3)]
    # The others have had four steps after two more, and begin anew with the third, as ever.
    assert [list(cut) for cut in cuts] == [[False] * 3, [True, False, True], [False] * 3]


class Growing(Plant):
    """Ten times as hot with every step."""

    def reset(self, episode):
        self.field = episode.initial + 1e30
        return self.field

    def step(self, forcing, dt):
        self.field = self.field * 100
        return self.field


def test_a_field_that_blows_up_ends_its_episode_and_no_other():
    env = SwarmVectorEnv("heat-1d", 2, steps=100)
    env.reset(seed=1)
    batch = env._patches.episodes.batch
    batch.reset([0], [1], [0], [8], [[]], plant=InProcess(Growing()))
    failed = []
    for _ in range(8):
        _, rewards, terminations, _, infos = env.step({})
        failures = infos.get("failure", {})
        failed += failures.items()
        assert np.isfinite(rewards["agent_0"]).all()
        assert list(np.flatnonzero(terminations["agent_0"])) == list(failures)
    # After that it begins anew, with a field that does not.
    assert len(failed) == 1 and failed[0][0] == 0 and "no sensor can show" in failed[0][1]
    assert np.isfinite(batch.fields()).all()


@pytest.mark.parametrize(
    ("actions", "error", "words"),
    [
        ({"agent_9": np.zeros(2)}, ValueError, "agent_9"),
        ({"agent_0": np.zeros(3)}, ValueError, r"\(2,\)"),
        ({"agent_0": "left"}, TypeError, "real numbers"),
        ({"agent_0": np.array([np.nan, 0])}, ValueError, "finite"),
    ],
)
def test_bad_actions_are_named(actions, error, words):
    env = SwarmEnv("heat-1d")
    env.reset(seed=0)
    with pytest.raises(error, match=words):
        env.step(actions)
    vector = SwarmVectorEnv("heat-1d", 2)
    vector.reset(seed=0)
    with pytest.raises(error, match=words.replace("2,", "2, 2")):
        vector.step({k: np.stack([v, v]) if isinstance(v, np.ndarray) else v for k, v in actions.items()})


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="reward"):
        SwarmEnv("heat-1d", reward="points")
    with pytest.raises(ValueError, match="most_agents"):
        SwarmEnv("heat-1d", agents=lambda rng: 3)
    with pytest.raises(ValueError, match="room for 3"):
        SwarmEnv("heat-1d", agents=lambda rng: 4, most_agents=3).reset(seed=1)
    with pytest.raises(ValueError, match="as many seeds"):
        FieldVectorEnv("heat-1d", 3).reset(seed=[1, 2])
