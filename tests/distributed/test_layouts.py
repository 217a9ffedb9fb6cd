# SPDX-License-Identifier: Apache-2.0
"""The same program on 8 devices of 1, 2, 4 and 8 processes: values as NumPy's, shardings as in one process."""

import functools
import itertools

import artifex_devices as ad
import numpy as np
import pytest

ORDERS = {"line": (0, 1, 2, 3, 4, 5, 6, 7), "crossed": (5, 0, 3, 6, 1, 7, 2, 4)}
LAYOUTS = [(1, "line"), (2, "line"), (2, "crossed"), (4, "line"), (4, "crossed"), (8, "crossed")]
ENTRIES = (None, "a", "b", ("a", "b"), ("b", "a"))
VECTORS = tuple(ad.P(entry) for entry in ENTRIES)
MATRICES = tuple(
    ad.P(rows, columns) for rows in ENTRIES for columns in ENTRIES if not {*(rows or "")} & {*(columns or "")}
)


class Program:
    """Arrays of one value for each spec, and the outcomes of calls with them."""

    def __init__(self, order, size=8, uneven=None):
        self.mesh = ad.Mesh(np.array(ad.devices())[list(order)].reshape(2, 4), ("a", "b"))
        self.matrix = np.arange(size * size, dtype=float).reshape(size, size)
        self.vector = np.arange(size) - 3.0
        self.outcomes = {}
        self._uneven = uneven
        self.matrices = {spec: self.put(self.matrix, spec) for spec in MATRICES}
        self.vectors = {spec: self.put(self.vector, spec) for spec in VECTORS}

    def put(self, value, spec):
        return ad.device_put(value, ad.NamedSharding(self.mesh, spec, uneven=self._uneven))

    def note(self, key, call, expected):
        """Notes the spec of the result, whose own shards are checked, or the class of the error."""
        try:
            result = call()
        except (RuntimeError, TypeError, ValueError) as error:
            self.outcomes[key] = type(error).__name__
            return
        shards = result.addressable_shards if isinstance(result, ad.Array) else ()
        for shard in shards:
            np.testing.assert_allclose(np.asarray(shard.data), expected[shard.index], err_msg=str(key))
        if not shards:
            np.testing.assert_allclose(result, expected, err_msg=str(key))
        self.outcomes[key] = (result.shape, str(getattr(result, "sharding", "").spec if shards else ""))


def pairs(order, size=8, uneven=None):
    """Operations of two operands, for all pairs of specs."""
    p = Program(order, size, uneven)
    x, y = p.matrix, p.vector
    for (s, a), (t, b) in itertools.product(p.matrices.items(), repeat=2):
        p.note(("add", s, t), lambda: a + b, x + x)  # noqa: B023 - called at once, as all of these
        p.note(("matmul", s, t), lambda: a @ b, x @ x)  # noqa: B023
        body = ad.shard_map(lambda block: block * 2, mesh=p.mesh, in_specs=t, out_specs=t)
        p.note(("shard_map", s, t), lambda: body(a), x * 2)  # noqa: B023
    for (s, a), (t, b) in itertools.product(p.matrices.items(), p.vectors.items()):
        p.note(("multiply", s, t), lambda: a * b, x * y)  # noqa: B023
        p.note(("where", s, t), lambda: np.where(a > 20, a, b), np.where(x > 20, x, y))  # noqa: B023
        p.note(("at", s, t), lambda: a.at[1].set(b), np.concatenate([x[:1], y[None], x[2:]]))  # noqa: B023
        p.note(("jit", s, t), lambda: ad.jit(np.subtract)(a, b), x - y)  # noqa: B023
        p.note(("matmul", s, t), lambda: a @ b, x @ y)  # noqa: B023
        p.note(("concatenate", s, t), lambda: np.concatenate([a, b[None]]), np.concatenate([x, y[None]]))  # noqa: B023
    for (s, a), (t, b) in itertools.product(p.vectors.items(), repeat=2):
        p.note(("add", s, t), lambda: a + b, y + y)  # noqa: B023
        p.note(("maximum", s, t), lambda: np.maximum(a, b), y)  # noqa: B023
        p.note(("vdot", s, t), lambda: np.vdot(a, b), y @ y)  # noqa: B023
        p.note(("select", s, t), lambda: np.select([a > 1], [a], b), y)  # noqa: B023
        p.note(("einsum", s, t), lambda: np.einsum("i,i->i", a, b), y * y)  # noqa: B023
        p.note(("outer", s, t), lambda: np.outer(a, b), np.outer(y, y))  # noqa: B023
    return {str(key): outcome for key, outcome in p.outcomes.items()}


def singles(order):
    """Operations of one sharded operand, some beside an uncommitted Array of each process."""
    p = Program(order)
    x, y = p.matrix, p.vector
    rate, row = ad.device_put(2.0), ad.device_put(y)
    assert not rate.committed
    for s, a in p.matrices.items():
        p.note(("rate", s), lambda: a * rate, x * 2)  # noqa: B023
        p.note(("rate first", s), lambda: rate - a, 2 - x)  # noqa: B023
        p.note(("jit", s), lambda: ad.jit(np.multiply)(a, rate), x * 2)  # noqa: B023
        p.note(("row", s), lambda: np.where(a > row, row, a), np.where(x > y, y, x))  # noqa: B023
        p.note(("row product", s), lambda: a @ row, x @ y)  # noqa: B023
        p.note(("row at", s), lambda: a.at[1].set(row), np.concatenate([x[:1], y[None], x[2:]]))  # noqa: B023
        p.note(("own at", s), lambda: ad.device_put(x).at[:].set(a), x)  # noqa: B023
        p.note(("diagonal", s), lambda: np.einsum("ii->i", a), np.diag(x))  # noqa: B023
        p.note(("transpose", s), lambda: a.T, x.T)  # noqa: B023
        p.note(("value", s), lambda: np.asarray(a), x)  # noqa: B023
        p.note(("index", s), lambda: a[2:6], x[2:6])  # noqa: B023
        p.note(("sort", s), lambda: np.sort(a, axis=0), x)  # noqa: B023
        p.note(("cumsum", s), lambda: np.cumsum(a, axis=1), x.cumsum(1))  # noqa: B023
        p.note(("flip", s), lambda: np.flip(a, 0), x[::-1])  # noqa: B023
        for axis in (None, 0, 1):
            p.note(("sum", axis, s), lambda: a.sum(axis=axis), x.sum(axis=axis))  # noqa: B023
    return {str(key): outcome for key, outcome in p.outcomes.items()}


@functools.cache
def in_one_process(body, *arguments):
    with ad.simulate(8):
        return body(*arguments)


REFUSED = ("at", "concatenate")  # where they would read parts of other processes


def check_outcomes(found, expected):
    """All processes have one outcome: that of one process, or RuntimeError where parts of others would be read."""
    assert all(each == found[0] for each in found)
    assert found[0].keys() == expected.keys()
    different = {key: (found[0][key], each) for key, each in expected.items() if found[0][key] != each}
    assert {outcome for outcome, _ in different.values()} <= {"RuntimeError"}
    assert {key.split("'")[1] for key in different} <= {*REFUSED}


@pytest.mark.parametrize(("count", "order"), LAYOUTS)
def test_all_pairs_of_specs_have_the_result_of_one_process(processes, count, order):
    found = processes(count, pairs, ORDERS[order], devices=8 // count, timeout=120).values
    check_outcomes(found, in_one_process(pairs, ORDERS[order]))


def test_uneven_parts_have_the_result_of_one_process(processes):
    arguments = (ORDERS["crossed"], 7, "last-short")
    found = processes(4, pairs, *arguments, devices=2, timeout=120).values
    check_outcomes(found, in_one_process(pairs, *arguments))


@pytest.mark.filterwarnings(r"ignore:sort. \d+ bytes are gathered")
@pytest.mark.parametrize(("count", "order"), LAYOUTS)
def test_uncommitted_arrays_and_refusals_are_the_same_in_every_process(processes, count, order):
    found = processes(count, singles, ORDERS[order], devices=8 // count, timeout=120).values
    expected = in_one_process(singles, ORDERS[order])
    assert all(each == found[0] for each in found)
    for key, outcome in expected.items():
        name = key.split("'")[1]
        may_refuse = name in ("row at", "own at", "value", "index", "cumsum", "flip", "sum")
        assert found[0][key] == outcome or (may_refuse and found[0][key] == "RuntimeError"), key


def bits_of_products():
    """The bytes of sums over a dimension that is sharded over all devices."""
    mesh = ad.Mesh(np.array(ad.devices()), ("a",))
    random = np.random.default_rng(3)
    found = []
    for dtype in (np.float16, np.float32, np.complex64, np.int32, np.bool_):
        for shapes in (((64, 40), (40, 24)), ((300, 320), (320, 200))):
            x, w = (random.normal(0, 9, shape).astype(dtype) for shape in shapes)
            columns = ad.device_put(x, ad.NamedSharding(mesh, ad.P(None, "a")))
            rows = ad.device_put(w, ad.NamedSharding(mesh, ad.P("a")))
            found.append(np.asarray(columns @ rows).tobytes())
    return found


@pytest.mark.parametrize("count", [2, 4])
def test_sums_between_processes_have_the_bits_of_one_process(processes, count):
    expected = in_one_process(bits_of_products)
    assert processes(count, bits_of_products, devices=8 // count).values == [expected] * count


def other_rates():
    """One process has another learning rate; then all have the same."""
    mesh = ad.Mesh(np.array(ad.devices()), ("a",))
    g = ad.device_put(np.ones(8), ad.NamedSharding(mesh, ad.P("a")))
    with pytest.raises(ValueError, match="another value in process 1 than in most"):
        g * ad.device_put(1.0 + (ad.process_index() == 1))
    return (g * ad.device_put(3.0)).addressable_shards[0].data.tolist()


def test_an_uncommitted_operand_must_be_the_same_value_in_every_process(processes):
    assert processes(4, other_rates).values == [[3.0]] * 4
