# SPDX-License-Identifier: Apache-2.0
"""artifex_devices.numpy: NumPy's functions, and creation functions that place their results."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import numpy as jnp
from artifex_devices.sharding import NamedSharding, P

CREATED = {
    "array": (([[1, 2], [3, 4]],), {}),
    "asarray": (([1.5, 2.5],), {"dtype": np.float32}),
    "zeros": (((8, 2),), {}),
    "ones": ((8,), {"dtype": int}),
    "full": (((8, 2), 3), {}),
    "arange": ((8,), {}),
    "linspace": ((0, 1, 8), {}),
    "eye": ((8, 4), {"k": 1}),
    "identity": ((8,), {}),
}


@pytest.fixture(scope="module")
def mesh():
    with ad.simulate(8):
        yield ad.Mesh(np.array(ad.devices()), ("x",))


@pytest.mark.parametrize("name", CREATED)
def test_created_arrays_have_numpys_values_and_dtypes(name, mesh):
    args, options = CREATED[name]
    made, expected = getattr(jnp, name)(*args, **options), getattr(np, name)(*args, **options)
    assert isinstance(made, jnp.ndarray)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(made), expected)


@pytest.mark.parametrize("name", [name for name in CREATED if name not in ("array", "asarray")])
def test_created_arrays_are_placed(name, mesh):
    args, options = CREATED[name]
    create, expected = getattr(jnp, name), getattr(np, name)(*args, **options)
    for made in (create(*args, **options, device=mesh.devices[3]), create(*args, **options)):
        np.testing.assert_array_equal(np.asarray(made), expected)
    assert create(*args, **options, device=mesh.devices[3]).device == mesh.devices[3]
    sharding = NamedSharding(mesh, P("x"))
    made = create(*args, **options, out_sharding=sharding)
    assert (made.sharding, made.committed) == (sharding, True)
    np.testing.assert_array_equal(np.asarray(made), expected)
    with ad.set_mesh(mesh):
        assert create(*args, **options, out_sharding=P("x")).sharding == sharding
    with pytest.raises(ValueError, match=f"^{'eye' if name == 'identity' else name}: device and out_sharding are both"):
        create(*args, **options, device=mesh.devices[0], out_sharding=sharding)


def test_a_sharding_must_divide_the_shape(mesh):
    with pytest.raises(ad.errors.IndivisibleError):
        jnp.zeros(9, out_sharding=NamedSharding(mesh, P("x")))


def test_arrays_of_arrays(mesh):
    x = ad.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    assert jnp.asarray(x) is x
    assert jnp.array(x) is not x
    assert jnp.array(x, ndmin=2).shape == (1, 8)
    assert jnp.array(x, np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="order"):
        jnp.asarray(x, order="F")


def test_everything_else_is_numpys(mesh):
    x = ad.device_put(np.arange(8.0), NamedSharding(mesh, P("x")))
    assert jnp.sin is np.sin
    assert jnp.float32 is np.float32
    assert jnp.linalg is np.linalg
    assert jnp.sin(x).sharding == x.sharding
    assert ad.numpy is jnp
    assert {"array", "sin", "linalg", "pi"} <= set(dir(jnp))
    with pytest.raises(AttributeError, match=r"'artifex_devices\.numpy' has no attribute 'spam'"):
        _ = jnp.spam
