# SPDX-License-Identifier: Apache-2.0
"""Kinds of memory as in JAX: names, Memory objects, puts from kind to kind, kinds of results, errors."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client as our_client
from artifex_devices.testing import MeshLayout
from both import JAX, OURS, assert_agree, jax, outcome, sharding_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib import xla_client as jax_client

KINDS = ("device", "pinned_host", "unpinned_host")
LINE = MeshLayout(("x",), (8,), tuple(range(8)))
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def top(lib):
    return ad if lib is OURS else jax


def client_of(lib):
    return our_client if lib is OURS else jax_client


def facts(memory):
    return (
        repr(memory),
        str(memory),
        memory.kind,
        memory.platform,
        memory.process_index,
        memory.addressable_by_devices(),
    )


@pytest.mark.parametrize("device", [0, 1, 7])
def test_memories_of_a_device(device):
    assert_agree(lambda lib: [facts(memory) for memory in lib.devices[device].addressable_memories()])
    assert_agree(lambda lib: facts(lib.devices[device].default_memory()))
    for kind in KINDS:
        assert_agree(lambda lib, kind=kind: facts(lib.devices[device].memory(kind)))


@pytest.mark.parametrize("kind", ["", "x", "Device", "device ", "host"])
def test_unknown_kinds(kind):
    assert assert_agree(lambda lib: lib.devices[0].memory(kind)) is None


@pytest.mark.parametrize("kind", [3, None])
def test_kinds_of_a_wrong_type(kind):
    assert assert_agree(lambda lib: lib.devices[0].memory(kind)) is None


def test_identity_and_equality():
    def answers(lib):
        a, b = lib.devices[:2]
        return (
            a.memory("device") == a.default_memory(),
            a.memory("device") is a.default_memory(),
            hash(a.memory("device")) == hash(a.default_memory()),
            a.memory("device") == b.memory("device"),
            a.memory("device") == a.memory("pinned_host"),
            a.memory("device") == "device",
            len({memory for device in lib.devices for memory in device.addressable_memories()}),
        )

    assert_agree(answers)


@pytest.mark.parametrize(
    "question",
    [
        lambda memory: memory.foo,
        lambda memory: setattr(memory, "kind", "device"),
        lambda memory: memory < memory,
        lambda memory: type(memory)(),
    ],
)
def test_what_a_memory_refuses(question):
    assert assert_agree(lambda lib: question(lib.devices[0].default_memory())) is None


@settings(max_examples=40)
@given(
    path=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    entries=st.sampled_from([("x",), (None, "x"), (), (None,)]),
)
def test_puts_from_kind_to_kind(path, entries):
    def walk(lib):
        x = X
        facts = []
        for kind in path:
            x = lib.device_put(x, sharding_of(lib, LINE, entries, memory_kind=kind))
            facts.append((x, x.sharding.memory_kind, repr(x.sharding), x.committed))
            facts.append([shard.data.sharding.memory_kind for shard in x.addressable_shards])
        return facts

    assert_agree(walk)


@pytest.mark.parametrize("space", ["Device", "Host"])
@pytest.mark.parametrize("kind", KINDS)
def test_spaces_of_arrays(kind, space):
    def moved(lib):
        x = lib.device_put(X, sharding_of(lib, LINE, ("x",), memory_kind=kind))
        y = lib.device_put(x, getattr(top(lib).memory.Space, space))
        return y, repr(y.sharding), y.committed

    assert_agree(moved)


@pytest.mark.parametrize("space", ["Device", "Host"])
def test_spaces_of_host_data(space):
    def put(lib):
        y = lib.device_put(X, getattr(top(lib).memory.Space, space))
        return y, repr(y.sharding), y.committed

    assert_agree(put)


def test_the_space_itself():
    assert_agree(lambda lib: [(repr(space), space.name) for space in top(lib).memory.Space])


def test_space_any_is_refused_by_both():
    assert isinstance(outcome(lambda: OURS.device_put(X, ad.memory.Space.Any))[1], ValueError)
    assert isinstance(outcome(lambda: JAX.device_put(X, jax.memory.Space.Any))[1], AssertionError)


@pytest.mark.parametrize("target", ["pinned_host", "memory"])
def test_neither_a_name_nor_a_memory_is_a_place(target):
    def put(lib):
        return lib.device_put(X, lib.devices[0].memory("pinned_host") if target == "memory" else target)

    assert assert_agree(put) is None


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + x,
        lambda x: x * 2,
        lambda x: -x,
        lambda x: x.sum(),
        lambda x: x.T,
        lambda x: x.astype(np.float16),
        lambda x: x.reshape(8, 2, 4),
    ],
)
@pytest.mark.parametrize("kind", ["device", "pinned_host"])
def test_results_lie_in_the_kind_of_the_operand(kind, operation):
    def result(lib):
        return operation(lib.device_put(X, sharding_of(lib, LINE, ("x",), memory_kind=kind))).sharding.memory_kind

    assert assert_agree(result) == kind


def test_mixed_kinds_are_refused():
    def result(lib):
        x = lib.device_put(X, sharding_of(lib, LINE, ("x",)))
        return x + lib.device_put(X, sharding_of(lib, LINE, ("x",), memory_kind="pinned_host"))

    assert assert_agree(result) is None


def test_unpinned_operands_are_where_we_differ():
    def kind_of(lib):
        x = lib.device_put(X, sharding_of(lib, LINE, ("x",), memory_kind="unpinned_host"))
        return (x + x).sharding.memory_kind

    assert (kind_of(OURS), kind_of(JAX)) == ("unpinned_host", "device")


def test_assembled_parts_of_another_kind():
    def assembled(lib, kind):
        parts = lib.device_put(X, sharding_of(lib, LINE, ("x",), memory_kind="pinned_host")).addressable_shards
        return top(lib).make_array_from_single_device_arrays(
            X.shape, sharding_of(lib, LINE, ("x",), memory_kind=kind), [shard.data for shard in parts]
        )

    assert assert_agree(lambda lib: assembled(lib, "device")) is None
    assert assert_agree(lambda lib: assembled(lib, "pinned_host")) is not None


@pytest.mark.parametrize("kind", [None, *KINDS, "x", ""])
@pytest.mark.parametrize("count", [1, 8])
def test_canonical_kinds(kind, count):
    def canonical(lib):
        client = client_of(lib)
        return client.check_and_canonicalize_memory_kind(kind, client.DeviceList(tuple(lib.devices[:count])))

    assert_agree(canonical)


def test_canonical_kinds_want_a_device_list():
    def canonical(lib):
        return client_of(lib).check_and_canonicalize_memory_kind(None, tuple(lib.devices))

    assert assert_agree(canonical) is None
