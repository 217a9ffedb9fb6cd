# SPDX-License-Identifier: Apache-2.0
"""matmul, dot, einsum and their kind on Arrays: NumPy's values and dtypes, and the result lies as the operands do."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.planner import plan_reshard
from artifex_devices.testing import assert_same_bits, meshes, spec_entries
from artifex_devices.testing.sharding_strategies import partition_counts
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("each_way")

NAMES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "bfloat16"]
SIDES = st.sampled_from([1, 2, 3, 4, 8])


def small_integers(shape, dtype, seed):
    """Numbers whose sums of products are exact in every dtype."""
    return np.random.default_rng(seed).integers(-1, 2, size=shape).astype(dtype)


def draw_value(data, shape, dtype):
    return small_integers(shape, dtype, data.draw(st.integers(0, 99), label="seed"))


def draw_placed(data, value, mesh):
    """The value on the mesh, cut as it comes; sometimes on one device, uncommitted, or left on the host."""
    kind = data.draw(st.sampled_from(["cut", "cut", "cut", "whole", "default", "host"]), label="place")
    if kind == "host":
        return value
    if kind == "default":
        return ad.device_put(value)
    entries = data.draw(spec_entries(mesh.axis_names, max_rank=value.ndim), label="spec") if kind == "cut" else ()
    uneven = data.draw(st.sampled_from([None, None, "last-short"]), label="uneven")
    sizes = dict(mesh.shape)
    kept = [
        entry if uneven or value.shape[d] % partition_counts([entry], sizes)[0] == 0 else None
        for d, entry in enumerate(entries)
    ]
    return ad.device_put(value, ad.NamedSharding(mesh, ad.P(*kept), uneven=uneven))


def assert_equal(got, expected):
    assert isinstance(got, ad.Array)
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(np.asarray(got).astype(complex), expected.astype(complex))
    for shard in got.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data).astype(complex), expected[shard.index].astype(complex))


def on_devices(data, call, *values):
    """Whether the call gives the same for values and for Arrays of them."""
    mesh = data.draw(meshes(devices=ad.devices()), label="mesh")
    placed = [draw_placed(data, value, mesh) for value in values]
    if all(isinstance(x, np.ndarray) for x in placed):
        placed[0] = ad.device_put(values[0])
    if any(
        isinstance(x, ad.Array) and x.sharding.num_devices > 1 and getattr(x.sharding, "uneven", None) for x in placed
    ):
        # A short last part is an answer that only the same policy can give.
        placed = [
            ad.device_put(v, ad.NamedSharding(x.sharding.mesh, x.sharding.spec, uneven="last-short"))
            if isinstance(x, ad.Array) and isinstance(x.sharding, ad.NamedSharding)
            else x
            for x, v in zip(placed, values, strict=True)
        ]
    assert_equal(call(*placed), call(*values))


@settings(max_examples=60)
@given(st.data())
def test_matmul_is_numpys(data):
    dtype = np.dtype(getattr(ml_dtypes, name := data.draw(st.sampled_from(NAMES)), name))
    n, k, m = (data.draw(st.one_of(SIDES, st.just(0))) for _ in range(3))
    batch = [data.draw(SIDES) for _ in range(data.draw(st.integers(0, 2), label="batch"))]
    shapes = []
    for core in ((n, k), (k, m)):
        own = [1 if data.draw(st.integers(0, 3)) == 0 else side for side in batch]
        shapes.append((*own[data.draw(st.integers(0, len(own)), label="dropped") :], *core))
    if data.draw(st.booleans(), label="vector a"):
        shapes[0] = (k,)
    if data.draw(st.booleans(), label="vector b"):
        shapes[1] = (k,)
    on_devices(data, np.matmul, *(draw_value(data, shape, dtype) for shape in shapes))


@st.composite
def subscripts(draw):
    """Subscripts of one to three operands, and their shapes."""
    letters = "abcd"
    sizes = {letter: draw(st.sampled_from([1, 2, 4, 8])) for letter in letters}
    under = [draw(st.sampled_from([1, 2, 4])) for _ in range(draw(st.integers(0, 2)))]
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 3), label="operands")):
        own = draw(st.lists(st.sampled_from(letters), max_size=3), label="labels")
        term, shape = "".join(own), tuple(sizes[letter] for letter in own)
        if draw(st.booleans(), label="ellipsis"):
            at = draw(st.integers(0, len(term)))
            dims = under[draw(st.integers(0, len(under))) :]
            term, shape = f"{term[:at]}...{term[at:]}", (*shape[:at], *dims, *shape[at:])
        terms.append(term)
        shapes.append(shape)
    text = ",".join(terms)
    if draw(st.integers(0, 3), label="implicit") == 0:
        return text, shapes
    used = sorted({letter for term in terms for letter in term} - {"."})
    out = "".join(draw(st.permutations(used))[: draw(st.integers(0, len(used)))])
    at = draw(st.integers(0, len(out)))
    return f"{text}->{out[:at]}...{out[at:]}", shapes


@settings(max_examples=60)
@given(st.data())
def test_einsum_is_numpys(data):
    text, shapes = data.draw(subscripts(), label="subscripts")
    dtype = np.dtype(data.draw(st.sampled_from([n for n in NAMES if n != "bfloat16"]), label="dtype"))
    on_devices(data, lambda *values: np.einsum(text, *values), *(draw_value(data, shape, dtype) for shape in shapes))


@settings(max_examples=60)
@given(st.data())
def test_tensordot_dot_inner_are_numpys(data):
    dtype = np.dtype(getattr(ml_dtypes, name := data.draw(st.sampled_from(NAMES)), name))
    a = [data.draw(SIDES) for _ in range(data.draw(st.integers(0, 3)))]
    b = [data.draw(SIDES) for _ in range(data.draw(st.integers(0, 3)))]
    function = data.draw(st.sampled_from(["tensordot", "dot", "inner", "outer", "vdot"]))
    call = getattr(np, function)
    if function == "tensordot":
        count = data.draw(st.integers(0, min(len(a), len(b), 2)))
        pairs = list(
            zip(data.draw(st.permutations(range(len(a)))), data.draw(st.permutations(range(len(b)))), strict=False)
        )
        pairs = pairs[:count]
        for i, j in pairs:
            b[j] = a[i]
        axes = ([i - len(a) for i, _ in pairs], [j for _, j in pairs])
        call = lambda x, y: np.tensordot(x, y, axes)  # noqa: E731
    elif function == "vdot":
        b = list(a)
    elif function != "outer" and a and b:
        b[-1 if function == "inner" else max(len(b) - 2, 0)] = a[-1]
    if function == "outer":
        a, b = a[:1], b[:1]
    on_devices(data, call, draw_value(data, tuple(a), dtype), draw_value(data, tuple(b), dtype))


@settings(max_examples=60)
@given(st.data())
def test_ufuncs_with_core_dimensions_are_numpys(data):
    name = data.draw(st.sampled_from([n for n in ("vecdot", "matvec", "vecmat") if hasattr(np, n)]))
    n, k, rows = (data.draw(SIDES) for _ in range(3))
    shapes = {"vecdot": ((rows, k), (k,)), "matvec": ((2, n, k), (k,)), "vecmat": ((2, 1, n), (n, k))}[name]
    dtype = data.draw(st.sampled_from(["int32", "float64", "complex128"]))
    on_devices(data, getattr(np, name), *(draw_value(data, shape, dtype) for shape in shapes))


@settings(max_examples=60)
@given(st.data())
def test_trace_and_diagonal_are_numpys(data):
    shape = tuple(data.draw(SIDES) for _ in range(data.draw(st.integers(2, 3))))
    if data.draw(st.booleans(), label="square"):
        shape = (shape[0], shape[0], *shape[2:])
    i, j = data.draw(st.permutations(range(len(shape))))[:2]
    k = data.draw(st.sampled_from([0, 0, 1, -2]))
    value = draw_value(data, shape, data.draw(st.sampled_from(["int8", "float32", "bool", "float16"])))
    mesh = data.draw(meshes(devices=ad.devices()), label="mesh")
    x = draw_placed(data, value, mesh)
    x = ad.device_put(value) if isinstance(x, np.ndarray) else x
    for name in ("trace", "diagonal"):
        cut = any(x.sharding.shard_shape(shape)[d] != shape[d] for d in (i, j))
        if cut and (k != 0 or shape[i] != shape[j]):
            with pytest.raises(ShardingTypeError, match="expected unsharded dimensions"):
                getattr(np, name)(x, k, i, j)
        else:
            assert_equal(getattr(np, name)(x, k, i, j), getattr(np, name)(value, k, i, j))


@pytest.fixture
def explicit():
    """A 2 x 4 mesh of Explicit axes."""
    return ad.make_mesh((2, 4), ("x", "y"))


def ones(shape, mesh, *entries):
    return ad.device_put(np.ones(shape, np.float32), ad.NamedSharding(mesh, ad.P(*entries)))


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (("x", None), (None, "y"), ("x", "y")),
        ((("x", "y"), None), (), (("x", "y"),)),
        ((None, "y"), ("y", None), ()),
        (("x", "y"), ("y", None), ("x",)),
        (("x", "y"), (), ("x",)),
        ((), ("y", "x"), (None, "x")),
        ((None, ("x", "y")), (("x", "y"), None), ()),
        (("x", None), (None, "x"), ("x",)),
        (("x", "y"), ("x", "y"), ("x", "y")),
        ((None, "x"), ("y", None), ()),
    ],
)
def test_the_sharding_of_a_matrix_product(grid, a, b, result):
    product = ones((8, 16), grid, *a) @ ones((16, 8), grid, *b)
    assert product.sharding == ad.NamedSharding(grid, ad.P(*result))
    assert_same_bits(np.asarray(product), np.full((8, 8), 16, np.float32))
    assert product.committed


def test_local_products_move_nothing(grid, settled):
    a, b = ones((8, 16), grid, "x", None), ones((16, 8), grid, None, "y")
    with ad.transfers.record() as report:
        _ = a @ b
    assert report.bytes() == 0


def test_stacks_keep_their_cuts(grid):
    a = ones((4, 8, 16), grid, "y", "x")
    assert (a @ ones((16, 8), grid)).sharding == ad.NamedSharding(grid, ad.P("y", "x"))
    assert (a @ ones((4, 16, 8), grid)).sharding == ad.NamedSharding(grid, ad.P("y", "x"))
    assert np.einsum("bij,bjk->kb", a, ones((4, 16, 8), grid)).sharding == ad.NamedSharding(grid, ad.P(None, "y"))


def test_partial_sums_are_added_in_the_order_of_the_tiles(line):
    parts = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    x = ad.device_put(parts.reshape(-1), ad.NamedSharding(line, ad.P("x")))
    y = ad.device_put(np.ones(32, np.float32), ad.NamedSharding(line, ad.P("x")))
    expected = np.float32(0)
    for part in parts:
        expected = expected + np.matmul(part, np.ones(4, np.float32))
    assert (x @ y).item() == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_partial_sums_of_narrow_floats_are_float32(line, name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    value = np.array([256, 1, 1, 1, 1, 1, 1, 2] if name == "bfloat16" else [2048, 1, 1, 1, 1, 1, 1, 2], dtype)
    x = ad.device_put(value, ad.NamedSharding(line, ad.P("x")))
    got = np.dot(x, np.ones(8, dtype))
    assert got.dtype == dtype
    assert float(got) == value.astype(float).sum()  # one after the other in the narrow type it stays at the first


def test_bfloat16_einsum(line):
    value = small_integers((8, 4), ml_dtypes.bfloat16, 0)
    x = ad.device_put(value, ad.NamedSharding(line, ad.P("x")))
    got = np.einsum("ij,kj->ik", x, x)
    assert (got.dtype, got.sharding) == (value.dtype, x.sharding)
    wide = value.astype(np.float32)
    assert_equal(got, (wide @ wide.T).astype(value.dtype))
    assert_equal(np.einsum("ij->j", x), wide.sum(0).astype(value.dtype))


def test_explicit_axes_that_disagree_are_refused(explicit):
    with pytest.raises(ShardingTypeError, match=r"matmul: .*summed over is sharded over \('x',\) and over \('y',\)"):
        _ = ones((8, 8), explicit, None, "x") @ ones((8, 8), explicit, "y")
    with pytest.raises(ShardingTypeError, match=r"would shard dimension 0 of the result and dimension 1 of the result"):
        _ = ones((8, 8), explicit, "x") @ ones((8, 8), explicit, None, "x")
    with pytest.raises(ShardingTypeError, match=r"ad.reshard\(y, ad.NamedSharding\(y\.sharding\.mesh, ad.P\(\)\)\)$"):
        _ = ones((8, 8, 8), explicit, "x") @ ones((8, 8, 8), explicit, "y")
    assert (ones((8, 8), explicit, "x") @ ones((8, 8), explicit, "x")).sharding.spec == ad.P("x")


def test_the_bigger_operand_stays(grid):
    small, big = ones((8, 4), grid, None, "x"), ones((4, 512), grid, "y")
    assert (small @ big).sharding == ad.NamedSharding(grid, ad.P())
    assert np.einsum("ij,ik->ijk", ones((8, 1), grid, "x"), ones((8, 64), grid, "y")).sharding.spec == ad.P("y")


def test_sizes_that_do_not_match_are_listed(line):
    x = ones((8, 4), line, "x")
    with pytest.raises(
        ValueError, match=r"matmul: sizes do not match.*dimension 1 of operand 0 is 4 but dimension 0 of"
    ):
        _ = x @ x
    with pytest.raises(ValueError, match=r"matmul: operand 1 has too few dimensions"):
        _ = np.matmul(x, 2.0)
    with pytest.raises(ValueError, match=r"vdot: .*number of elements"):
        np.vdot(x, np.ones(3))
    with pytest.raises(ValueError, match=r"tensordot: axes does not fit"):
        np.tensordot(x, x, ((0, 1), (0,)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ij,jk->ik", "another number of operands"),
        ("i", "another number of dimensions"),
        ("ij->ik", "the result does not fit"),
        ("ij->ii", "the result does not fit"),
        ("i$", "have other characters"),
        ("...j->j", "ellipsis out"),
        ("i j - > j i", "a blank is inside of ->"),
        (". ..j", "a blank is inside of ..."),
    ],
)
def test_wrong_subscripts_are_errors(line, text, message):
    with pytest.raises(ValueError, match=rf"einsum: .*{message}"):
        np.einsum(text, ones((8, 4), line, "x"))


def test_einsum_takes_lists_of_numbers(named):
    a, b = np.arange(32.0).reshape(8, 4), np.arange(32.0).reshape(4, 8)
    x, y = ad.device_put(a, named("x")), ad.device_put(b, named(None, "y"))
    got = np.einsum(x, [0, 1], y, [1, 2], [2, 0])
    assert got.sharding == named("y", "x")
    assert_equal(got, np.einsum(a, [0, 1], b, [1, 2], [2, 0]))
    assert_equal(np.einsum(x, [Ellipsis, 1], y, [1, 2]), a @ b)


def test_einsum_takes_52_different_labels():
    x, y = (ad.device_put(np.full((1,) * 25 + (2,), value)) for value in (2.0, 3.0))
    first, second = list(range(26)), list(range(26, 52))
    assert_equal(np.einsum(x, first, y, second, [25, 51]), np.full((2, 2), 6.0))
    with pytest.raises(ValueError, match="einsum: 53 different labels; expected at most 52"):
        np.einsum(x, first, y, second, ad.device_put(np.ones(1)), [52], [25, 51])


def test_out_and_dtype(named):
    value = np.arange(32, dtype=np.int8).reshape(8, 4)
    x = ad.device_put(value, named("x"))
    out = np.zeros((8, 8), np.int64)
    assert np.matmul(x, value.T, out=out, dtype=np.int64) is out
    np.testing.assert_array_equal(out, np.matmul(value, value.T, dtype=np.int64))
    assert np.einsum("ij->i", x, dtype=np.int64).dtype == np.int64
    with pytest.raises(TypeError, match="out is not an ndarray"):
        np.dot(x, value.T, out=x)
    with pytest.raises(ValueError, match="out has another shape"):
        np.dot(x, value.T, out=np.zeros(3))
    with pytest.raises(TypeError, match="axes has no meaning"):
        np.matmul(x, value.T, axes=[(0, 1), (0, 1), (0, 1)])
    with pytest.raises(TypeError, match="order has no meaning"):
        np.einsum("ij->ji", x, order="F")


def test_operators_and_methods(named):
    value = np.arange(32.0).reshape(8, 4)
    x = ad.device_put(value, named("x"))
    assert_equal(x @ value.T, value @ value.T)
    assert_equal(value.T @ x, value.T @ value)
    assert_equal(x.dot(value.T), value @ value.T)
    assert_equal(x.T.dot(2), value.T * 2)
    assert_equal(np.linalg.matmul(x, value.T), value @ value.T)
    assert_equal(np.linalg.vecdot(x, value, axis=0), np.linalg.vecdot(value, value, axis=0))
    assert_equal(np.linalg.outer(x.ravel(), [1.0, 2.0]), np.outer(value, [1.0, 2.0]))
    assert (x @ [1, 2, 3, 4]).shape == (8,)
    with pytest.raises(TypeError):
        _ = x @ "text"


def test_uncommitted_operands_follow_the_committed_one(named):
    x = ad.device_put(np.ones((8, 4)), named("x"))
    y = ad.device_put(np.ones((4, 8)))
    assert not y.committed
    assert (x @ y).sharding == named("x")
    assert not (y.T @ y.T.T).committed


def test_operands_on_other_devices_are_refused(devices, named):
    x = ad.device_put(np.ones((8, 4)), named("x"))
    y = ad.device_put(np.ones((4, 8)), devices[3])
    with pytest.raises(ValueError, match="matmul: the operands are on incompatible devices"):
        _ = x @ y


def test_large_integer_products_are_split_into_pieces(devices):
    value = np.arange(256 * 256, dtype=np.int64).reshape(256, 256) % 7
    x = ad.device_put(value, devices[2])
    assert_equal(x @ x, value @ value)
    assert_equal(np.einsum("ij,kj->ik", x, x), value @ value.T)


@pytest.mark.parametrize("subscripts", ["ij->ji", "ij->ij", "ii->i", "ij"])
def test_bfloat16_without_a_sum(subscripts, named):
    values = np.arange(64).reshape(8, 8).astype(ml_dtypes.bfloat16)
    assert_same_bits(
        np.asarray(np.einsum(subscripts, ad.device_put(values, named("x")))), np.einsum(subscripts, values)
    )


def test_other_dtypes_of_ml_dtypes_have_no_einsum(named):
    x = ad.device_put(np.ones((8, 8), ml_dtypes.float8_e4m3fn), named("x"))
    with pytest.raises(TypeError, match="einsum: NumPy does not support dtype float8_e4m3fn"):
        np.einsum("ij->ji", x)


@pytest.mark.parametrize(
    ("subscripts", "specs", "moved", "target", "result"),
    [
        # The bigger operand decides how a dimension that is summed over is sharded; the smaller one follows.
        ("ij,jk->ik", ((None, "x"), ("y",)), 1, ("x",), ()),
        ("jk,ij->ik", (("y",), (None, "x")), 0, ("x",), ()),
        # x belongs to the rows of the result: the other operand is gathered.
        ("ij,jk->ik", (("x",), (None, "x")), 1, (), ("x",)),
        # Of a batch both dimensions change at once.
        ("bij,bjk->bik", (("y", None, "x"), (None, "x", "y")), 1, ("y", "x"), ("y",)),
        # A diagonal runs along both dimensions: the first keeps its axis, the second is whole.
        ("ii->i", (("x", "y"),), 0, ("x",), ("x",)),
    ],
)
@pytest.mark.parametrize("each_way", ["a call a shard"], indirect=True)
def test_an_operand_is_moved_to_the_layout_that_its_part_needs(settled, subscripts, specs, moved, target, result):
    shapes = {"ij": (32, 16), "jk": (16, 8), "bij": (8, 32, 16), "bjk": (8, 16, 4), "ii": (16, 16)}
    labels = subscripts.partition("->")[0].split(",")
    values = [small_integers(shapes[each], np.float32, seed) for seed, each in enumerate(labels)]
    with ad.simulate("numa:8 pu:1"):  # each device has its own memory: replicas are bytes too
        mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
        shardings = [ad.NamedSharding(mesh, ad.P(*entries)) for entries in specs]
        operands = [ad.device_put(value, sharding) for value, sharding in zip(values, shardings, strict=True)]
        with ad.transfers.record() as report:
            got = np.einsum(subscripts, *operands)
        assert_equal(got, np.einsum(subscripts, *values))
        assert got.sharding == ad.NamedSharding(mesh, ad.P(*result))
        wanted = ad.NamedSharding(mesh, ad.P(*target))
        planned = plan_reshard(values[moved].shape, np.float32, shardings[moved], wanted).bytes_copied
        assert report.bytes("device-to-device") == planned > 0
