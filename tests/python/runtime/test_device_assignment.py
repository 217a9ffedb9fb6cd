# SPDX-License-Identifier: Apache-2.0
"""DeviceAssignment: what it takes, its bytes, and what it refuses."""

import copy
import json
import pickle
import re
from pathlib import Path

import artifex_devices as ad
import numpy as np
import proto_schema
import pytest
from artifex_devices.xla_client import DeviceAssignment
from hypothesis import example, given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = json.loads((ROOT / "tests" / "data" / "serialized" / "device_assignments.json").read_text())
SCHEMA = re.search(r"```proto\n(.*?)```", (ROOT / "docs" / "formats" / "README.md").read_text(), re.DOTALL)
assert SCHEMA
Proto = proto_schema.messages(SCHEMA.group(1))["DeviceAssignmentProto"]

assignments = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.integers(0, 2**63 - 1), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1], unique=True
    ).map(lambda numbers: np.array(numbers, np.int64).reshape(shape))
)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: str(case["array"]))
def test_bytes_and_text_are_those_of_jaxlib(case):
    made = DeviceAssignment.create(np.array(case["array"], np.int32))
    assert made.serialize().hex() == case["bytes"]
    assert repr(made) == str(made) == case["repr"]
    assert DeviceAssignment.deserialize(bytes.fromhex(case["bytes"])) == made


@given(assignments)
def test_protobuf_reads_and_writes_the_same_bytes(array):
    data = DeviceAssignment.create(array).serialize()
    message = Proto.FromString(data)
    assert (message.replica_count, message.computation_count) == array.shape
    assert [list(each.replica_device_ids) for each in message.computation_devices] == array.T.tolist()
    assert message.SerializeToString(deterministic=True) == data


@given(st.binary(max_size=60))
@example(b"\x08\x01\x10\x01\x1a\x03\x0a\x01\x05\x08\x01")
def test_what_is_read_from_any_bytes_is_what_protobuf_reads(data):
    try:
        made = DeviceAssignment.deserialize(data)
    except ValueError:
        return
    message = Proto.FromString(data)
    assert [list(each.replica_device_ids) for each in message.computation_devices] == made.device_ordinals.T.tolist()


def test_counts_and_places():
    made = DeviceAssignment.create(np.array([[4, 5, 6], [1, 2, 3]]))
    assert (made.replica_count(), made.computation_count()) == (2, 3)
    assert made.device_ordinal(1, 2) == 3
    assert made.logical_ids_for_device(5) == (0, 1)
    with pytest.raises(IndexError, match="replica 2 of computation 0 is not there; expected a replica from 0 to 1"):
        made.device_ordinal(2, 0)
    with pytest.raises(ValueError, match="device 0 runs nothing here; expected one of 4, 5, 6, 1, 2, 3"):
        made.logical_ids_for_device(0)


def test_takes_an_array_of_devices():
    with ad.simulate(2):
        assert DeviceAssignment.create(ad.device_put(np.array([[1], [0]]))).device_ordinals.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([0, 1]), "the array has 1 dimension, shape (2,); expected 2, (replicas, computations)"),
        (np.array(3), "the array has 0 dimensions, shape (); expected 2"),
        (np.zeros((1, 1, 1), int), "the array has 3 dimensions, shape (1, 1, 1); expected 2"),
        ([[0, 1]], "the argument is of type list; expected a 2-D ndarray of integers"),
        (None, "the argument is of type NoneType; expected a 2-D ndarray"),
        (np.array([["a"]]), "the array is of dtype <U1; expected integers"),
        (np.array([[1 + 2j]]), "the array is of dtype complex128; expected integers"),
        (np.array([[1]], object), "the array is of dtype object; expected integers"),
    ],
)
def test_what_is_no_2d_array_of_numbers_is_a_type_error(array, text):
    with pytest.raises(TypeError, match=re.escape(f"DeviceAssignment.create: {text}")):
        DeviceAssignment.create(array)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([[0, -1]]), "device ordinals are not usable, negative: -1; expected numbers from 0"),
        (np.array([[0, 1, 1, 0]]), "device ordinals are not usable, more than once: 0, 1; expected"),
        (np.zeros((0, 2), int), "there are 0 replicas of 2 computations; expected at least one of each"),
        (np.zeros((2, 0), int), "there are 2 replicas of 0 computations; expected at least one of each"),
        (np.array([[0.5]]), "the array has numbers that are not integers"),
        (np.array([[np.nan]]), "the array has numbers that are not integers"),
        (np.array([[np.inf]]), "the array has numbers that are not integers"),
        (np.array([[1e300]]), "the array has numbers of 2**63 or more"),
        (np.array([[2**63]], np.uint64), "the array has numbers of 2**63 or more"),
        (np.broadcast_to(np.int8(0), (2**40, 2**20)), "are too many; expected 16777216 devices at most"),
    ],
)
def test_what_no_devices_can_run_is_a_value_error(array, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        DeviceAssignment.create(array)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08",
        b"\x08\x01\x10\x01",
        b"\x08\x01\x10\x01\x1a\x03\x0a\x02\x05",
        b"\x08\x01\x10\x01\x1a\x7f\x0a\x01\x05",
        b"\x0a\x01\x05",
        b"\x08" + b"\x80" * 11 + b"\x01",
        b"\x0b" * 100_000,
        b"\x08\xff\xff\xff\xff\x07\x10\xff\xff\xff\xff\x07",
        b"\x08\x01\x10\x02\x1a\x03\x0a\x01\x05\x1a\x03\x0a\x01\x05",
    ],
)
def test_damaged_bytes_are_a_value_error(data):
    with pytest.raises(ValueError, match=r"^DeviceAssignment\.deserialize: "):
        DeviceAssignment.deserialize(data)


def test_bytes_may_be_of_any_buffer_and_text_is_none():
    made = DeviceAssignment.create(np.array([[0, 1]]))
    assert DeviceAssignment.deserialize(bytearray(made.serialize())) == made
    assert DeviceAssignment.deserialize(memoryview(made.serialize())) == made
    with pytest.raises(TypeError, match=r"DeviceAssignment.deserialize: the argument is of type str; expected bytes"):
        DeviceAssignment.deserialize("\x08")


def test_is_a_value():
    made = DeviceAssignment.create(np.array([[0, 1]]))
    other = DeviceAssignment.create(np.array([[0], [1]]))
    assert made != other
    assert made != "DeviceAssignment"
    assert len({made, other, copy.deepcopy(made), pickle.loads(pickle.dumps(made))}) == 2
    ordinals = made.device_ordinals
    ordinals[:] = 7
    assert made.device_ordinals.tolist() == [[0, 1]]
    with pytest.raises(TypeError, match=r"^DeviceAssignment: .* use DeviceAssignment\.create\(array\)"):
        DeviceAssignment()
