# SPDX-License-Identifier: Apache-2.0
"""Operators and element-wise functions on Arrays: NumPy's values and dtypes, each device computes its own shard."""

import gc
import operator
import warnings
import weakref

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import arrays, assert_same_bits, meshes, shardings
from artifex_devices.testing.array_strategies import random_bits
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("each_way")

BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "ge": operator.ge,
}
NAMES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "bfloat16"]
DTYPES = st.sampled_from([np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES])


def outcome(call):
    """The value that NumPy gives, or the class of its error."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


def assert_same_outcome(got, expected):
    if isinstance(expected, type):
        assert got is expected
        return
    assert isinstance(got, ad.Array), got
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    # NumPy's vector loops may give NaNs of another sign or payload for another alignment: NaN-ness counts.
    wide = np.float32 if got.dtype == ml_dtypes.bfloat16 else got.dtype
    np.testing.assert_array_equal(np.asarray(got).astype(wide), np.asarray(expected).astype(wide))


@given(st.data())
def test_operators_of_two_arrays_are_numpys(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 8), max_size=3), label="shape"))
    mesh = data.draw(meshes(devices=ad.devices()), label="mesh")
    values, placed = [], []
    for _ in range(2):
        # Dimensions are dropped or made 1, so that operands broadcast.
        kept = shape[data.draw(st.integers(0, len(shape)), label="dropped") :]
        own = tuple(1 if data.draw(st.booleans(), label="one") else size for size in kept)
        value = data.draw(arrays(own, DTYPES))
        sharding = data.draw(shardings(devices=list(mesh.devices.flat), shape=own, single_device=False))
        entries = tuple(sharding.spec)
        try:
            sharding = ad.NamedSharding(mesh, ad.P(*entries))
            placed.append(ad.device_put(value, sharding))
        except ValueError:
            placed.append(ad.device_put(value, ad.NamedSharding(mesh, ad.P())))
        values.append(value)
    name = data.draw(st.sampled_from(sorted(BINARY)))
    assert_same_outcome(outcome(lambda: BINARY[name](*placed)), outcome(lambda: BINARY[name](*values)))


@given(st.data())
def test_operators_with_numbers_and_ndarrays_are_numpys(data):
    value = data.draw(arrays((8, 4), DTYPES))
    sharding = data.draw(shardings(devices=ad.devices(), shape=(8, 4)))
    placed = ad.device_put(value, sharding)
    other = data.draw(
        st.one_of(
            st.booleans(),
            st.integers(-3, 300),
            st.floats(width=32),
            st.complex_numbers(max_magnitude=10),
            arrays((4,), DTYPES),
            arrays((8, 1), DTYPES),
            arrays((), DTYPES).map(lambda x: x[()]),
        )
    )
    name = data.draw(st.sampled_from(sorted(BINARY)))
    swap = data.draw(st.booleans(), label="number first")
    got = outcome(lambda: BINARY[name](*((other, placed) if swap else (placed, other))))
    assert_same_outcome(got, outcome(lambda: BINARY[name](*((other, value) if swap else (value, other)))))


@pytest.mark.parametrize("name", ["negative", "sin", "exp", "sqrt", "isfinite", "logical_not", "sign", "square", "abs"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "complex64"])
def test_unary_ufuncs_are_numpys(name, dtype, named):
    value = np.arange(-16, 16).reshape(8, 4).astype(getattr(ml_dtypes, dtype, dtype))
    ufunc = getattr(np, name)
    placed = ad.device_put(value, named("x", "y"))
    assert_same_outcome(outcome(lambda: ufunc(placed)), outcome(lambda: ufunc(value)))


class TestResultShardings:
    def test_equal_shardings_stay(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x", "y"))
        assert (x + x).sharding is x.sharding
        assert (x + 1).sharding is x.sharding
        assert np.sin(x).sharding is x.sharding

    def test_an_unsharded_operand_meets_a_sharded_one(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        y = ad.device_put(np.ones((8, 8)), named(None, "y"))
        assert (x + y).sharding == named("x", "y") == (y + x).sharding

    def test_a_vector_broadcasts_over_a_sharded_dimension(self, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        bias = ad.device_put(np.arange(8.0), named("y"))
        assert (x + bias).sharding == named("x", "y")
        assert_same_bits(x + bias, np.arange(64.0).reshape(8, 8) + np.arange(8.0))

    def test_auto_axes_the_first_operand_wins(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x", "y"))
        y = ad.device_put(np.ones((8, 8)), named("y", "x"))
        assert (x + y).sharding == named("x", "y")
        assert (y + x).sharding == named("y", "x")

    def test_explicit_axes_refuse_a_conflict_and_name_the_repair(self, devices):
        mesh = ad.make_mesh((2, 4), ("x", "y"))
        x = ad.device_put(np.ones((8, 8)), ad.NamedSharding(mesh, ad.P("x", "y")))
        y = ad.device_put(np.ones((8, 8)), ad.NamedSharding(mesh, ad.P("y", "x")))
        with pytest.raises(ad.errors.ShardingTypeError, match=r"add: dimension 0 .*ad.reshard\(y, x\.sharding\)"):
            _ = x + y
        assert_same_bits(x + ad.device_put(y, x.sharding), np.full((8, 8), 2.0))

    def test_the_same_devices_in_another_mesh(self, named, line):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        y = ad.device_put(np.arange(64.0).reshape(8, 8), ad.NamedSharding(line, ad.P("x")))
        assert (x + y).sharding == x.sharding
        assert_same_bits(x + y, 2 * np.arange(64.0).reshape(8, 8))

    def test_uncommitted_operands_come_to_the_committed_ones(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x", "y"))
        loose = ad.device_put(np.arange(8.0))
        assert (loose + x).sharding == x.sharding
        assert (loose + x).committed
        assert not (loose + loose).committed

    def test_uneven_shards_stay_uneven(self, line):
        value = np.arange(11.0)
        x = ad.device_put(value, ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
        assert_same_bits(x * x, value * value)
        assert (x * x).sharding == x.sharding

    def test_replicas_share_one_result(self, named):
        x = ad.device_put(np.ones((8, 8)), named())
        y = np.where(x > 0, x, 0)
        assert len({shard.data.unsafe_buffer_pointer() for shard in y.addressable_shards}) == 1

    def test_results_that_are_objects_are_refused(self, named):
        x = ad.device_put(np.ones((8, 8)), named())
        with pytest.raises(TypeError, match="object"):
            np.frompyfunc(lambda value: value, 1, 1)(x)


class TestErrors:
    def test_committed_to_other_devices(self, devices):
        a = ad.device_put(np.ones(4), devices[0])
        b = ad.device_put(np.ones(4), devices[1])
        with pytest.raises(ValueError, match=r"add: the operands are on incompatible devices.*cpu \[0\].*cpu \[1\]"):
            _ = a + b

    def test_two_worlds(self, devices):
        a = ad.device_put(np.ones(4), devices[0])
        with ad.simulate(2):
            b = ad.device_put(np.ones(4), ad.devices()[0])
        with pytest.raises(ValueError, match="add"):
            _ = a + b

    def test_shapes_that_do_not_broadcast(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        with pytest.raises(ValueError, match=r"add: the operands' shapes do not broadcast.*\(8, 8\) and \(3,\)"):
            _ = x + np.ones(3)

    def test_out_of_an_array(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        with pytest.raises(TypeError, match="Arrays are immutable"):
            np.add(x, x, out=x)

    def test_operands_that_are_not_numbers(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        with pytest.raises(TypeError):
            _ = x + "text"
        with pytest.raises(TypeError, match=r"operand of type list is not an array of numbers"):
            _ = [None] + x  # noqa: RUF005 - a list as an operand
        assert (x == "text") is False

    def test_a_deleted_operand(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        y = x + 1
        x.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            _ = x + y

    @pytest.mark.usefixtures("no_moves")
    def test_functions_that_are_not_supported_name_the_way(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        with pytest.raises(TypeError, match=r"np\.kron\(np\.asarray\(x\), np\.asarray\(x\)\)$"):
            np.kron(x, x)
        with pytest.raises(TypeError, match="at: not supported"):
            np.add.at(x, 0, 1)

    def test_an_error_of_numpy_leaves_nothing(self, named, nothing_left):
        x = ad.device_put(np.ones((8, 8), np.uint8), named("x"))
        with pytest.raises(OverflowError):
            _ = x + 300

    @pytest.mark.parametrize(("columns", "spec"), [(8, ("x", "y")), (8, ("x",)), (8, ()), (7, (None, "y"))])
    def test_numbers_that_the_dtype_cannot_hold_are_refused_without_elements_too(self, named, columns, spec):
        value = np.ones((0, columns), np.uint8)
        x = ad.device_put(value, named(*spec, uneven="last-short"))
        for number in (300, -1):
            with pytest.raises(OverflowError):
                _ = value + number
            with pytest.raises(OverflowError):
                _ = x + number
        assert_same_bits(x + 3, value + 3)


class TestOutAndWhere:
    def test_out_brings_the_result_to_the_host(self, named):
        x = ad.device_put(np.arange(32.0).reshape(8, 4), named("x", "y"))
        out = np.empty((8, 4))
        assert np.add(x, x, out=out) is out
        assert_same_bits(out, 2 * np.arange(32.0).reshape(8, 4))

    def test_in_place_operators_of_ndarrays(self, named):
        x = ad.device_put(np.arange(32.0).reshape(8, 4), named("x", "y"))
        host = np.ones((8, 4))
        host += x
        assert_same_bits(host, 1 + np.arange(32.0).reshape(8, 4))

    def test_where_leaves_out_as_it_was(self, named):
        value = np.arange(32.0).reshape(8, 4)
        x = ad.device_put(value, named("x", "y"))
        out = np.full((8, 4), -1.0)
        np.sqrt(x, out=out, where=value > 5)
        assert_same_bits(out, np.sqrt(value, out=np.full((8, 4), -1.0), where=value > 5))

    def test_where_without_out_is_zero_elsewhere(self, named):
        value = np.arange(32.0).reshape(8, 4)
        x = ad.device_put(value, named("x", "y"))
        assert_same_bits(np.sqrt(x, where=x > 5), np.sqrt(value, out=np.zeros((8, 4)), where=value > 5))

    def test_wrong_shape_of_out(self, named):
        x = ad.device_put(np.ones((8, 4)), named("x", "y"))
        with pytest.raises(ValueError, match=r"out has another shape.*\(8, 4\), got \(4, 8\)"):
            np.add(x, x, out=np.empty((4, 8)))

    def test_two_results(self, named):
        value = np.arange(32.0).reshape(8, 4) / 3
        x = ad.device_put(value, named("x", "y"))
        for got, expected in zip(np.modf(x), np.modf(value), strict=True):
            assert_same_bits(got, expected)
        assert divmod(x, 2)[0].sharding == x.sharding


def test_big_arrays_are_worked_on_in_pieces(line):
    value = np.random.default_rng(0).standard_normal((8, 1 << 17)).astype(np.float32)
    x = ad.device_put(value, ad.NamedSharding(line, ad.P("x")))
    whole = ad.device_put(value)
    assert_same_bits(x * 2 + x, value * 2 + value)
    assert_same_bits(whole * 2 + whole, value * 2 + value)
    assert_same_bits(np.where(x > 0, x, -1), np.where(value > 0, value, np.float32(-1)))


@pytest.mark.parametrize("name", NAMES)
def test_where_of_big_operands_takes_their_bits(name, line):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    rng = np.random.default_rng(0)
    shape = (8 * 64, 1024)  # blocks of 64 KiB and more; the result bypasses the cache where elements have 8 bytes
    one, other = (random_bits(shape, dtype, seed) for seed in (1, 2))
    mask = rng.random(shape) < 0.5
    cut = ad.NamedSharding(line, ad.P("x"))
    x, y, m = (ad.device_put(value, cut) for value in (one, other, mask))
    assert_same_bits(np.where(m, x, y), np.where(mask, one, other))
    assert_same_bits(np.where(m, x, other[0]), np.where(mask, one, other[0]))  # broadcast
    assert_same_bits(np.where(m, other[3, 5], y), np.where(mask, other[3, 5], other))  # one for all
    assert_same_bits(np.where(mask[:, :1], x, y), np.where(mask[:, :1], one, other))
    assert_same_bits(np.where(True, x, y), one)
    assert_same_bits(np.where(m.T, x.T, y.T), np.where(mask.T, one.T, other.T))


def test_where_of_big_operands_promotes_as_numpy(line):
    values = np.arange(8.0 * (1 << 15), dtype=np.float32)
    x = ad.device_put(values, ad.NamedSharding(line, ad.P("x")))
    assert_same_bits(np.where(x > 9, x, 0), np.where(values > 9, values, 0))
    wide = np.arange(x.size)  # int64 and float32 make float64
    assert_same_bits(np.where(x > 9, x, wide), np.where(values > 9, values, wide))
    assert_same_bits(np.where(wide, x, -0.0), np.where(wide, values, -0.0))  # any number that is not 0 is true


def test_numpys_error_state_holds_on_every_core(line):
    x = ad.device_put(np.zeros((8, 1 << 17), np.float32), ad.NamedSharding(line, ad.P("x")))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        _ = 1 / x
    with np.errstate(divide="ignore"):
        assert np.isinf(np.asarray(1 / x)).all()


class TestElementwiseFunctions:
    def test_values_and_shardings(self, named):
        value = np.arange(-16.0, 16.0).reshape(8, 4) / 3
        x = ad.device_put(value, named("x", "y"))
        for call in (
            lambda a: np.where(a > 0, a, -a),
            lambda a: np.clip(a, -1, 2),
            lambda a: np.clip(a, None, 2),
            lambda a: np.clip(a, min=0),
            lambda a: np.round(a, 1),
            lambda a: np.nan_to_num(a / 0),
            lambda a: np.isclose(a, a + 1e-9),
            lambda a: np.astype(a, np.float32),
            lambda a: np.real(a * 1j),
        ):
            with np.errstate(all="ignore"):
                got, expected = call(x), call(value)
            assert_same_bits(got, expected)
            assert got.sharding == x.sharding

    def test_where_with_two_operands_is_refused(self, named):
        x = ad.device_put(np.ones((8, 4)), named("x"))
        with pytest.raises(ValueError, match="where: either both or neither of x and y should be given"):
            np.where(x, 1)


def test_out_without_dimensions(named):
    x = ad.device_put(np.float64(2.5), named())
    out = np.zeros(())
    assert np.add(x, 1, out=out) is out
    assert out == 3.5
    assert np.add(x, 4, out=out, where=np.array(False)) is out
    assert out == 3.5


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float64", "complex64", "bfloat16"])
@pytest.mark.parametrize("exponent", [2, 0.5, 2.0, 3, True])
def test_powers_are_those_of_ndarrays(dtype, exponent, named):
    values = np.array([0, 1, 2, 3, 4, 5, 6, 7]).astype(getattr(ml_dtypes, dtype, dtype))
    expected = values**exponent
    assert_same_bits((ad.device_put(values, named("x")) ** exponent).__array__(), expected)


def test_sqrt_of_minus_infinity_is_that_of_ndarrays(named):
    with np.errstate(invalid="ignore"):
        assert np.isnan((ad.device_put(np.full(8, -np.inf), named("x")) ** 0.5).__array__()).all()


def test_operands_of_two_worlds_are_refused(named):
    x = ad.device_put(np.ones((8, 8)), named("x"))
    with ad.simulate(2):
        other = ad.device_put(np.ones(8))
    for call in (lambda: x + other, lambda: x @ other, lambda: np.concatenate([other, ad.device_put(np.ones(8))])):
        with pytest.raises(ValueError, match=r"^(add|matmul|concatenate): an operand of shape .* another world"):
            call()


def test_a_deleted_operand_is_an_error(named):
    x = ad.device_put(np.ones(8), named("x"))
    x.delete()
    for call in (lambda: x + 1, x.sum, lambda: x[0], lambda: np.cumsum(x)):
        with pytest.raises(RuntimeError, match=r"^NumPy operation: the Array of shape .* was deleted"):
            call()
    for call in (lambda: np.asarray(x), x.tolist):
        with pytest.raises(RuntimeError, match=r"^device_get: the Array of shape .* was deleted"):
            call()


def test_a_guards_refusal_names_the_operation(named):
    x = ad.device_put(np.ones((8, 8)), named("x"))
    whole = ad.device_put(np.ones(8))
    calls = {"add": lambda: x + np.ones(8), "matmul": lambda: x @ np.ones(8), "subtract": lambda: x - whole}
    for name, call in calls.items():
        refused = pytest.raises(ad.errors.TransferGuardError, match=f"^{name}: disallowed implicit")
        with ad.transfer_guard("disallow"), refused:
            call()


@pytest.mark.usefixtures("no_moves")
def test_unsupported_functions_of_submodules_are_named_in_full():
    with pytest.raises(TypeError, match=r"linalg\.eig: .*np\.linalg\.eig\(np\.asarray\(x\)\)"):
        np.linalg.eig(ad.device_put(np.eye(2)))


def test_clear_caches_lets_go_of_worlds_that_have_ended():
    def work():
        with ad.simulate(4):
            mesh = ad.Mesh(np.array(ad.devices()), ("x",))
            x = ad.device_put(np.ones((8, 4)), ad.NamedSharding(mesh, ad.P("x")))
            _ = x + np.ones(4), x[0], x.sum(axis=0), x @ np.ones((4, 2)), np.sort(x), x.T
            ad.shard_map(lambda block: block, mesh=mesh, in_specs=ad.P("x"), out_specs=ad.P("x"))(x)
            return weakref.ref(mesh)

    mesh = work()
    ad.clear_caches()
    gc.collect()
    assert mesh() is None


def test_functions_of_complex_numbers(named):
    value = np.array([1 + 1j, -2, 3j, 4 - 4j] * 2, np.complex64)
    x = ad.device_put(value, named("x"))
    for function in (np.angle, lambda z: np.angle(z, deg=True), np.isreal, np.iscomplex):
        assert_same_bits(function(x), function(value))
        assert function(x).sharding == x.sharding


@pytest.mark.parametrize("other", ["a", None, object()], ids=["text", "None", "object"])
def test_the_power_of_another_object_is_pythons_error(other):
    with ad.simulate(2):
        x = ad.device_put(np.ones(4))
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*\* or pow\(\)"):
            x**other


def test_c_order_is_the_order_of_results():
    value = np.arange(12.0).reshape(3, 4)
    x = ad.device_put(value)
    for order in ("C", "K"):
        assert_same_bits(np.add(x, x, order=order), value + value)
        assert_same_bits(np.matmul(x, value.T, order=order), value @ value.T)
    for order in ("F", "A"):
        with pytest.raises(TypeError, match="add: order and subok have no meaning on Arrays; expected order 'K'"):
            np.add(x, x, order=order)
