# SPDX-License-Identifier: Apache-2.0
"""DeviceAssignment and topologies beside jaxlib's own objects."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client
from both import jax, outcome
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

jaxlib_client = pytest.importorskip("jaxlib._jax", reason="jaxlib is not installed: nothing to compare with")

arrays = npst.array_shapes(min_dims=2, max_dims=2, max_side=5).flatmap(
    lambda shape: npst.arrays(
        st.sampled_from([np.int32, np.int64, np.uint32, np.float64]),
        shape,
        elements=st.integers(0, 2**31 - 1),
        unique=True,
    )
)


@given(arrays)
def test_bytes_text_and_counts_are_those_of_jaxlib(array):
    ours = xla_client.DeviceAssignment.create(array)
    theirs = jaxlib_client.DeviceAssignment.create(array)
    assert ours.serialize() == theirs.serialize()
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))
    assert (ours.replica_count(), ours.computation_count()) == (theirs.replica_count(), theirs.computation_count())


@pytest.mark.parametrize(
    "value",
    [
        np.array([0, 1]),
        np.array(3),
        np.zeros((1, 1, 1), int),
        [[0, 1]],
        None,
        np.array([["a"]]),
        np.array([[1 + 2j]]),
        np.array([[1]], object),
        np.array([[True, False]]),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(6).reshape(2, 3)[:, ::2],
        np.arange(6, dtype=np.uint8).reshape(2, 3).T,
    ],
    ids=repr,
)
def test_what_is_taken_and_refused_is_as_in_jaxlib(value):
    ours, our_error = outcome(lambda: repr(xla_client.DeviceAssignment.create(value)))
    theirs, their_error = outcome(lambda: repr(jaxlib_client.DeviceAssignment.create(value)))
    assert (ours, type(our_error)) == (theirs, type(their_error))


@pytest.mark.parametrize("case", ["none", "empty", "numbers", "two clients"])
def test_what_is_not_a_list_of_devices_is_refused_as_in_jaxlib(case):
    def value_for(get_topology, devices):
        if case == "two clients":
            with ad.simulate(2):
                other = ad.devices()[0]
            return [devices[0], other if get_topology is xla_client.get_topology_for_devices else planned[0]]
        return {"none": None, "empty": [], "numbers": [1]}[case]

    planned = jaxlib_client.get_topology_for_devices(jax.devices())._make_compile_only_devices()
    errors = [
        type(outcome(lambda: get(value_for(get, devices)))[1])  # noqa: B023
        for get, devices in (
            (xla_client.get_topology_for_devices, ad.devices()),
            (jaxlib_client.get_topology_for_devices, jax.devices()),
        )
    ]
    assert errors[0] is errors[1]


def test_a_topology_is_of_all_devices_of_the_client():
    ours = xla_client.get_topology_for_devices(ad.devices()[:2])
    theirs = jaxlib_client.get_topology_for_devices(jax.devices()[:2])
    assert ours.platform == theirs.platform == "cpu"
    our_devices, their_devices = ours._make_compile_only_devices(), theirs._make_compile_only_devices()
    for name in ("id", "platform", "device_kind", "process_index"):
        assert [getattr(device, name) for device in our_devices] == [getattr(device, name) for device in their_devices]
    assert xla_client.get_topology_for_devices(our_devices) == ours
    for put, device in ((ad.device_put, our_devices[0]), (jax.device_put, their_devices[0])):
        with pytest.raises(RuntimeError):
            put(np.ones(3), device)
