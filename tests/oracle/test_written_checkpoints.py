# SPDX-License-Identifier: Apache-2.0
"""checkpoint.convert: what it writes has the same bits in Orbax, torch.distributed.checkpoint and our readers.

Orbax is not in the environment of the other oracles: `.venv-oracle/bin/python -m pip install orbax-checkpoint` adds it.
"""

import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint.writers import orbax_writer

NUMPY = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip
FLOAT8 = ["float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz"]
ORBAX = [*NUMPY, "complex64", "complex128", "bfloat16", *FLOAT8, "int4"]
DCP = [*NUMPY, "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def value(name, shape=(8, 6)):
    """An array of random bits."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if name == "int4":
        return np.random.default_rng(2).integers(-8, 8, shape).astype(dtype)
    most = 2 if name == "bool" else 256
    return np.random.default_rng(2).integers(0, most, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def same(found, expected):
    found = np.asarray(found)
    return (found.shape, found.dtype, found.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())


@pytest.fixture(params=[200, 32 << 20], ids=["several chunks", "one chunk"])
def written(tmp_path, monkeypatch, request):
    """A tree, and its checkpoint of Orbax."""
    monkeypatch.setattr(orbax_writer, "_CHUNK_BYTES", request.param)
    arrays = {name: value(name) for name in ORBAX} | {"scalar": value("float32", ()), "x/y": value("int8", (2, 3, 5))}
    checkpoint.save(tmp_path / "ours", {"params": {"layers": arrays}, "step": 7, "rate": 0.5, "on": True})
    checkpoint.convert(tmp_path / "ours", tmp_path / "orbax", format="orbax")
    return arrays, tmp_path / "orbax"


@pytest.mark.parametrize("kind", ["PyTreeCheckpointer", "StandardCheckpointer"])
def test_orbax_restores_it(written, kind):
    ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
    arrays, path = written
    with getattr(ocp, kind)() as restorer:
        tree = restorer.restore(path)
    assert {name: tree.pop(name) for name in ("step", "rate", "on")} == {"step": 7, "rate": 0.5, "on": True}
    assert [*tree] == ["params"]
    assert sorted(tree["params"]["layers"]) == sorted(arrays)
    for name, array in arrays.items():
        assert same(tree["params"]["layers"][name], array), name


def test_orbax_restores_it_under_a_sharding(written):
    ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    _, path = written
    mesh = jax.make_mesh((len(jax.devices()),), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    like = {
        name: jax.ShapeDtypeStruct((8, 6), value(name).dtype, sharding=sharding) for name in ("float32", "bfloat16")
    }
    restore_args = ocp.checkpoint_utils.construct_restore_args({"params": {"layers": like}})
    with ocp.PyTreeCheckpointer() as restorer:
        options = ocp.args.PyTreeRestore({"params": {"layers": like}}, restore_args=restore_args, partial_restore=True)
        tree = restorer.restore(path, args=options)
    for name in like:
        found = tree["params"]["layers"][name]
        assert found.sharding == sharding
        assert same(found, value(name)), name


def test_our_reader_compares_it(written):
    pytest.importorskip("tensorstore", reason="tensorstore is not installed")
    _, path = written
    found = checkpoint.compare(path.parent / "ours", path)
    assert found, str(found)
    assert found.arrays == len(ORBAX) + 2


@pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning")  # as one process is meant
@pytest.mark.parametrize("num_files", [1, 3])
def test_torch_loads_dcp(tmp_path, num_files):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    dcp = pytest.importorskip("torch.distributed.checkpoint", reason="PyTorch has no torch.distributed")
    arrays = {name: value(name) for name in DCP} | {
        "scalar": value("float32", ()),
        "long": value("float32", (13, 2, 3)),
    }
    checkpoint.save(tmp_path / "ours", arrays)
    checkpoint.convert(tmp_path / "ours", tmp_path / "dcp", format="dcp", num_files=num_files)
    state = {name: torch.zeros(array.shape, dtype=getattr(torch, array.dtype.name)) for name, array in arrays.items()}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path / "dcp")), no_dist=True)
    for name, array in arrays.items():
        found = state[name].reshape(-1).view(torch.uint8).numpy()
        assert (state[name].shape, found.tobytes()) == (array.shape, array.tobytes()), name
