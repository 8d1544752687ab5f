import numpy as np
import pytest

from fieldswarm import Simulation, run
from fieldswarm.plant import Plant


class Rod(Plant):
    """heat-1d by Crank-Nicolson with a dense solve."""

    def reset(self, episode):
        points = episode.problem.grid[0]
        r = episode.problem.coefficients["nu"] * episode.dt / 0.01**2
        off = np.eye(points - 2, k=1) + np.eye(points - 2, k=-1)
        self.implicit = (1 + r) * np.eye(points - 2) - r / 2 * off
        self.explicit = (1 - r) * np.eye(points - 2) + r / 2 * off
        self.field = episode.initial.copy()
        return self.field

    def step(self, forcing, dt):
        inner = self.explicit @ self.field[1:-1] + dt * forcing[1:-1]
        self.field[1:-1] = np.linalg.solve(self.implicit, inner)
        self.field[[0, -1]] = 0
        return self.field


def test_a_solver_in_python_gives_the_built_in_field():
    rng = np.random.default_rng(1)
    ours, theirs = Simulation("heat-1d", seed=2), Simulation("heat-1d", seed=2, plant=Rod())
    for _ in range(30):
        actions = rng.uniform(-1, 1, (8, 2)) * [40, 2]
        ours.step(actions)
        theirs.step(actions)
    np.testing.assert_allclose(theirs.field, ours.field, atol=1e-10)
    assert theirs.score["headline"] == pytest.approx(ours.score["headline"])


def test_agents_of_a_policy_are_run_on_it():
    ours, theirs = run("heat-1d", seed=2), run("heat-1d", seed=2, plant=Rod())
    np.testing.assert_allclose(theirs.errors, ours.errors, atol=1e-8)

    class Torn(Rod):
        def step(self, forcing, dt):
            raise OverflowError("the mesh is torn")

    with pytest.raises(RuntimeError, match=r"step 1.*OverflowError: the mesh is torn"):
        run("heat-1d", plant=Torn())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda f: f[1:], "shape"),
        (lambda f: f * np.nan, "nan"),
        (lambda f: None, "None"),
        (lambda f: "hot", "real numbers"),
        (lambda f: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_plant_that_fails_is_named_and_what_was_is_kept(answer, words):
    class Broken(Rod):
        fine = True

        def step(self, forcing, dt):
            field = super().step(forcing, dt)
            return field if self.fine else answer(field)

    plant = Broken()
    simulation = Simulation("heat-1d", plant=plant)
    simulation.step()
    kept = simulation.field
    plant.fine = False
    with pytest.raises(RuntimeError, match=words) as raised:
        simulation.step()
    assert "step 2" in str(raised.value)
    np.testing.assert_array_equal(simulation.field, kept)
    with pytest.raises(RuntimeError, match="reset"):
        simulation.step()
    plant.fine = True
    simulation.reset()
    simulation.step()


def test_what_is_no_plant_is_refused():
    with pytest.raises(TypeError, match="fieldswarm"):
        Simulation("heat-1d", plant=object())

    class Refusing(Plant):
        def reset(self, episode):
            raise ValueError(f"no {episode.problem.name} here")

    with pytest.raises(ValueError, match="no heat-1d here"):
        Simulation("heat-1d", plant=Refusing())
