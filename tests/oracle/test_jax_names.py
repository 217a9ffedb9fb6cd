# SPDX-License-Identifier: Apache-2.0
"""Members of meshes and shardings, options, and smaller names give what JAX gives."""

import contextlib
import gzip
import importlib
import io

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import multihost_utils
from artifex_devices._base.recorded_options import RECORDED
from both import JAX, LIBRARIES, OURS, assert_agree, jax, outcome, plain
from jax._src import tree_util as jax_tree
from jax._src.api import device_put_sharded
from jax.experimental import multihost_utils as jax_multihost

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def top(library):
    return ad if library is OURS else jax


def mixed(library):
    types = (library.AxisType.Explicit, library.AxisType.Auto)
    return library.Mesh(np.array(library.devices).reshape(2, 4), ("x", "y"), axis_types=types)


def facts(mesh):
    return (
        *(repr(mesh), mesh.axis_names, mesh.axis_sizes, mesh.axis_types, mesh.explicit_axes, mesh.auto_axes),
        *(mesh.manual_axes, mesh.are_all_axes_auto, mesh.are_all_axes_explicit, mesh.are_all_axes_manual),
        *(mesh.size, mesh.empty, mesh.shape_tuple),
    )


def over(library, *entries):
    return library.NamedSharding(library.Mesh(np.array(library.devices), ("x",)), library.P(*entries))


MESHES = {
    "mixed": mixed,
    "names": lambda library: mixed(library).update(axis_names=("a", "b")),
    "types": lambda library: mixed(library).update(axis_types=(library.AxisType.Auto,) * 2),
    "devices": lambda library: mixed(library).update(devices=np.array(library.devices).reshape(4, 2)),
    "rank": lambda library: mixed(library).update(devices=np.array(library.devices)),
    "empty": lambda library: library.Mesh(np.empty((), object), ()),
    "empty, updated": lambda library: library.Mesh(np.empty((), object), ()).update(),
    "no mesh is set": lambda library: top(library).sharding.get_mesh(),
    "abstract": lambda library: library.AbstractMesh((2, 4), ("x", "y")).update(axis_sizes=(4, 4)),
    "abstract names": lambda library: library.AbstractMesh((2, 4), ("x", "y")).update(axis_names=("a", "b")),
    "abstract rank": lambda library: library.AbstractMesh((2, 4), ("x", "y")).update(axis_names=("a",)),
    "abstract types": lambda library: library.AbstractMesh((2, 4), ("x", "y")).update_axis_types(
        {"y": library.AxisType.Explicit, "q": library.AxisType.Auto}
    ),
    "abstract wrong type": lambda library: library.AbstractMesh((2,), ("x",)).update_axis_types({"x": "Explizit"}),
    "abstract without axes": lambda library: library.AbstractMesh((), ()),
    "abstract of abstract": lambda library: library.AbstractMesh((2,), ("x",)).abstract_mesh,
    "manual": lambda library: library.AbstractMesh((2,), ("x",), axis_types=library.AxisType.Manual),
}


@pytest.mark.parametrize("name", MESHES)
def test_meshes(name):
    def ask(library):
        mesh = MESHES[name](library)
        text = facts(mesh)
        if not isinstance(mesh, library.Mesh):
            return text[1:]  # JAX's repr of an abstract mesh of a mesh names the kind of device
        return text, mesh.devices

    assert_agree(ask)


def test_shapes_and_updates_of_shardings():
    for shape in ((8, 4), (8,), (), (8, 4, 2), (3, 3)):
        for entries in ((), ("x",), ("x", None)):
            assert_agree(lambda lib, s=shape, e=entries: over(lib, *e).check_compatible_aval(s))
    sharding = lambda library: over(library, "x")  # noqa: E731
    for change in (
        lambda lib: {},
        lambda lib: {"spec": lib.P(None, "x")},
        lambda lib: {"spec": (None, "x")},
        lambda lib: {"memory_kind": "pinned_host"},
        lambda lib: {"mesh": mixed(lib)},
        lambda lib: {"spec": lib.P("q")},
    ):
        assert_agree(lambda lib, change=change: repr(sharding(lib).update(**change(lib))))
    for partitions in (None, ("y",), (None,), ("x", ("y", "z"))):
        assert_agree(lambda lib, p=partitions: lib.P("x", None).update(partitions=p))
    assert_agree(lambda lib: lib.P("x").update(partitions=3))
    for memory_kind in (None, "pinned_host", "bogus"):
        assert_agree(
            lambda lib, kind=memory_kind: repr(
                top(lib).sharding.make_single_device_sharding(lib.devices[1], memory_kind=kind)
            )
        )


def test_shards_are_committed_as_the_array():
    def ask(library):
        loose, placed = library.device_put(X), library.device_put(X, over(library, "x"))
        parts = [part.data for x in (loose, placed) for part in x.addressable_shards]
        return [part.committed for part in parts], loose.addressable_data(0).committed

    assert assert_agree(ask) == ("tuple", [("list", [False, *[True] * 8]), False])


def test_sizes_of_make_mesh():
    for sizes in (("a", 4), ((2,), 4), (None, 4), (16, 4)):
        assert assert_agree(lambda library, sizes=sizes: library.make_mesh(sizes, ("x", "y"))) is None


def test_values_of_device_put_sharded():
    for values in (3, {1, 2}, X):
        ours = outcome(lambda values=values: ad.device_put_sharded(values, OURS.devices))[1]
        theirs = outcome(lambda values=values: device_put_sharded(values, JAX.devices))[1]
        assert type(ours) is type(theirs) is TypeError
    ours = ad.device_put_sharded(range(8), OURS.devices)
    assert np.asarray(ours).tolist() == np.asarray(device_put_sharded(range(8), JAX.devices)).tolist()


def test_one_level():
    for value in ([1, [2]], (1, 2), {"b": 1, "a": [2]}, []):
        children, data = jax_tree.flatten_one_level(value)
        ours = ad.tree_util.flatten_one_level(value)
        assert ours == (children, data)
        assert type(ours[0]) is type(children)


def test_pictures_of_one_dimension():
    def ask(library, scale, size):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            top(library).debug.visualize_sharding(
                (size,), over(library, "x"), use_color=False, scale=scale, max_width=200
            )
        return text.getvalue().splitlines()[0].rstrip()

    pytest.importorskip("rich")
    for scale in (0.5, 1, 2, 10, 20, 30):
        for size in (8, 16):
            assert assert_agree(lambda lib, scale=scale, size=size: ask(lib, scale, size)) is not None


def test_shardings_are_inspected():
    def ask(library, value):
        seen = []
        top(library).debug.inspect_array_sharding(value, callback=lambda sharding: seen.append(repr(sharding)))
        return seen

    assert assert_agree(lambda library: ask(library, library.device_put(X, over(library, "x")))) is not None
    assert assert_agree(lambda library: ask(library, {"b": library.device_put(X), "a": []})) is not None


DTYPES = [np.float32, "bool", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "S3", object, "int64", int, None, "bogus"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_dlpack(dtype):
    assert_agree(lambda library: top(library).dlpack.is_supported_dtype(dtype))


@pytest.mark.filterwarnings("ignore:jax.experimental.shard_map is deprecated:DeprecationWarning")
def test_the_older_module_of_shard_map():
    def ask(library):
        module = importlib.import_module(f"{top(library).__name__}.experimental.shard_map")
        spec = library.P("x")
        made = module.shard_map(lambda a: a, over(library).mesh, in_specs=spec, out_specs=spec, check_rep=True)(X)
        return np.asarray(made), made.sharding.spec

    assert assert_agree(ask) is not None


def test_conversions_between_local_and_global():
    modules = {OURS.name: multihost_utils, JAX.name: jax_multihost}

    def to_global(library, value, entries):
        specs = None if entries is None else library.P(*entries)
        made = modules[library.name].host_local_array_to_global_array(value(library), over(library).mesh, specs)
        return np.asarray(made), made.sharding.spec, made.committed

    for value in (lambda lib: X, lambda lib: lib.device_put(X), lambda lib: lib.device_put(X, lib.devices[3])):
        assert assert_agree(lambda lib, value=value: to_global(lib, value, ("x",))) is not None
        assert assert_agree(lambda lib, value=value: to_global(lib, value, ())) is not None
        assert assert_agree(lambda lib, value=value: to_global(lib, value, None)) is None
    assert assert_agree(lambda lib: to_global(lib, lambda lib: X[:3], ("x",))) is None

    def back(library):
        x = library.device_put(X, over(library, "x"))
        same = modules[library.name].global_array_to_host_local_array(x, x.sharding.mesh, library.P())
        placed = modules[library.name].global_array_to_host_local_array(X, x.sharding.mesh, library.P("x"))
        return same is x, np.asarray(placed), placed.sharding.spec

    assert assert_agree(back) is not None


def test_profiles_are_compressed():
    for library in LIBRARIES:
        assert gzip.decompress(top(library).profiler.device_memory_profile())
    assert assert_agree(lambda library: top(library).profiler.device_memory_profile("gpu")) is None


def test_defaults_of_recorded_options():
    for name, option in RECORDED.items():
        read = jax.config.read if not hasattr(jax.config, name) else lambda name: getattr(jax.config, name)
        assert read(name) == option.default, name


def test_the_number_of_devices_can_be_set_to_itself():
    for library in LIBRARIES:
        config = top(library).config
        assert config.jax_num_cpu_devices == -1
        config.update("jax_num_cpu_devices", -1)
        with pytest.raises(RuntimeError):
            config.update("jax_num_cpu_devices", 5)
    assert plain(len(ad.devices())) == 8


@pytest.mark.parametrize(
    "name",
    ["", ".lax", ".sharding", ".tree", ".tree_util", ".debug", ".profiler", ".distributed", ".dlpack", ".errors"],
)
def test_names_that_jax_has_and_we_do_not_say_what_to_write(name):
    ours, theirs = importlib.import_module(f"artifex_devices{name}"), importlib.import_module(f"jax{name}")
    for each in dir(theirs):
        if each.startswith("_") or hasattr(ours, each):
            continue
        with pytest.raises(AttributeError, match=r"(does not exist: |write |is in another module)"):
            getattr(ours, each)


VALUES = {
    "explicit": lambda library: library.device_put(X, over_explicit(library, "x")),
    "two axes": lambda library: library.device_put(X, over_explicit(library, ("x", "y"))),
    "auto": lambda library: library.device_put(X, over(library, "x")),
    "one device": lambda library: library.device_put(X, library.devices[3]),
    "ndarray": lambda library: X,
    "number": lambda library: 1.5,
    "bool": lambda library: True,
    "scalar": lambda library: np.int8(3),
    "struct": lambda library: top(library).ShapeDtypeStruct((2, 3), np.int8),
}


def over_explicit(library, *entries):
    return library.NamedSharding(library.make_mesh((4, 2), ("x", "y")), library.P(*entries))


@pytest.mark.parametrize("value", VALUES)
def test_types_of_values_are_written_alike(value):
    def facts_of(library):
        found = top(library).typeof(VALUES[value](library))
        return str(found), repr(found), found.shape, found.dtype, found.weak_type

    assert facts_of(OURS) == facts_of(JAX)


@pytest.mark.parametrize("value", ["text", None, [1.0]])
def test_what_has_no_type_is_a_type_error_in_both(value):
    for library in LIBRARIES:
        with pytest.raises(TypeError):
            top(library).typeof(value)


def test_debug_print_prints_alike(capfd):
    printed = []
    for library in LIBRARIES:
        place = library.device_put
        top(library).debug.print("{} {x} {y:.2f}", place(X[0]), x=place(np.float32(2.5)), y=1.234)
        top(library).debug.print(ordered=True)("{a}, {}", 3, a="text")
        jax.effects_barrier()
        printed.append(capfd.readouterr().out)
        for arguments, error in ((("x {}",), IndexError), (("x", 3), ValueError), ((3,), TypeError)):
            with pytest.raises(error):
                top(library).debug.print(*arguments)
    assert printed[0] == printed[1] != ""
