"""Trainings that are small enough for tests."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture
def small(monkeypatch):
    """Few environments, small buffers: seconds instead of minutes."""
    make_small(monkeypatch.setitem)


def make_small(setitem):
    """Shrink the settings of heat-1d, through a function that sets an item of a dictionary."""
    from fieldswarm_baselines import settings

    ppo, td3 = settings._PPO["heat-1d"], settings._TD3["heat-1d"]
    setitem(settings._PPO, "heat-1d", replace(ppo, envs=8, rollout=32, batch=64))
    setitem(settings._TD3, "heat-1d", replace(td3, envs=8, warmup=20, batch=32, buffer=2000))
