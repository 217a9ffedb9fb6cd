# SPDX-License-Identifier: Apache-2.0
"""shard_map: blocks in, Arrays out, on both executors; and every way to call it wrongly."""

import contextvars
import functools
import gc
import threading
import weakref
from concurrent import futures

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, lax
from many_threads import collect_of_other_threads
from spmd_programs import EXECUTORS, name_of, unwatched

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


@pytest.fixture(params=EXECUTORS)
def smap(request):
    with unwatched(request.param):
        yield functools.partial(ad.shard_map, executor=name_of(request.param))


def auto_mesh(shape=(2, 4), names=("x", "y"), count=8):
    return ad.Mesh(np.array(ad.devices()[:count]).reshape(shape), names)


def identity(*args):
    return args[0] if len(args) == 1 else args


def check(result, expected, spec, mesh):
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert result.dtype == np.asarray(expected).dtype
    assert result.sharding == ad.NamedSharding(mesh, spec)
    assert result.committed


@pytest.mark.parametrize("spec", [P("x", "y"), P("y"), P(("x", "y")), P(("y", "x")), P(None, "y"), P("x"), P()])
def test_blocks_are_the_shards_of_the_spec_and_come_back(spec, smap):
    mesh = auto_mesh()
    sharding = ad.NamedSharding(mesh, spec)
    seen = {}

    def body(block):
        seen[int(lax.axis_index(("x", "y")))] = block
        return block * 2

    source = ad.device_put(X, sharding)
    check(smap(body, mesh, in_specs=spec, out_specs=spec)(source), X * 2, spec, mesh)
    for position, index in enumerate(sharding.devices_indices_map(X.shape).values()):
        np.testing.assert_array_equal(seen[position], X[index])


def test_blocks_are_read_only_views_of_the_shards(smap):
    mesh = auto_mesh((8,), ("x",))
    source = ad.device_put(X, ad.NamedSharding(mesh, P("x")))
    addresses = {shard.data.unsafe_buffer_pointer() for shard in source.addressable_shards}
    found = []

    def body(block):
        found.append((block.flags.writeable, block.ctypes.data))
        assert type(block) is np.ndarray
        return 0

    smap(body, mesh, in_specs=P("x"), out_specs=P())(source)
    assert {writeable for writeable, _ in found} == {False}
    assert {address for _, address in found} == addresses


def test_a_block_that_is_returned_is_not_copied_and_outlives_its_source(smap):
    mesh = auto_mesh((8,), ("x",))
    source = ad.device_put(X, ad.NamedSharding(mesh, P("x")))
    result = smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))(source)
    assert [s.data.unsafe_buffer_pointer() for s in result.addressable_shards] == [
        s.data.unsafe_buffer_pointer() for s in source.addressable_shards
    ]
    source.delete()
    np.testing.assert_array_equal(np.asarray(result), X)


def test_host_arrays_stay_writable_and_never_show_in_results(smap):
    mesh = auto_mesh((8,), ("x",))
    source = X.copy()
    result = smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))(source)
    assert source.flags.writeable
    source[:] = -1
    np.testing.assert_array_equal(np.asarray(result), X)


_of_the_caller: contextvars.ContextVar[object] = contextvars.ContextVar("of_the_caller")


def test_nothing_of_a_call_stays_with_what_waits_for_the_next(smap, settled):
    def call():
        mesh = auto_mesh((8,), ("x",))
        source = ad.device_put(X, ad.NamedSharding(mesh, P("x")))
        mine = np.zeros(1)
        token = _of_the_caller.set(mine)
        body = functools.partial(lax.psum, axis_name="x")
        smap(body, mesh, in_specs=P("x"), out_specs=P())(source)
        _of_the_caller.reset(token)
        return weakref.ref(body), weakref.ref(source), weakref.ref(mine)

    gc.collect()
    before = ad.devices()[0].memory_stats()["pool_bytes_in_use"]
    alive = call()
    gc.collect()
    ad.clear_caches()
    collect_of_other_threads()
    assert [each() for each in alive] == [None, None, None]
    assert ad.devices()[0].memory_stats()["pool_bytes_in_use"] == before


def test_host_arguments_numbers_and_scalars(smap):
    mesh = auto_mesh()
    f = smap(lambda a, b, c: (a + b * c).astype(np.float64), mesh, in_specs=(P("x"), P(), P()), out_specs=P("x"))
    check(f(X, 2, np.float32(0.5)), (X + 1).astype(np.float64), P("x"), mesh)


def test_subclasses_of_ndarray_have_shapes_of_their_own(smap, tmp_path):
    mesh = auto_mesh((8,), ("x",))
    f = smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))
    for i, shape in enumerate([(8, 4), (16, 2), (8,)]):
        source = np.memmap(tmp_path / str(i), np.float32, "w+", shape=shape)
        source[:] = np.arange(source.size).reshape(shape)
        check(f(source), source, P("x"), mesh)
    with pytest.raises(ad.errors.IndivisibleError):
        f(np.memmap(tmp_path / "last", np.float32, "w+", shape=(9, 2)))


def test_masked_arrays_are_refused(smap):
    mesh = auto_mesh((8,), ("x",))
    masked = np.ma.masked_array(X, X > 3)
    f = smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))
    f(X)
    with pytest.raises(ValueError, match=r"args\[0\] is a masked array"):
        f(masked)
    with pytest.raises(ValueError, match=r"args\[0\] is a masked array"):
        ad.jit(identity)(masked)
    with pytest.raises(ValueError, match="output on cpu:0 is a masked array"):
        smap(lambda a: np.ma.masked_array(a, a > 3), mesh, in_specs=P("x"), out_specs=P("x"))(X)
    with pytest.raises(ValueError, match="psum: a leaf is a masked array"):
        smap(lambda a: lax.psum(np.ma.masked_array(a, a > 3), "x"), mesh, in_specs=P("x"), out_specs=P())(X)


def test_strided_host_arrays(smap):
    mesh = auto_mesh()
    check(smap(identity, mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(X[:, ::-1]), X[:, ::-1], P("y", "x"), mesh)


def test_trees_and_prefixes(smap):
    mesh = auto_mesh()
    tree = {"a": X, "b": (X + 1, [X + 2]), "n": None}

    def body(d, scale):
        assert (set(d), type(d["b"]), d["n"]) == ({"a", "b", "n"}, tuple, None)
        return {"sum": lax.psum(d["a"], "x"), "rest": d["b"], "none": None, "number": scale}

    specs = {"sum": P(None, "y"), "rest": P("x", "y"), "none": P(), "number": P()}
    made = smap(body, mesh, in_specs=(P("x", "y"), None), out_specs=specs)(tree, 3)
    check(made["sum"], X[:4] + X[4:], P(None, "y"), mesh)
    check(made["rest"][0], X + 1, P("x", "y"), mesh)
    check(made["rest"][1][0], X + 2, P("x", "y"), mesh)
    assert made["none"] is None
    assert int(made["number"]) == 3


def test_results_can_grow_along_an_axis(smap):
    mesh = auto_mesh()
    check(smap(identity, mesh, in_specs=P(), out_specs=P("x"))(X), np.concatenate([X, X]), P("x"), mesh)
    made = smap(lambda a: a[None], mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))(X)
    check(made, X[:, None], P(("x", "y")), mesh)


def test_calls_by_position_by_keyword_and_as_decorators(smap):
    mesh = auto_mesh()
    check(ad.smap(identity, mesh, P("x"), P("x"), False)(X), X, P("x"), mesh)
    check(ad.shard_map(identity, mesh, P("x"), P("x"), False)(X), X, P("x"), mesh)
    check(ad.shard_map(f=identity, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_rep=True)(X), X, P("x"), mesh)

    @functools.partial(ad.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def first(a):
        """A docstring."""
        return a + 1

    @ad.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def second(a):
        return a + 2

    check(first(X), X + 1, P("x"), mesh)
    check(second(X), X + 2, P("x"), mesh)
    assert (first.__name__, first.__doc__) == ("first", "A docstring.")


def test_methods_can_be_mapped():
    mesh = auto_mesh()

    class Model:
        scale = 3

        @ad.shard_map(mesh=mesh, in_specs=(None, P("x")), out_specs=P("x"))
        def plain(self, a):
            return a

        def __call__(self, a):
            return ad.shard_map(lambda block: block * self.scale, mesh, P("x"), P("x"))(a)

        @ad.shard_map(mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))
        def cut(self, a):
            return a

    check(Model()(X), X * 3, P("x"), mesh)
    check(Model().plain(X), X, P("x"), mesh)  # None passes self as it is
    with pytest.raises(TypeError, match=r"args\[0\] of type Model is not an array"):
        Model().cut(X)


def test_no_arguments(smap):
    mesh = auto_mesh()
    made = smap(lambda: lax.axis_index("y")[None], mesh, in_specs=(), out_specs=P("y"))()
    check(made, np.arange(4, dtype=np.int32), P("y"), mesh)


def test_the_mesh_of_the_context_is_that_of_the_call(smap):
    f = smap(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match="no mesh is set"):
        f(X)
    for count in (2, 4):
        with auto_mesh((count,), ("x",), count) as mesh:
            check(f(X), X.reshape(count, -1, 4).sum(0), P(), mesh)
            with ad.set_mesh(auto_mesh((8,), ("x",))) as set_one:
                check(f(X), X.sum(0, keepdims=True), P(), set_one or auto_mesh((8,), ("x",)))


def test_a_mesh_without_devices_takes_those_of_an_argument(smap):
    mesh = auto_mesh()
    f = smap(identity, mesh.abstract_mesh, in_specs=P("x"), out_specs=P("x"))
    check(f(ad.device_put(X, ad.NamedSharding(mesh, P("x")))), X, P("x"), mesh)
    with pytest.raises(ValueError, match="an AbstractMesh, which has no devices"):
        f(X)


def test_partly_manual_maps_see_complete_blocks_along_the_other_axes(smap):
    mesh = auto_mesh()
    shapes = []

    def body(block):
        shapes.append(block.shape)
        return lax.psum(block, "x")

    f = smap(body, mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    check(f(ad.device_put(X, ad.NamedSharding(mesh, P("x", "y")))), X[:4] + X[4:], P(), mesh)
    assert shapes == [(4, 4)] * 2
    with pytest.raises(NameError, match="'y'"):
        smap(lambda a: lax.psum(a, "y"), mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})(X)
    check(smap(identity, mesh, P(None, "y"), P(None, "y"), axis_names={"y"})(X), X, P(None, "y"), mesh)


def test_other_layouts_progress_auto_meshes(smap):
    mesh = auto_mesh()
    for spec in (P(), P("y"), P(None, "x"), P("y", "x")):
        source = ad.device_put(X, ad.NamedSharding(mesh, spec))
        check(smap(identity, mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(source), X, P("x", "y"), mesh)
    other = auto_mesh((4, 2), ("a", "b"))
    source = ad.device_put(X, ad.NamedSharding(other, P("a")))
    check(smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))(source), X, P("x"), mesh)
    uncommitted = ad.device_put(X)
    check(smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))(uncommitted), X, P("x"), mesh)


def test_committed_to_other_devices():
    f = ad.shard_map(identity, auto_mesh((4,), ("x",), 4), in_specs=({"w": P("x")},), out_specs={"w": P("x")})
    wrong = ad.device_put(X, ad.devices()[5])
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"args\[0\]\['w'\] is placed on other devices than the mesh.*\[0, 1, 2, 3\].*\[5\]"
        ):
            f({"w": wrong})


def test_committed_to_the_devices_in_another_order():
    mesh = auto_mesh((4,), ("x",), 4)
    f = ad.shard_map(identity, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    turned = ad.device_put(X, ad.NamedSharding(ad.Mesh(np.array(ad.devices()[3::-1]), ("x",)), P("x")))
    with pytest.raises(
        ValueError,
        match=r"args\[0\] is placed on the mesh.s devices in another order; .*\[0, 1, 2, 3\].*\[3, 2, 1, 0\]",
    ):
        f(turned)
    check(f(ad.device_put(turned, ad.NamedSharding(mesh, P("x")))), X, P("x"), mesh)  # as the message says


def test_explicit_meshes_refuse_what_is_not_placed(smap):
    mesh = ad.make_mesh((2, 4), ("x", "y"))
    placed = ad.device_put(X, ad.NamedSharding(mesh, P("x")))
    f = smap(identity, mesh, in_specs=P("x"), out_specs=P("x"))
    check(f(placed), X, P("x"), mesh)
    check(f(X), X, P("x"), mesh)  # ndarrays are placed as on other meshes
    wrong = [ad.device_put(X), ad.device_put(X, ad.NamedSharding(auto_mesh(), P("x")))]
    for x in wrong:
        with pytest.raises(ValueError, match=r"args\[0\] of float32\(8, 4\) is not placed on this mesh.*P\('x',\)"):
            f(x)
    placed_otherwise = r"args\[0\] of float32\(8, 4\) is placed as P\('y',\), in_specs has P\('x',\)"
    with pytest.raises(ValueError, match=placed_otherwise):
        f(ad.device_put(X, ad.NamedSharding(mesh, P("y"))))
    whole = smap(identity, mesh, in_specs=P(), out_specs=P())
    check(whole(X), X, P(), mesh)
    check(whole(3.0), np.float64(3), P(), mesh)


def test_explicit_meshes_infer_in_specs(smap):
    mesh = ad.make_mesh((2, 4), ("x", "y"))
    placed = ad.device_put(X, ad.NamedSharding(mesh, P("x", "y")))
    shapes = []

    def body(a, b):
        shapes.append((a.shape, b.shape))
        return a

    check(smap(body, mesh, out_specs=P("x", "y"))(placed, X), X, P("x", "y"), mesh)
    assert shapes == [((4, 1), (8, 4))] * 8
    together = ad.device_put(X, ad.NamedSharding(mesh, P(("x", "y"))))
    shapes.clear()
    check(smap(body, mesh, out_specs=P(("x", "y")))(together, X), X, P(("x", "y")), mesh)
    assert shapes == [((1, 4), (8, 4))] * 8
    with pytest.raises(TypeError, match=r"in_specs is missing.*'x', 'y' are Auto"):
        ad.shard_map(identity, auto_mesh(), out_specs=P())(X)


def test_arguments_sharded_over_explicit_axes_that_are_not_manual_are_refused():
    mesh = ad.make_mesh((2, 4), ("x", "y"))
    placed = ad.device_put(X, ad.NamedSharding(mesh, P("x", "y")))
    with pytest.raises(ValueError, match=r"args\[0\] is sharded over 'y', an Explicit axis that is not in axis_names"):
        ad.shard_map(identity, mesh, out_specs=P("x"), axis_names={"x"})(placed)


def test_replicated_results_are_compared_bit_for_bit(smap):
    mesh = auto_mesh()

    def body(a):
        off = np.float32(lax.axis_index(("x", "y")) in (2, 7))
        return {"m": [a, np.zeros(3, np.float32) + off]}

    out = {"m": P("x")}
    with pytest.raises(
        ValueError,
        match=r"output\['m'\]\[0\].*replicated by its spec.*bits of cpu:0.*got others on cpu:1, cpu:2, cpu:3;",
    ):
        smap(lambda a: {"m": [a]}, mesh, in_specs=P("x", "y"), out_specs=out)(X)
    f = smap(body, mesh, in_specs=P("x"), out_specs=out)
    with pytest.raises(ValueError, match=r"output\['m'\]\[1\].*bits of cpu:0, got others on cpu:2;"):
        f(X)
    unchecked = smap(body, mesh, in_specs=P("x"), out_specs=out, check_vma=False)(X)
    check(unchecked["m"][1], np.zeros(6, np.float32), P("x"), mesh)
    check(unchecked["m"][0], X, P("x"), mesh)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("size", [3, 70_001])
def test_replicas_of_all_dtypes_and_sizes(dtype, size):
    mesh = auto_mesh((8,), ("x",))

    def body(a, differ):
        mine = np.ones(size, dtype)
        if differ and lax.axis_index("x") == 6:
            mine[-1] = 0
        return mine

    f = ad.shard_map(body, mesh, in_specs=(P("x"), P()), out_specs=P(), executor="cooperative")
    np.testing.assert_array_equal(np.asarray(f(X, 0)), np.ones(size, dtype))
    with pytest.raises(ValueError, match="got others on cpu:6;"):
        f(X, 1)


BAD_SPECS = [
    ({"in_specs": P("z")}, ValueError, r"in_specs = P\('z',\) names 'z'; expected axes that this call binds, 'x', 'y'"),
    ({"out_specs": {"a": P("z")}}, ValueError, r"out_specs\['a'\] = P\('z',\) names 'z'"),
    ({"in_specs": "x"}, TypeError, "in_specs is not a tree of PartitionSpecs: in_specs is 'x' \\(str\\)"),
    ({"out_specs": [P(), 3]}, TypeError, r"out_specs\[1\] is 3 \(int\)"),
    ({"out_specs": P("x", "x")}, ad.errors.DuplicateSpecError, "names an axis twice"),
    ({"in_specs": P("y"), "axis_names": {"x"}}, ValueError, "names 'y'; expected axes that this call binds, 'x';"),
    ({"axis_names": ["x"]}, TypeError, r"axis_names is \['x'\] \(list\); expected a set"),
    ({"axis_names": {"q"}}, ValueError, "axis_names has 'q'; expected axes of the mesh, 'x', 'y'"),
    ({"mesh": 3}, TypeError, r"mesh is 3 \(int\)"),
    ({"f": 3}, TypeError, "f is 3 "),
    ({"executor": "quick"}, ValueError, "executor is 'quick'"),
]


@pytest.mark.parametrize(("change", "kind", "text"), BAD_SPECS)
def test_what_is_wrong_before_the_call(change, kind, text):
    options = {"f": identity, "mesh": auto_mesh(), "in_specs": P("x"), "out_specs": P("x"), **change}
    with pytest.raises(kind, match=text):
        ad.shard_map(**options)


def test_out_specs_are_needed():
    with pytest.raises(TypeError, match="out_specs is missing"):
        ad.shard_map(identity, auto_mesh(), P("x"))


BAD_ARGUMENTS = [
    (P("x", None, None), (X,), ValueError, r"args\[0\] of float32\(8, 4\) has 2 dimensions, P\('x', None, None\) 3;"),
    (
        ({"b": P("y")},),
        ({"b": X[:3]},),
        ad.errors.IndivisibleError,
        r"args\[0\]\['b'\] of float32\(3, 4\) has 3 in dimen",
    ),
    (P(("x", "y")), (X[:4],), ad.errors.IndivisibleError, r"has 4 in dimension 0, which .* divides into 8"),
    ((P("x"), P("y")), (X,), ValueError, "in_specs has 2 entries, and the call has 1 positional argument"),
    ([P("x")], (X,), ValueError, "in_specs has 1 entry in a list"),
    (({"a": P("x")},), ({"c": X},), ValueError, r"in_specs is not a prefix: at in_specs\[0\]"),
    (P("x"), ("text",), TypeError, r"args\[0\] of type str is not an array"),
    (P("x"), ({"k": [X, object()]},), TypeError, r"args\[0\]\['k'\]\[1\] of type object is not an array"),
    (P("x"), (np.array([None] * 8),), TypeError, r"args\[0\]: dtype object is not supported on a device"),
    (P("x"), (X.astype(">f4"),), TypeError, "big-endian"),
    (P("x"), (3.0,), ValueError, r"args\[0\] of float64\(\) has 0 dimensions"),
]


@pytest.mark.parametrize(("in_specs", "args", "kind", "text"), BAD_ARGUMENTS)
def test_arguments_that_do_not_fit(in_specs, args, kind, text):
    with pytest.raises(kind, match=text):
        ad.shard_map(identity, auto_mesh(), in_specs=in_specs, out_specs=P("x"))(*args)


def test_deleted_arguments_are_named():
    mesh = auto_mesh((8,), ("x",))
    placed, gone = (ad.device_put(X, ad.NamedSharding(mesh, P("x"))) for _ in range(2))
    f = ad.shard_map(lambda a, d: a, mesh, in_specs=P("x"), out_specs=P("x"))
    f(placed, {"k": gone})
    gone.delete()
    with pytest.raises(RuntimeError, match=r"^shard_map\(<lambda>\): args\[1\]\['k'\] of float32\(8, 4\) was deleted"):
        f(placed, {"k": gone})
    with pytest.raises(RuntimeError, match=r"^pmap\(<lambda>\): args\[2\] of float32\(8, 4\) was deleted"):
        ad.pmap(lambda a, n, b: a, static_broadcasted_argnums=1)(X, 3, gone)
    with pytest.raises(RuntimeError, match=r"^jit\(<lambda>\): args\[0\]\['k'\] of float32\(8, 4\) was deleted"):
        ad.jit(lambda a: a)({"k": gone})


def test_an_int_that_fits_no_dtype():
    f = ad.shard_map(identity, auto_mesh(), in_specs=P(), out_specs=P())
    assert int(f(3)) == 3
    with pytest.raises(OverflowError, match=r"args\[0\]: the Python int does not fit 64 bits"):
        f(2**70)


def test_keyword_arguments_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        ad.shard_map(identity, auto_mesh(), in_specs=P("x"), out_specs=P("x"))(a=X)


def index_of_two():
    return int(lax.axis_index(("x", "y")))


BAD_RESULTS = [
    (lambda a: "text", P("x"), TypeError, r"output on cpu:0 is of type str; expected an ndarray or a number"),
    (lambda a: {"k": [a, object()]}, P("x"), TypeError, r"output\['k'\]\[1\] on cpu:0 is of type object"),
    (lambda a: np.array([None]), P("x"), TypeError, "output: dtype object is not supported on a device"),
    (lambda a: a.sum(), P("x"), ValueError, r"output of float32\(\) has too few dimensions for its spec P\('x',\)"),
    (lambda a: (a, a), (P("x"),) * 3, ValueError, "out_specs has 3 entries, and the function returns 2 values"),
    (lambda a: (a, a), [P("x"), P("x")], ValueError, "out_specs has 2 entries in a list"),
    (lambda a: a, None, ValueError, "out_specs is not a prefix"),
    (
        lambda a: a[index_of_two() == 3 :],
        P("x"),
        ValueError,
        r"expected float32\(4, 4\) as on cpu:0, got float32\(3, 4\) on cpu:3",
    ),
    (
        lambda a: a.astype(int) if index_of_two() else a,
        P(),
        ValueError,
        r"expected float32\(4, 4\) as on cpu:0, got int64",
    ),
    (lambda a: [a] if index_of_two() == 5 else a, P("x"), ValueError, r"different structure.*on cpu:0.*on cpu:5"),
]


@pytest.mark.parametrize(("body", "out_specs", "kind", "text"), BAD_RESULTS)
def test_results_that_do_not_fit(body, out_specs, kind, text, smap):
    with pytest.raises(kind, match=text):
        smap(body, auto_mesh(), in_specs=P("x"), out_specs=out_specs)(X)


def test_a_bodys_exception_comes_back_with_the_table(smap):
    raised = KeyError("mine")

    def body(a):
        if index_of_two() == 4:
            raise raised
        return lax.psum(a, "x")

    with pytest.raises(KeyError) as caught:
        smap(body, auto_mesh(), in_specs=P("x"), out_specs=P())(X)
    assert caught.value is raised
    assert "shard_map(body): a participant raised" in caught.value.__notes__[0]
    assert "cpu:4: raised" in caught.value.__notes__[0]


def test_a_map_in_a_map(smap):
    mesh, inner = auto_mesh((2,), ("x",), 2), auto_mesh((4,), ("z",), 4)

    def body(block):
        total = ad.shard_map(lambda b: lax.psum(b, "z"), inner, in_specs=P("z"), out_specs=P())(block)
        return lax.psum(np.asarray(total), "x")

    check(smap(body, mesh, in_specs=P("x"), out_specs=P())(X), X.sum(0, keepdims=True), P(), mesh)


def test_results_of_whole_arrays_and_big_blocks_on_auto():
    mesh = auto_mesh((8,), ("x",))
    big = np.random.default_rng(0).standard_normal((1024, 512))
    f = ad.shard_map(lambda a: (a @ a.T[:, :8], lax.pmean(a, "x")), mesh, P("x"), (P("x"), P()))
    product, mean = f(big)
    blocks = big.reshape(8, 128, 512)
    np.testing.assert_allclose(np.asarray(product), np.concatenate([b @ b.T[:, :8] for b in blocks]), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(mean), blocks.mean(0), rtol=1e-12, atol=1e-15)
    whole = ad.device_put(X)
    check(ad.shard_map(lambda a: whole, mesh, P("x"), P())(X), X, P(), mesh)


def test_nothing_is_kept_after_the_call(smap, settled):
    mesh = auto_mesh((8,), ("x",))
    f = smap(lambda a: lax.psum(np.ones((64, 64)) * a[0, 0], "x"), mesh, P("x"), P())
    f(X)
    gc.collect()
    before = len(ad.live_arrays())
    for _ in range(5):
        f(X)
    assert len(ad.live_arrays()) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_x64_blocks_and_results_are_narrow(smap):
    seen = []

    def body(a):
        seen.append(a.dtype)
        return a.astype(np.float64)

    wide = np.arange(8.0)
    f = smap(body, auto_mesh((8,), ("x",)), P("x"), P("x"))
    assert f(wide).dtype == np.float64
    with ad.enable_x64(False):
        check(f(wide), wide.astype(np.float32), P("x"), auto_mesh((8,), ("x",)))
    assert seen == [np.dtype(np.float64)] * 8 + [np.dtype(np.float32)] * 8


def test_names_of_jax_that_are_not_here():
    with pytest.raises(AttributeError, match=r"lax\.pmean"):
        ad.grad  # noqa: B018
    with pytest.raises(AttributeError, match=r"lax\.pmean"):
        ad.value_and_grad  # noqa: B018
    with pytest.raises(AttributeError, match="pmap and shard_map"):
        ad.vmap  # noqa: B018
    assert not hasattr(ad, "nothing_like_it")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zeros", "got NumPy's zeros; write ad.numpy.zeros((8, 8), device=sharding), which places its result"),
        ("array", "write ad.numpy.array([[1, 2], [3, 4]], device=sharding)"),
        ("sum", "got NumPy's sum; write np.sum; NumPy's functions take Arrays"),
    ],
)
def test_names_of_numpy_are_not_here(name, text):
    with pytest.raises(AttributeError, match=rf"artifex_devices\.{name}: NumPy is not part of this package") as raised:
        getattr(ad, name)
    assert text in str(raised.value)


def test_public_names_are_listed():
    assert {"shard_map", "smap", "pmap", "jit", "lax"} <= set(dir(ad))


@pytest.mark.thread_unsafe(reason="it changes options of the process, and expects their defaults")
def test_options_of_programs():
    before = {name: ad.config.read(name) for name in ("spmd_executor", "spmd_threads_bytes", "collective_timeout_s")}
    assert before["collective_timeout_s"] == 60.0
    assert before["spmd_executor"] == "auto"
    gate = threading.Event()
    for name, value, kind in [
        ("spmd_executor", "quick", ValueError),
        ("spmd_threads_bytes", -1, ValueError),
        ("spmd_threads_bytes", 1.5, TypeError),
        ("collective_timeout_s", 0, ValueError),
        ("collective_timeout_s", float("nan"), ValueError),
        ("collective_timeout_s", "long", TypeError),
    ]:
        with pytest.raises(kind, match=f"config.update: {name}"):
            ad.config.update(name, value)
    try:
        ad.config.update("spmd_executor", "threads")
        ad.config.update("collective_timeout_s", 0.2)
        mesh = auto_mesh((8,), ("x",))

        def body(a):
            if lax.axis_index("x") == 3:
                gate.wait()
            return lax.psum(a, "x")

        with pytest.raises(ad.errors.CollectiveError, match=r"collective_timeout_s = 0\.2"):
            ad.shard_map(body, mesh, P("x"), P())(X)
    finally:
        gate.set()
        for name, value in before.items():
            ad.config.update(name, value)


def test_state_of_a_call_does_not_reach_the_next(smap):
    mesh = auto_mesh((8,), ("x",))
    left = []

    def body(block):
        if len(left) < 8:
            left.append(contextvars.copy_context())
        else:
            with pytest.raises(RuntimeError, match="after its body's end"):
                left[0].copy().run(lax.psum, block, "x")  # a context is entered in one thread at a time
        return lax.psum(block, "x")

    mapped = smap(body, mesh=mesh, in_specs=P("x"), out_specs=P())
    blocks = np.arange(16.0).reshape(8, 2)
    for factor in (1, 2, 3):
        np.testing.assert_array_equal(mapped(factor * blocks), [[factor * 56.0, factor * 64.0]])


def test_a_call_after_a_failure_is_as_the_first(smap):
    mesh = auto_mesh((8,), ("x",))

    def body(block):
        total = lax.psum(block, "x")
        if total[0, 0] < 0:
            raise OverflowError(int(total[0, 0]))
        return total

    mapped = smap(body, mesh=mesh, in_specs=P("x"), out_specs=P())
    ones = np.ones((8, 1))
    np.testing.assert_array_equal(mapped(ones), [[8.0]])
    with pytest.raises(OverflowError, match="-8") as caught:
        mapped(-ones)
    (note,) = caught.value.__notes__
    assert "(collective 1)" in note
    assert "raised after psum float64(1, 1) over x" in note
    np.testing.assert_array_equal(mapped(3 * ones), [[24.0]])


@pytest.mark.parametrize("executor", ["cooperative", "unwatched"])
def test_a_function_that_calls_itself_in_several_threads(executor):
    mesh = auto_mesh((8,), ("x",))

    def body(block):
        total = lax.psum(block, "x")
        return total if total[0] > 100 else lax.psum(np.asarray(mapped(np.repeat(total, 8))), "x")

    with unwatched(executor), futures.ThreadPoolExecutor(3) as pool:
        mapped = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), executor="cooperative")
        for made in pool.map(lambda _: np.asarray(mapped(np.ones(8))), range(6)):
            np.testing.assert_array_equal(made, [8.0**5])


@pytest.mark.parametrize("operation", ["psum", "ppermute", "all_to_all", "all_gather", "psum_scatter"])
def test_nothing_of_a_call_is_kept(smap, operation):
    mesh = auto_mesh((8,), ("x",))
    seen = []
    bodies = {
        "psum": lambda x: lax.psum(x, "x"),
        "ppermute": lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]),
        "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
        "all_gather": lambda x: lax.all_gather(x, "x"),
        "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    }

    def body(block):
        mine = block + 1
        seen.append(weakref.ref(mine))
        made = bodies[operation](mine)
        seen.append(weakref.ref(made))
        return np.zeros(1)

    mapped = smap(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    for _ in range(2):
        mapped(np.zeros(64))
        gc.collect()
        collect_of_other_threads()
        assert [each() for each in seen] == [None] * 16
        seen.clear()


@pytest.mark.parametrize(
    ("shapes", "executor"),
    [
        # The largest block of a call decides: 8 of them make an argument; the limit is 1 KiB a block.
        ([(8, 128)], "cooperative"),
        ([(8, 256)], "threads"),
        ([(8, 1), (8, 256)], "threads"),
        ([(8, 256), (8, 1)], "threads"),
        ([(8, 255), (8, 128), (8, 1)], "cooperative"),
        ([(8, 1), (8, 256), (8, 2)], "threads"),
        ([], "cooperative"),
    ],
)
def test_auto_takes_threads_where_the_largest_block_of_any_argument_is_big(monkeypatch, shapes, executor):
    monkeypatch.setitem(vars(ad.config), "spmd_threads_bytes", 1024)
    threads = set()

    def body(*blocks):
        threads.add(threading.get_ident())
        lax.psum(np.ones(1, np.float32), "x")  # none ends before all have begun
        return np.zeros(1, np.float32)

    mesh = auto_mesh((8,), ("x",))
    arguments = [np.zeros(shape, np.float32) for shape in shapes]
    ad.shard_map(body, mesh=mesh, in_specs=(P("x"),) * len(shapes), out_specs=P("x"), executor="auto")(*arguments)
    # One participant of eight may run on the calling thread.
    assert (len(threads) == 8) == (executor == "threads")
    assert (threads == {threading.get_ident()}) == (executor == "cooperative")


def test_auto_needs_no_threads_for_one_participant(monkeypatch):
    monkeypatch.setitem(vars(ad.config), "spmd_threads_bytes", 1024)
    threads = []
    one = ad.shard_map(
        lambda block: threads.append(threading.get_ident()) or block + 1,
        mesh=auto_mesh((1,), ("x",), 1),
        in_specs=P("x"),
        out_specs=P("x"),
        executor="auto",
    )
    big = np.zeros(1 << 20, np.float32)
    np.testing.assert_array_equal(np.asarray(one(big)), big + 1)
    assert threads == [threading.get_ident()]
