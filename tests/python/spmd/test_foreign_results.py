# SPDX-License-Identifier: Apache-2.0
"""Bodies that compute with another library: its arrays in host memory are taken as results and operands."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import NamedSharding, P


class Foreign:
    """An array of another library on a device of DLPack: 1 is the CPU, 2 is CUDA."""

    def __init__(self, value, device=1):
        self.value = np.asarray(value)
        self.device = device

    def __array__(self, dtype=None, copy=None):
        return self.value

    def __dlpack__(self, **options):
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self.device, 0)


class OnlyArray:
    def __array__(self, dtype=None, copy=None):
        return np.arange(2.0)


@pytest.fixture(scope="module")
def mesh():
    with ad.simulate(4):
        yield ad.Mesh(np.array(ad.devices()), ("x",))


X = np.arange(8.0).reshape(4, 2)


def test_results_of_mapped_functions(mesh):
    mapped = ad.shard_map(
        lambda block: {"twice": Foreign(block * 2), "two": OnlyArray()}, mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    result = mapped(X)
    assert result["twice"].sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_array_equal(np.asarray(result["twice"]), X * 2)
    np.testing.assert_array_equal(np.asarray(result["two"]), np.tile(np.arange(2.0), 4))
    np.testing.assert_array_equal(np.asarray(ad.pmap(lambda row: Foreign(row + 1))(X)), X + 1)
    np.testing.assert_array_equal(np.asarray(ad.jit(lambda x: Foreign(np.asarray(x) + 1))(X)), X + 1)


def test_a_result_that_the_body_keeps_and_changes_is_copied(mesh):
    kept = []

    def body(block):
        kept.append(Foreign(block * 2))
        return kept[-1]

    result = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
    for each in kept:
        each.value[:] = -1
    np.testing.assert_array_equal(np.asarray(result), X * 2)


def test_operands_of_collectives(mesh):
    total = ad.shard_map(
        lambda block: ad.lax.psum(Foreign(block.sum()), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )(X)
    assert float(total) == X.sum()


def test_arguments(mesh):
    doubled = ad.shard_map(lambda block: block * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(Foreign(X))
    np.testing.assert_array_equal(np.asarray(doubled), X * 2)


def test_an_array_on_another_device_is_not_read_silently(mesh):
    mapped = ad.shard_map(lambda block: Foreign(block, device=2), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(TypeError, match=r"output on cpu:0 is of type Foreign; expected an ndarray or a number"):
        mapped(X)
