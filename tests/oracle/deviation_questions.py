# SPDX-License-Identifier: Apache-2.0
"""What test_deviations.py asks both libraries: functions of a library, or that make one."""

import importlib
import warnings
from collections import namedtuple

import artifex_devices as ad
import numpy as np
from artifex_devices.testing import MeshLayout
from both import JAX, OURS, jax, mesh_of, sharding_of

Pair = namedtuple("Pair", "x y")
GRID = MeshLayout(("x", "y"), (2, 4), tuple(range(8)))
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def aligned_source():
    memory = np.zeros(X.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    source = memory[start : start + X.nbytes].view(np.float32).reshape(X.shape)
    source[...] = X
    return source


def oddly_aligned_source():
    memory = np.zeros(X.nbytes + 64, np.uint8)
    start = 4 - memory.ctypes.data % 64
    start += 64 if start < 0 else 0
    source = memory[start : start + X.nbytes].view(np.float32).reshape(X.shape)
    source[...] = X
    return source


def assigned_option(lib):
    config = (ad if lib is OURS else jax).config
    config.jax_transfer_gard = "disallow"
    try:
        return "unheard" if config.jax_transfer_guard != "disallow" else "heard"
    finally:
        del config.jax_transfer_gard


def in_kind(lib, kind):
    return lib.device_put(X, sharding_of(lib, GRID, ("x",), memory_kind=kind))


def first_value_after_write(lib):
    source = aligned_source()
    placed = lib.device_put(source, lib.devices[0])
    source[0, 0] = 99
    return float(np.asarray(placed)[0, 0])


def deleted_after_donation(lib):
    source = lib.device_put(X, lib.devices[0])
    lib.device_put(source, lib.devices[1], donate=True)
    return source.is_deleted()


def text_when_deleted(lib):
    array = lib.device_put(X, lib.devices[0])
    array.delete()
    return "deleted" in repr(array)


def mapped(lib, body, out, **options):
    mesh = mesh_of(lib, GRID)
    return top(lib).shard_map(body, mesh=mesh, in_specs=lib.P("x", "y"), out_specs=out(lib.P), **options)(X)


def collective(lib, body, x=X, **options):
    made = top(lib).pmap(lambda a: body(top(lib).lax, a), axis_name="i", **options)(x)
    return np.asarray(made).ravel()[:2].tolist()


def shards_that_differ(lib):
    whole = mapped(lib, lambda a: a, lambda p: p(), check_vma=False)
    return len({np.asarray(shard.data).tobytes() for shard in whole.addressable_shards})


def returns_its_donated_argument(lib):
    x = lib.device_put(X, lib.devices[0])
    top(lib).jit(lambda a: a, donate_argnums=0)(x)
    return x.is_deleted()


def self_containing(lib):
    tree = [X]
    tree.append(tree)
    return lib.device_put(tree)


def spec(*entries):
    return lambda lib: sharding_of(lib, GRID, entries)


def grid_with(names):
    return lambda lib: lib.Mesh(np.array(lib.devices).reshape(2, 4), names).axis_names


def repeated_device(lib):
    return lib.Mesh(np.array([lib.devices[0], lib.devices[0]]), ("x",)).size


def deleted_after_last_shard(lib):
    array = lib.device_put(X, spec("x", "y")(lib))
    array.addressable_shards[7].data.delete()
    return array.is_deleted()


def typed_local_mesh(lib):
    mesh = lib.make_mesh((8,), ("x",))
    return mesh.local_mesh is mesh


def deeper_than_calls(lib):
    tree = 1
    for _ in range(2000):
        tree = [tree]
    return lib.tree.leaves(tree)


def keys_of_a_named_tuple(lib):
    return [key.name for key, _ in lib.tree_util.flatten_one_level_with_keys(Pair(1, 2))[0]]


def transposed_without_leaves(lib, inner):
    return lib.tree.transpose(lib.tree.structure([]), inner(lib), [])


def under(lib, scope, *arguments):
    """A scope of the library at the top level of its package."""
    return getattr(MODULES[lib.name], scope)(*arguments)


def guarded_move(source, target, guard):
    """Whether moving an array from one place to another passes."""

    def question(lib):
        array = lib.device_put(X, source(lib))
        with under(lib, guard, "disallow_explicit"):
            return lib.device_put(array, target(lib)).shape

    return question


def line_of(*entries, step=1):
    return lambda lib: lib.NamedSharding(lib.Mesh(np.array(lib.devices[::step]), ("x",)), lib.P(*entries))


def moved_within(wrap):
    """The shape of an Array of a program whose result is on the devices in another order."""

    def question(lib):
        array, turned = lib.device_put(X, line_of("x")(lib)), line_of("x", step=-1)(lib)
        return wrap(lib, turned)(array).shape

    return question


def constant_of_other_devices(lib):
    """The shape of a result of jit that is an Array on a device on which the call does not run."""
    constant = lib.device_put(X, lib.devices[2])
    return top(lib).jit(lambda x: constant)(lib.device_put(X, lib.devices[1])).shape


def guarded_number(lib):
    array = lib.device_put(1, lib.devices[0])
    with under(lib, "transfer_guard", "disallow"):
        return (array + 1).item()


def document_level(lib):
    with under(lib, "transfer_guard", "log_explicit_device_put"):
        return lib.device_put(1, lib.devices[0]).dtype.name


def read_x64_option(value):
    def question(lib):
        with under(lib, "enable_x64", value):
            return lib.device_put(1).dtype.name

    return question


MODULES = {"artifex_devices": ad, "jax": jax}
TOP = {OURS.name: (ad, ad.layout), JAX.name: (jax, importlib.import_module("jax.experimental.layout"))}


def top(lib):
    return TOP[lib.name][0]


def row_parts(lib, value=X):
    return [lib.device_put(value[i : i + 1], device) for i, device in enumerate(lib.devices)]


def rows(lib):
    return lib.NamedSharding(lib.Mesh(np.array(lib.devices), ("x",)), lib.P("x"))


def whole_deleted_after_part(lib):
    parts = row_parts(lib)
    whole = top(lib).make_array_from_single_device_arrays((8, 8), rows(lib), parts)
    parts[0].delete()
    return whole.is_deleted()


def unequal_replicas(lib):
    parts = [lib.device_put(X + i, device) for i, device in enumerate(lib.devices)]
    whole = top(lib).make_array_from_single_device_arrays((8, 8), spec()(lib), parts)
    return float(np.asarray(whole)[0, 0])


def deleted_part(lib):
    parts = row_parts(lib)
    for part in parts:
        part.delete()
    return top(lib).make_array_from_single_device_arrays((8, 8), rows(lib), parts)


def format_of(lib, order, place, *tiling):
    layout = TOP[lib.name][1]
    return layout.Format(layout.Layout(order, *tiling), place)


def product(a, b):
    """The spec of a product of two squares on a mesh of Explicit axes."""

    def question(lib):
        mesh = lib.make_mesh((2, 4), ("x", "y"))
        left, right = (lib.device_put(X, lib.NamedSharding(mesh, lib.P(*entries))) for entries in (a, b))
        return [entry for entry in (left @ right).sharding.spec if entry is not None]

    return question


def stacked_product(lib):
    mesh = lib.make_mesh((2, 4), ("x", "y"))
    left, right = (
        lib.device_put(X.reshape(8, 4, 2), lib.NamedSharding(mesh, lib.P(*entries))) for entries in ((), ("x",))
    )
    numpy = np if lib is OURS else importlib.import_module("jax.numpy")
    return [entry for entry in numpy.einsum("bij,bkj->bik", left, right).sharding.spec if entry is not None]


def reshaped(shape, entries, new):
    """The spec of an array on a mesh of Explicit axes in another shape."""

    def question(lib):
        sharding = lib.NamedSharding(lib.make_mesh((2, 4), ("x", "y")), lib.P(*entries))
        result = lib.device_put(X.reshape(-1)[: np.prod(shape)].reshape(shape), sharding).reshape(new)
        return [entry for entry in result.sharding.spec if entry is not None]

    return question


def running_sum_along_a_sharded_dimension(lib):
    mesh = lib.make_mesh((8,), ("x",))
    x = lib.device_put(X, lib.NamedSharding(mesh, lib.P("x")))
    if lib is OURS:
        return float(np.asarray(np.cumsum(x, axis=0))[-1, -1])
    with jax.set_mesh(mesh):
        return float(np.asarray(jax.numpy.cumsum(x, axis=0))[-1, -1])


XLA_CLIENTS = {OURS.name: ad.xla_client, JAX.name: importlib.import_module("jaxlib.xla_client")}


def list_of(devices):
    """How many devices the DeviceList has that is made of what `devices` says."""
    return lambda lib: len(XLA_CLIENTS[lib.name].DeviceList(devices(lib)))


def buffers_of_a_device(lib):
    placed = lib.device_put(X, lib.devices[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX's
        return any(buffer.shape == placed.shape for buffer in lib.devices[1].live_buffers())


def core_of(lib):
    return importlib.import_module("artifex_devices.xla_client" if lib is OURS else "jaxlib._jax")


def assignment(lib, rows):
    return core_of(lib).DeviceAssignment.create(np.array(rows))


def topology(lib):
    return core_of(lib).get_topology_for_devices(lib.devices)


def guarded_constant(lib):
    x = lib.device_put(X)
    with top(lib).transfer_guard("disallow"):
        made = top(lib).jit(lambda a: (a, np.ones(3)))(x)[1]
    return float(made.sum())


def deleted_with_its_clone(lib):
    x = lib.device_put(X)
    other = x.clone()
    x.delete()
    return other.is_deleted()


def set_and_reset_nans(lib):
    config = top(lib).config
    config.update("jax_debug_nans", True)
    try:
        return bool(config.jax_debug_nans)
    finally:
        config.update("jax_debug_nans", False)
