# SPDX-License-Identifier: Apache-2.0
"""with_sharding_constraint, reshard, set_mesh and its kin."""

import contextvars
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import get_abstract_mesh, get_mesh, use_abstract_mesh
from artifex_devices.testing import assert_same_bits

X = np.arange(64, dtype=np.float32).reshape(8, 8)
FREE = ad.P.UNCONSTRAINED


# --- with_sharding_constraint ---


def test_a_constraint_moves_what_lies_otherwise(named, devices):
    array = ad.device_put(X, named("x"))
    moved = ad.with_sharding_constraint(array, named(None, "y"))
    assert moved.sharding == named(None, "y")
    assert_same_bits(moved, X)
    assert ad.with_sharding_constraint(array, named("x")) is array
    assert ad.with_sharding_constraint(X, sharding=named("y")).sharding == named("y")
    assert ad.with_sharding_constraint(X, ad.SingleDeviceSharding(devices[3])).devices() == {devices[3]}
    assert ad.lax.with_sharding_constraint is ad.with_sharding_constraint


def test_trees_and_prefixes(named):
    tree = ad.with_sharding_constraint({"a": X, "b": [X, X]}, {"a": named("x"), "b": named()})
    assert tree["a"].sharding == named("x")
    assert [leaf.sharding for leaf in tree["b"]] == [named()] * 2
    with pytest.raises(ValueError, match="not a prefix"):
        ad.with_sharding_constraint([X, X], [named()])


def test_a_spec_takes_the_mesh_that_is_set_or_entered(grid, line, named):
    with pytest.raises(RuntimeError, match="set_mesh"):
        ad.with_sharding_constraint(X, ad.P("x"))
    with ad.set_mesh(grid):
        assert ad.with_sharding_constraint(X, ad.P("x")).sharding == named("x")
        with line:
            assert ad.with_sharding_constraint(X, ad.P("x")).sharding == named("x")
    with line:
        assert ad.with_sharding_constraint(X, ad.P("x")).sharding == ad.NamedSharding(line, ad.P("x"))


@pytest.mark.parametrize(
    ("now", "asked", "expected"),
    [
        (("y",), (FREE, "x"), ("y", "x")),
        (("y",), (FREE, "y"), (None, "y")),
        (("y",), (FREE,), ("y",)),
        (("y",), ("x", FREE), ("x", None)),
        ((("x", "y"),), (FREE, "y"), (None, "y")),
        (None, (FREE, "x"), (None, "x")),
    ],
    ids=repr,
)
def test_unconstrained_dimensions_stay_as_they_are(now, asked, expected, named):
    source = X if now is None else ad.device_put(X, named(*now))
    array = ad.with_sharding_constraint(source, named(*asked))
    assert array.sharding == named(*expected)
    assert_same_bits(array, X)


def test_errors_of_constraints(named, devices):
    constrain = ad.with_sharding_constraint
    with pytest.raises(TypeError, match="shardings is missing"):
        constrain(X)
    with pytest.raises(TypeError, match="shardings is given twice"):
        constrain(X, named(), sharding=named())
    with pytest.raises(TypeError, match="SingleDeviceSharding"):
        constrain(X, devices[0])
    with pytest.raises(ValueError, match="is None"):
        constrain([X, X], [named(), None])
    with pytest.raises(ValueError, match=r"rank|dimensions"):
        constrain(X, named("x", None, "y"))
    with pytest.raises(TypeError, match=r"\['b'\]"):
        constrain({"a": X, "b": "text"}, named())


# --- reshard ---


def test_reshard_gives_each_dimension_an_entry(grid, named):
    array = ad.device_put(X, named("x"))
    moved = ad.reshard(array, named(None, "y"))
    assert moved.sharding == named(None, "y")
    assert_same_bits(moved, X)
    assert ad.reshard(array, named("y")).sharding.spec == ad.P("y", None)
    assert ad.sharding.reshard({"a": X}, {"a": named("y")})["a"].sharding == named("y", None)
    with ad.set_mesh(grid):
        assert ad.reshard([X, X[0]], ad.P("x"))[1].sharding == named("x")


def test_errors_of_reshard(named, devices):
    with pytest.raises(ValueError, match="set_mesh"):
        ad.reshard(X, ad.P("x"))
    with pytest.raises(ValueError, match="is None"):
        ad.reshard(X, None)
    for place in (devices[0], ad.SingleDeviceSharding(devices[0]), "cpu"):
        with pytest.raises(TypeError, match="expected a NamedSharding"):
            ad.reshard(X, place)
    with pytest.raises(ValueError, match="no devices"):
        ad.reshard(X, ad.NamedSharding(ad.AbstractMesh((2,), ("x",)), ad.P("x")))
    with pytest.raises(TypeError):
        ad.reshard("text", named())


# --- set_mesh ---


def test_set_mesh_as_context_and_as_setter(grid, line):
    assert get_mesh().empty
    assert get_abstract_mesh().empty
    with ad.set_mesh(grid) as nothing:
        assert nothing is None
        assert get_mesh() is grid
        assert get_abstract_mesh() == grid.abstract_mesh
        with ad.set_mesh(line):
            assert get_mesh() is line
            with ad.set_mesh(None):
                assert get_mesh().empty
        assert get_mesh() is grid
        setter = ad.sharding.set_mesh(line)
        assert get_mesh() is line
        with setter:
            assert get_mesh() is line
        assert get_mesh() is grid
    assert get_mesh().empty


def test_a_mesh_is_left_also_by_an_error(grid):
    with pytest.raises(ZeroDivisionError), ad.set_mesh(grid):
        raise ZeroDivisionError
    assert get_mesh().empty


@pytest.mark.parametrize("mesh", [3, "mesh", ad.AbstractMesh((2,), ("x",))], ids=repr)
def test_set_mesh_wants_a_mesh(mesh):
    with pytest.raises(ValueError, match="expected a Mesh or None"):
        ad.set_mesh(mesh)
    assert get_mesh().empty


def test_a_mesh_belongs_to_its_thread_and_context(grid):
    seen = []
    with ad.set_mesh(grid):
        thread = threading.Thread(target=lambda: seen.append(get_mesh()))
        thread.start()
        thread.join()
        inherited = contextvars.copy_context()
    assert seen[0].empty
    assert inherited.run(get_mesh) is grid


def test_abstract_meshes_do_not_place_data(grid):
    other = ad.AbstractMesh((4,), ("z",))
    with ad.set_mesh(grid), use_abstract_mesh(other):
        assert get_abstract_mesh() == other
        assert get_mesh() is grid
    with use_abstract_mesh(other), pytest.raises(ValueError, match="set_mesh"):
        ad.device_put(X, ad.P("z"))
    assert get_abstract_mesh().empty
    with pytest.raises(ValueError, match="expected an AbstractMesh"):
        use_abstract_mesh(grid)
