"""Whatever policies and agents are given, they answer, or refuse it with an exception that fits."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from fieldswarm import Policy

HEAT = Policy.shipped("heat-1d")
ARRAYS, HEADER = HEAT.to_arrays()
KINDS = (TypeError, ValueError, OverflowError)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
ANY_ARRAY = arrays_of.arrays(
    st.sampled_from([np.float32, np.float64, np.int64, np.uint16, np.bool_, np.complex64]),
    arrays_of.array_shapes(min_dims=0, max_dims=3, max_side=24),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(HEAT.bytes) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(HEAT.bytes)),
)
def test_changed_and_cut_bytes_are_refused_or_act(changes, length):
    blob = bytearray(HEAT.bytes)
    for at, value in changes:
        blob[at] = value
    for candidate in (bytes(blob), bytes(blob[:length])):
        try:
            policy = Policy.from_bytes(candidate)
        except ValueError:
            continue
        assert policy.bytes == candidate


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_refused(blob):
    with pytest.raises(ValueError):
        Policy.from_bytes(blob)
    with pytest.raises(ValueError):
        Policy.from_bytes(HEAT.bytes[:8] + blob)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(ARRAYS)), ANY_ARRAY | ANYTHING)
def test_any_array_is_refused_or_fits(name, array):
    changed = {**ARRAYS, name: array}
    try:
        policy = Policy.from_arrays(changed, HEADER)
    except KINDS:
        return
    assert policy.self_test()
    np.testing.assert_array_equal(policy.to_arrays()[0][name], array)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(ARRAYS)),
    st.integers(0, 10_000),
    st.floats(width=32),
)
def test_any_number_is_refused_or_kept(name, at, value):
    array = ARRAYS[name].copy()
    array.flat[at % array.size] = value
    try:
        policy = Policy.from_arrays({**ARRAYS, name: array}, HEADER)
    except ValueError:
        return
    assert np.isfinite(value)
    assert policy.to_arrays()[0][name].tobytes() == array.tobytes()


def places(tree, path=()):
    """Every place in nested mappings and lists."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(places(HEADER))[1:]), ANYTHING | st.integers(-2, 70_000))
def test_any_header_is_refused_or_kept(path, value):
    header = copy.deepcopy(HEADER)
    inner = header
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    try:
        policy = Policy.from_arrays(ARRAYS, header)
    except KINDS:
        return
    assert policy.self_test()
    actions = policy.agents(2).idle(5)
    assert np.all(np.isfinite(actions))


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["field", "target", "position", "inside", "wide_field", "time_us"]),
        ANY_ARRAY | ANYTHING,
        max_size=3,
    )
)
def test_any_observation_is_refused_or_acted_on(changes):
    observation = {
        "field": np.ones((2, 22), np.float32),
        "target": np.zeros((2, 22), np.float32),
        "position": np.full((2, 1), 0.5, np.float32),
        **changes,
    }
    agents = HEAT.agents(2)
    try:
        actions = agents.act(observation)
    except KINDS:
        return
    assert np.all(np.isfinite(actions))


@settings(max_examples=150, deadline=None)
@given(
    arrays_of.arrays(np.float32, (2, 22)),
    arrays_of.arrays(np.float32, (2, 1)),
    arrays_of.arrays(np.uint16, (2, 1, 2)),
    st.integers(0, 2**64 - 1),
)
def test_whatever_sensors_read_actions_stay_within_their_limits(field, position, inside, time_us):
    agents = HEAT.agents(2)
    for _ in range(2):
        actions = agents.act(
            {
                "field": field,
                "target": np.zeros_like(field),
                "position": position,
                "inside": inside,
                "time_us": time_us,
            }
        )
        assert np.all(np.abs(actions) <= [HEADER["limits"]["force"], HEADER["limits"]["velocity"]])


@given(ANYTHING)
def test_anything_is_no_observation(thing):
    with pytest.raises(KINDS):
        HEAT.act(thing)
    with pytest.raises(KINDS):
        Policy.from_arrays(ARRAYS, thing)
    with pytest.raises(KINDS):
        Policy.from_arrays(thing, HEADER)
