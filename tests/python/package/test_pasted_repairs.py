# SPDX-License-Identifier: Apache-2.0
"""The code at the end of a message runs as it stands, where the package is imported as in the documentation."""

import io

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.command_line import main

REPLICATED = "ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))"
GATHERED = "np.asarray(x)"


def message_of(call, names):
    with pytest.raises(Exception, match="; ") as caught:
        eval(call, names)
    return str(caught.value)


@pytest.fixture
def names(tmp_path):
    """What a user has: the package, NumPy, and x and its transpose y over the Explicit axes of make_mesh."""
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        x = ad.device_put(np.arange(64.0).reshape(8, 8), ad.NamedSharding(mesh, ad.P("x", "y")))
        sharding = ad.NamedSharding(mesh, ad.P("y"))
        yield {
            "ad": ad, "np": np, "mesh": mesh, "sharding": sharding, "x": x, "y": x.T, "file": io.BytesIO(),
            "folder": tmp_path / "saved",
        }  # fmt: skip


@pytest.mark.parametrize("index", ["0", ":4", "(slice(None), 1)", "[0, 2]", "-1"])
@pytest.mark.parametrize("repair", [REPLICATED, GATHERED])
def test_parts_of_an_array_on_explicit_axes(index, repair, names):
    assert repair in message_of(f"x[{index}]", names)
    got = eval(f"{repair}[{index}]", names)
    np.testing.assert_array_equal(np.asarray(got), eval(f"np.arange(64.0).reshape(8, 8)[{index}]", names))


@pytest.mark.parametrize(
    ("call", "name", "repair"),
    [
        ("x.reshape(64)", "x", REPLICATED),
        ("x @ y.T", "y", REPLICATED.replace("x", "y")),
        ("x + y", "y", "ad.reshard(y, x.sharding)"),
        ("np.array_split(x, 3)", "x", REPLICATED),
        ("np.cumsum(x)", "x", REPLICATED),
        ("np.roll(x, 1, axis=0)", "x", REPLICATED),
        ("np.fft.fft(x)", "x", "ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P('x',)))"),
    ],
)
def test_operations_on_explicit_axes(call, name, repair, names):
    values = {"np": np, "x": np.asarray(names["x"]), "y": np.asarray(names["y"])}
    assert repair in message_of(call, names)
    names[name] = eval(repair, names)
    got, expected = eval(call, names), eval(call, values)
    for part, expected_part in zip(got, expected, strict=True):
        np.testing.assert_allclose(np.asarray(part), expected_part)


@pytest.mark.parametrize(
    ("call", "repair"),
    [
        ("np.save(file, x)", "np.save(file, np.asarray(x))"),
        ("np.savez(file, x=x)", "np.savez(file, x=np.asarray(x))"),
        ("np.apply_along_axis(np.sum, 0, x)", "np.apply_along_axis(np.sum, 0, np.asarray(x))"),
        ("np.histogram(x, bins=4)", "np.histogram(np.asarray(x), bins=4)"),
        ("ad.device_put([[1, 2], [3, 4]], sharding)", "ad.device_put(np.array([[1, 2], [3, 4]]), sharding)"),
        ("ad.zeros", "ad.numpy.zeros((8, 8), device=sharding)"),
        ("ad.array", "ad.numpy.array([[1, 2], [3, 4]], device=sharding)"),
        ("ad.save", "ad.checkpoint.save(folder, {'x': x})"),
        ("ad.sum", "np.sum"),
        ("ad.make_mesh(8)", "ad.make_mesh((2, 4), ('data', 'model'))"),
        ("ad.Mesh(ad.devices())", "ad.Mesh(ad.devices(), ('x',))"),
        ("ad.reshard(x, ad.P('x'))", "ad.NamedSharding(mesh, ad.P('x',))"),
    ],
)
def test_calls(call, repair, names):
    assert repair in message_of(call, names)
    eval(repair, names)


@pytest.mark.parametrize(
    ("call", "statement", "then"),
    [
        ("ad.make_mesh((4, 4), ('x', 'y'))", "with ad.simulate(16):", "ad.make_mesh((4, 4), ('x', 'y'))"),
        ("ad.reshard(x, ad.P('x'))", "with ad.set_mesh(mesh):", "ad.reshard(x, ad.P('x'))"),
    ],
)
def test_statements(call, statement, then, names):
    assert statement in message_of(call, names)
    exec(f"{statement} {then}", names)


@pytest.mark.parametrize(
    ("typo", "repair"),
    [
        ("topolgy", "topology"),
        ("plan colective all_gather 1GB x", "collective"),
        ("plan mesh --cluster h1000 --mesh x=8", "h100"),
        ("plan reshard bfloat17[64] x _ --mesh x=8", "bfloat16"),
        ("plan collective all_gathr 1GB x --mesh x=8", "all_gather"),
        ("batch recommend --hardware h10", "h100"),
        ("info --jsn", "--json"),
    ],
)
def test_typos_of_commands(typo, repair, capsys):
    words = typo.split()
    if words[0] == "plan" and words[1] in ("reshard", "collective"):
        words += ["--cluster", "dgx h100"]
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert f"did you mean {repair}?" in capsys.readouterr().err.replace("'", "")
