# SPDX-License-Identifier: Apache-2.0
"""A program for 8 devices has the same specs and values on 4 and on 1: axes of size 1 stay in specs."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import AxisType, P

MESHES = [(2, 4), (1, 4), (4, 1), (1, 1)]
RNG = np.random.default_rng(0)
X, W1, W2 = RNG.normal(size=(8, 16)), RNG.normal(size=(16, 32)), RNG.normal(size=(32, 16))
BIAS, TABLE = RNG.normal(size=32), RNG.normal(size=(8, 16))


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


@pytest.fixture(params=MESHES, ids=str)
def shape(request):
    return request.param


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["Auto", "Explicit"])
def mesh(request, shape):
    return ad.make_mesh(shape, ("data", "tensor"), axis_types=(request.param,) * 2)


def put(mesh, value, *entries):
    return ad.device_put(value, ad.NamedSharding(mesh, P(*entries)))


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def forward(x, w1, w2, bias):
    """The steps of a small model, by name, for ndarrays and Arrays."""
    steps = {"normalized": normalized(x)}
    steps["hidden"] = np.maximum(steps["normalized"] @ w1 + bias, 0)
    steps["output"] = x + steps["hidden"] @ w2
    steps["heads"] = steps["output"].reshape(8, 4, 4)
    steps["turned"] = np.transpose(steps["heads"], (1, 0, 2))
    steps["scores"] = np.einsum("hbd,hcd->hbc", steps["turned"], np.moveaxis(TABLE.reshape(8, 4, 4), 1, 0))
    steps["weights"] = np.exp(steps["scores"] - steps["scores"].max(-1, keepdims=True))
    steps["gradient"] = steps["hidden"].T @ steps["output"]
    steps["row sums"] = steps["output"].sum(1)
    steps["column sums"] = steps["output"].sum(0)
    steps["loss"] = np.square(steps["output"]).mean()
    return steps


def specs_of_steps(kind):
    """Over Explicit axes x is sharded by rows alone: a product over a dimension that both operands shard needs Auto."""
    columns = "tensor" if kind == AxisType.Auto else None
    output = P("data", "tensor") if columns else P("data")
    turned = P("tensor", "data") if columns else P(None, "data")
    return {
        "normalized": output,
        "hidden": P("data", "tensor"),
        "output": output,
        "heads": output,
        "turned": turned,
        "scores": turned,
        "weights": turned,
        "gradient": P("tensor"),
        "row sums": P("data"),
        "column sums": P("tensor") if columns else P(),
        "loss": P(),
    }


def test_the_steps_of_a_model(mesh):
    kind = mesh.axis_types[0]
    x = put(mesh, X, "data", "tensor") if kind == AxisType.Auto else put(mesh, X, "data")
    found = forward(x, put(mesh, W1, None, "tensor"), put(mesh, W2, "tensor"), put(mesh, BIAS, "tensor"))
    for name, expected in forward(X, W1, W2, BIAS).items():
        assert found[name].sharding.mesh == mesh, name
        np.testing.assert_allclose(np.asarray(found[name]), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert {name: value.sharding.spec for name, value in found.items()} == specs_of_steps(kind)


def test_mapped_steps_take_what_operations_return(mesh):
    x = put(mesh, X, "data", "tensor")
    back = ad.shard_map(lambda b: b.T, mesh=mesh, in_specs=P("tensor", "data"), out_specs=P("data", "tensor"))(x.T)
    assert back.sharding == x.sharding
    np.testing.assert_array_equal(np.asarray(back), X)

    def parallel(x, w, norms):
        partial = ad.lax.psum((x / norms[:, None]) @ w, "tensor")
        return partial, ad.lax.pmean(partial.mean(), ("data", "tensor"))

    norms = np.sqrt(np.square(x).sum(1))
    assert norms.sharding.spec == P("data")
    step = ad.shard_map(
        parallel,
        mesh=mesh,
        in_specs=(P("data", "tensor"), P("tensor"), P("data")),
        out_specs=(P("data", None), P()),
    )
    result, mean = ad.jit(step)(x, put(mesh, W1, "tensor"), norms)
    expected = X / np.sqrt(np.square(X).sum(1))[:, None] @ W1
    assert result.sharding == ad.NamedSharding(mesh, P("data", None))
    assert mean.sharding == ad.NamedSharding(mesh, P())
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-9)
    np.testing.assert_allclose(float(mean), expected.mean(), rtol=1e-9)


def test_in_specs_are_inferred_from_results_of_operations(shape):
    mesh = ad.make_mesh(shape, ("data", "tensor"))
    x = put(mesh, X, "data", "tensor")
    seen = []
    mapped = ad.shard_map(lambda b: seen.append(b.shape) or b, mesh=mesh, out_specs=P("tensor", "data"))
    assert mapped((x * 2).T).sharding.spec == P("tensor", "data")
    assert seen == [(16 // shape[1], 8 // shape[0])] * (shape[0] * shape[1])


def test_in_specs_over_explicit_axes_are_compared_without_trailing_nones(shape):
    mesh = ad.make_mesh(shape, ("data", "tensor"))
    for placed, wanted in (
        (P("data"), P("data", None)),
        (P("data", None), P("data")),
        (P(("data",), ()), P("data")),
        (P(None, "tensor"), P((), "tensor")),
    ):
        x = ad.device_put(X, ad.NamedSharding(mesh, placed))
        assert ad.shard_map(lambda b: b, mesh=mesh, in_specs=wanted, out_specs=wanted)(x).sharding.spec == wanted
    for placed, wanted in ((P(), P("data")), (P("data"), P()), (P(("data", "tensor")), P(("tensor", "data")))):
        x = ad.device_put(X, ad.NamedSharding(mesh, placed))
        with pytest.raises(ValueError, match="are not placed as in_specs"):
            ad.shard_map(lambda b: b, mesh=mesh, in_specs=wanted, out_specs=wanted)(x)


OPERATIONS = {  # of x with P("data", "tensor"): the result's spec
    "transposed": (lambda x: x.T, P("tensor", "data")),
    "swapped": (lambda x: np.swapaxes(x, 0, 1), P("tensor", "data")),
    "negative": (lambda x: -x, P("data", "tensor")),
    "sum of rows": (lambda x: x.sum(0), P("tensor")),
    "sum of rows, kept": (lambda x: x.sum(0, keepdims=True), P(None, "tensor")),
    "mean of columns": (lambda x: x.mean(1), P("data")),
    "greatest": (lambda x: x.argmax(1), P("data")),
    "in heads": (lambda x: x.reshape(8, 4, 4), P("data", "tensor")),
    "in batches": (lambda x: x.reshape(4, 2, 16), P("data", None, "tensor")),
    "with a new dimension": (lambda x: x[:, None], P("data", None, "tensor")),
    "squeezed": (lambda x: np.expand_dims(x, 1).squeeze(1), P("data", "tensor")),
    "broadcast": (lambda x: np.broadcast_to(x, (3, 8, 16)), P(None, "data", "tensor")),
    "backwards": (lambda x: x[::-1], P("data", "tensor")),
    "iterated": (lambda x: next(iter(x)), P("tensor")),
    "flipped": (lambda x: np.flip(x, 1), P("data", "tensor")),
    "stacked": (lambda x: np.stack([x, x]), P(None, "data", "tensor")),
    "joined": (lambda x: np.concatenate([x, x], 1), P("data", "tensor")),
    "where": (lambda x: np.where(x > 0, x, 0), P("data", "tensor")),
    "running sum": (lambda x: np.cumsum(x, 0), P("data", "tensor")),
    "of itself": (lambda x: np.einsum("ij,ij->i", x, x), P("data")),
    "repeated": (lambda x: np.repeat(x, 2, 0), P("data", "tensor")),
    "upper triangle": (lambda x: np.triu(x), P("data", "tensor")),
    "zeros": (lambda x: np.zeros_like(x), P("data", "tensor")),
    "beside a replicated operand": (lambda x: put(x.sharding.mesh, X) + x, P("data", "tensor")),
    "beside a row": (lambda x: put(x.sharding.mesh, X[0], "tensor") * x, P("data", "tensor")),
    "updated": (lambda x: x.at[1].set(0.0), P("data", "tensor")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_have_the_same_specs(name, mesh):
    call, expected = OPERATIONS[name]
    assert call(put(mesh, X, "data", "tensor")).sharding == ad.NamedSharding(mesh, expected)


def test_dimensions_that_an_axis_of_size_one_shards_are_sorted_and_flattened(shape):
    mesh = ad.make_mesh(shape, ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
    x = put(mesh, X, "data")
    if shape[0] > 1:
        with pytest.warns(UserWarning, match=rf"^sort: {X.nbytes // shape[0]} bytes are gathered on each device"):
            found = np.sort(x, 0)
        assert found.sharding.spec == P(None, "data")
        np.testing.assert_array_equal(np.asarray(found), np.sort(X, 0))
        return
    for found, expected in ((np.sort(x, 0), np.sort(X, 0)), (x.T.reshape(-1), X.T.reshape(-1))):
        np.testing.assert_array_equal(np.asarray(found), expected)
    assert np.sort(x, 0).sharding.spec == P("data")


def test_explicit_axes_of_size_one_are_not_changed_silently():
    mesh = ad.make_mesh((1, 4), ("data", "tensor"))
    x = put(mesh, X, "data", "tensor")
    for call, text in (
        (lambda: x[0], "dimension 0 of shape"),
        (lambda: x + put(mesh, X, "tensor", "data"), "dimension 0 of the result would be sharded over"),
        (lambda: put(mesh, X, None, "data").reshape(-1), "the sharding does not carry over"),
        (lambda: np.cumsum(put(mesh, X, None, "data")), "without axis the Array is flattened"),
    ):
        with pytest.raises(ad.errors.ShardingTypeError, match=text):
            call()


def test_a_part_on_one_device_keeps_explicit_axes():
    x = put(ad.make_mesh((1, 1), ("data", "tensor")), X, "data", "tensor")
    for part, spec, expected in (
        (x[0], P("tensor"), X[0]),
        (x[2:5], P("data", "tensor"), X[2:5]),
        (x[:, ::3], P("data", "tensor"), X[:, ::3]),
    ):
        assert part.sharding.spec == spec
        np.testing.assert_array_equal(np.asarray(part), expected)
    with pytest.raises(ad.errors.ShardingTypeError, match="dimension 0 of shape"):
        x[np.array([3, 1])]
