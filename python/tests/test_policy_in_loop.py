import numpy as np
import pytest

import fieldswarm
from fieldswarm import Policy, Simulation


@pytest.mark.parametrize("name", fieldswarm.problems())
@pytest.mark.parametrize("faults", [[], ["noise,std=0.05", "crash,ids=1,at=0.4"]])
def test_agents_led_from_python_give_the_bits_of_those_inside(name, faults):
    policy = Policy.shipped(name)
    inside = fieldswarm.run(name, policy, agents=5, seed=3, steps=12, faults=faults)
    simulation = Simulation(name, agents=5, seed=3, steps=12, faults=faults, policy=policy)
    agents = policy.agents(5)
    while not simulation.done:
        simulation.step(agents.act({**simulation.observation, "time_us": simulation.time_us}))
    assert simulation.score == inside.score
    np.testing.assert_array_equal(simulation.field.astype(np.float32), inside.fields[-1])
