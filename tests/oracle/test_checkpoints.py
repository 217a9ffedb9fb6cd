# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and other programs: the safetensors package, and torch.distributed.checkpoint in one process."""

import json

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint

FILE = "shard-00001-model-00001-of-00001.safetensors"
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def value(dtype, shape=(8, 6)):
    dtype = np.dtype(dtype)
    random = np.random.default_rng(3)
    most = 2 if dtype == np.bool_ else 256
    return random.integers(0, most, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def sharded(array):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    return ad.device_put(array, ad.NamedSharding(mesh, ad.P("x")))


def equal(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_safetensors_reads_our_files(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    tree = {name: value(name) for name in DTYPES} | {"z": value("complex128"), "int4": np.ones(3, ml_dtypes.int4)}
    checkpoint.save(
        tmp_path / "c", {name: sharded(array) if len(array) == 8 else array for name, array in tree.items()}
    )
    found = numpy.load_file(tmp_path / "c" / FILE)
    for name in DTYPES:
        assert equal(found[name], tree[name]), name
    assert found["z"].tobytes() == tree["z"].tobytes()
    assert found["z"].shape == (8, 6, 2)
    assert found["int4"].tolist() == [1, 1, 1]


def test_we_read_files_of_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    tree = {name: value(name) for name in DTYPES}
    numpy.save_file(tree, tmp_path / "model.safetensors", metadata={"format": "np"})
    found = checkpoint.restore(tmp_path, {name: sharded(array) for name, array in tree.items()})
    assert all(equal(np.asarray(found[name]), tree[name]) for name in DTYPES)


@pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning")  # as one process is meant
def test_torch_reads_our_checkpoint(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    dcp = pytest.importorskip("torch.distributed.checkpoint", reason="PyTorch has no torch.distributed")
    bfloat16, float8 = value(ml_dtypes.bfloat16), value(ml_dtypes.float8_e4m3fn)
    checkpoint.save(tmp_path / "c", {"w": sharded(value("float32")), "b": sharded(bfloat16), "f": sharded(float8)})
    state = {
        "w": torch.zeros(8, 6),
        "b": torch.zeros(8, 6, dtype=torch.bfloat16),
        "f": torch.zeros(8, 6, dtype=torch.float8_e4m3fn),
    }
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path / "c")), no_dist=True)
    assert state["w"].numpy().tobytes() == value("float32").tobytes()
    assert state["b"].view(torch.int16).numpy().tobytes() == bfloat16.tobytes()
    assert state["f"].view(torch.int8).numpy().tobytes() == float8.tobytes()


@pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning")  # as one process is meant
def test_we_read_a_checkpoint_of_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    dcp = pytest.importorskip("torch.distributed.checkpoint", reason="PyTorch has no torch.distributed")
    array = np.arange(48, dtype=np.float32).reshape(8, 6)
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path / "c"), save_distributed=True)
    dcp.save({"w": torch.from_numpy(array)}, storage_writer=writer, no_dist=True)
    like = sharded(array)
    assert equal(np.asarray(checkpoint.restore(tmp_path / "c", {"w": like})["w"]), array)


def test_boxes_of_several_ranks_of_torch(tmp_path):
    """Files as two ranks of PyTorch 2.13 write them, without a global shape."""
    numpy = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    array = np.arange(48, dtype=np.float32).reshape(8, 6)
    for rank in range(2):
        info = {"w": {"saved_offsets": [4 * rank, 0]}}
        metadata = {"DCP_SHARDING_INFO": json.dumps(info), "DCP_VERSION": "1.0"}
        path = tmp_path / f"shard-0000{rank + 1}-model-00001-of-00001.safetensors"
        numpy.save_file({"w": np.ascontiguousarray(array[4 * rank : 4 * rank + 4])}, path, metadata=metadata)
    mesh = ad.Mesh(np.array(ad.devices()[:2]), ("x",))
    columns = ad.NamedSharding(mesh, ad.P(None, "x"))
    assert equal(np.asarray(checkpoint.restore(tmp_path, {"w": columns})["w"]), array)
