# SPDX-License-Identifier: Apache-2.0
"""Reshards between processes: values, bytes sent, memory, and programs that do not agree."""

from __future__ import annotations

import gc
import itertools

import artifex_devices as ad
import numpy as np
import pytest
from shared_worlds import Job, check_value, clients_of, entered

X = np.arange(64, dtype=np.int32).reshape(8, 8)


def named(sizes, names, *spec):
    return ad.NamedSharding(ad.make_mesh(sizes, names), ad.P(*spec))


def placed(value, sharding):
    """An Array of which every process gives its part, without asking the others."""
    return ad.make_array_from_callback(value.shape, sharding, value.__getitem__, value.dtype)


def planned_bytes(x, sharding):
    """The bytes of all messages of all processes."""
    plan = ad.planner.plan_reshard(x.shape, x.dtype, x.sharding, sharding, way="copies")
    return plan.bytes_by_link["other process"] + plan.bytes_by_link["other host"]


def between(counts, source, target, value=X, **more):
    """Moves a value in a job; what was sent, as planned bytes and [(sent, received)] of the processes."""
    with Job(counts, **more) as job:

        def body(index):
            x = placed(value, source())
            planned = planned_bytes(x, target())
            check_value(ad.device_put(x, target()), value)
            check_value(x, value)
            return planned

        planned = job.run(body)
        assert len(set(planned)) == 1
        traffic = job.traffic()
        assert sum(sum(sent.values()) for sent, _ in traffic) == planned[0]
        for (a, (sent, _)), (b, (_, received)) in itertools.permutations(enumerate(traffic), 2):
            assert sent.get(b, 0) == received.get(a, 0)
        return planned[0], traffic


def test_uneven_shards_and_empty_ones():
    def uneven(*spec):
        return ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P(*spec), uneven="last-short")

    value = np.arange(35, dtype=np.int16).reshape(5, 7)
    between((2, 2), lambda: uneven("x"), lambda: uneven(None, "x"), value)
    between((1, 3), lambda: uneven(None, "x"), lambda: uneven(), value)
    nothing = np.zeros((0, 4), np.float32)
    assert between((2, 2), lambda: named((4,), ("x",), "x"), lambda: named((4,), ("x",)), nothing)[0] == 0


def test_layouts_and_kinds_of_memory_are_changed_on_the_way():
    with Job((2, 1)) as job:

        def body(index):
            rows = named((3,), ("x",), "x")
            value = np.arange(54, dtype=np.float64).reshape(9, 6)
            x = placed(value, rows)
            columns = ad.device_put(x, ad.layout.Format(ad.layout.Layout((1, 0)), named((3,), ("x",), None, "x")))
            check_value(columns, value)
            check_value(ad.device_put(columns, rows), value)
            host = ad.device_put(x, rows.with_memory_kind("unpinned_host"))
            check_value(host, value)
            check_value(ad.device_put(host, named((3,), ("x",))), value)

        job.run(body)


def test_donation_and_copies():
    with Job((2, 2)) as job:

        def body(index):
            rows, columns = named((4,), ("x",), "x"), named((4,), ("x",), None, "x")
            x = placed(X, rows)
            y = ad.device_put(x, columns, donate=True)
            assert x.is_deleted()
            check_value(y, X)
            z = ad.device_put(y, columns, may_alias=False)
            assert z.addressable_data(0).unsafe_buffer_pointer() != y.addressable_data(0).unsafe_buffer_pointer()
            check_value(z, X)
            check_value(z.__copy__(), X)
            assert ad.device_put(z, columns) is z
            tree = ad.device_put({"a": z, "b": (y,)}, rows, donate={"a": True, "b": False})
            check_value(tree["a"], X)
            check_value(tree["b"][0], X)
            assert (z.is_deleted(), y.is_deleted()) == (True, False)

        job.run(body)
        for client in job.clients:
            client_bytes = [d.memory_stats()["bytes_in_use"] for d in client.local_devices()]
            assert client_bytes == [0, 0]


def test_a_transport_that_fails_leaves_nothing_behind():
    with Job((1, 1)) as job:

        def fail(requests, operation):
            raise RuntimeError("the cable was cut")

        for each in job.transports:
            each.wait_some = fail

        def body(index):
            return ad.device_put(placed(X, named((2,), ("x",), "x")), named((2,), ("x",)))

        errors = job.run(body, expect_errors=True)
        assert [str(error) for error in errors] == ["the cable was cut"] * 2
        assert [each.cancelled for each in job.transports] == [2, 2]
        del errors
        gc.collect()
        assert [c.local_devices()[0].memory_stats()["bytes_in_use"] for c in job.clients] == [0, 0]


def test_without_a_transport_only_what_needs_none_is_done():
    with entered(clients_of((2, 2))[0]):
        x = placed(X, named((4,), ("x",), "x"))
        check_value(ad.device_put(x, named((2, 2), ("a", "b"), ("a", "b"))), X)
        with pytest.raises(
            RuntimeError, match=r"device_put of int32.* data would go to another process, but no transport"
        ):
            ad.device_put(x, named((4,), ("x",)))
