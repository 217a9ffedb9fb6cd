# SPDX-License-Identifier: Apache-2.0
"""checkpoint.convert: what stock programs save, in every format, has the same bits after it in their stock loaders.

`ARTIFEX_MODEL_BYTES` is the size of the model (default 4 MB). With 2000000000 the test takes 20 minutes, 6 GB of disk
and 8 GiB of memory. Each conversion runs in a process of its own, whose memory is bounded.
"""

import json
import os
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint

ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
dcp = pytest.importorskip("torch.distributed.checkpoint", reason="PyTorch has no torch.distributed")
safetensors = pytest.importorskip("safetensors.torch", reason="the package safetensors is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning"),  # as one process is meant
    pytest.mark.timeout(1800),
]

MODEL_BYTES = int(os.environ.get("ARTIFEX_MODEL_BYTES", "4000000"))
PART_OF_MODEL = {"float32": 1 / 2, "bfloat16": 1 / 4, "int8": 1 / 8, "float8_e4m3fn": 1 / 8}
NUMPY = ("float32", "int8")  # have a name in .npy files
SOURCES = ("artifex", "safetensors", "dcp", "distcp", "torch", "orbax", "npz")
FILES = {"artifex": {"num_files": 3}, "dcp": {"num_files": 3}, "safetensors": {"max_shard_size": MODEL_BYTES // 3}}

PROGRAM = """
import json
import os
import sys
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, rules
from artifex_devices.checkpoint.writers import orbax_writer

model_bytes = int(sys.argv[1])
pieces.PIECE_BYTES = min(pieces.PIECE_BYTES, model_bytes // 32)  # several for each array
orbax_writer._CHUNK_BYTES = min(orbax_writer._CHUNK_BYTES, model_bytes // 64)
for line in sys.stdin:
    source, target, dropped, options = json.loads(line)
    if not os.fork():  # a new process for each conversion, without the time of the imports
        done = checkpoint.convert(source, target, rules=[rules.drop(name) for name in dropped], **options)
        status = open("/proc/self/status").read().split()
        print(json.dumps([int(status[status.index("VmHWM:") + 1]) << 10, done.seconds]), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("null", flush=True)
"""


def model(kind):
    """The bytes of a model: random bits, or one random byte in 4096 and a third without any."""
    drawn = np.random.default_rng(3)
    arrays = {}
    for dtype, part in PART_OF_MODEL.items():
        size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
        shape = (3, int(part * MODEL_BYTES) // (3 * 257 * size), 257 * size)
        if kind == "random":
            arrays[f"layers.{dtype}"] = np.frombuffer(drawn.bytes(int(np.prod(shape))), np.uint8).reshape(shape)
        else:
            content = np.zeros(shape, np.uint8)
            content[1:].reshape(-1)[::4096] = 129
            arrays[f"layers.{dtype}"] = content
    return arrays


def dtype_of(name):
    return name.removeprefix("layers.")


def bits_of(array):
    return np.ascontiguousarray(array).view(np.uint8)


def torch_model(arrays):
    return {name: torch.tensor(content).view(getattr(torch, dtype_of(name))) for name, content in arrays.items()}


def numpy_model(arrays):
    return {name: content.view(getattr(ml_dtypes, dtype_of(name), dtype_of(name))) for name, content in arrays.items()}


def save(format, path, arrays):
    """Saves a model by the program that has the format; returns the path that is opened."""
    if format == "artifex":
        checkpoint.save(path, numpy_model(arrays))
    elif format == "safetensors":
        path = path / "model.safetensors"
        path.parent.mkdir()
        safetensors.save_file(torch_model(arrays), path)
    elif format == "dcp":
        writer = dcp.HuggingFaceStorageWriter(str(path), save_distributed=True)
        dcp.save(torch_model(arrays), storage_writer=writer, no_dist=True)
    elif format == "distcp":
        dcp.save(torch_model(arrays), checkpoint_id=str(path), no_dist=True)
    elif format == "torch":
        path.mkdir()
        torch.save(torch_model(arrays), path / "pytorch_model.bin")
    elif format == "orbax":
        layers = {dtype_of(name): array for name, array in numpy_model(arrays).items()}
        with ocp.PyTreeCheckpointer() as saver:
            saver.save(path, {"layers": layers})
    else:
        path = path.with_suffix(".npz")
        arrays = {name: array for name, array in numpy_model(arrays).items() if dtype_of(name) in NUMPY}
        np.savez(path, **arrays)
    return path, arrays


def load(format, path, arrays):
    """Yields name, dtype and array of what the program loads that has the format."""
    if format == "safetensors":
        for file in sorted(path.glob("*.safetensors")):
            with safetensors.safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118
                    tensor = opened.get_tensor(name)
                    yield name, str(tensor.dtype), tensor.view(torch.uint8).numpy()
    elif format in ("artifex", "dcp"):
        state = {name: torch.zeros_like(tensor) for name, tensor in torch_model(arrays).items()}
        dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(str(path)), no_dist=True)
        for name, tensor in state.items():
            yield name, str(tensor.dtype), tensor.view(torch.uint8).numpy()
    elif format == "orbax":
        with ocp.PyTreeCheckpointer() as restorer:
            tree = restorer.restore(path)
        assert [*tree] == ["layers"]
        for name, array in tree["layers"].items():
            yield f"layers.{name}", str(array.dtype), bits_of(array)
    else:
        with np.load(path) as archive:
            for name in archive:
                yield name, str(archive[name].dtype), bits_of(archive[name])


@pytest.fixture(scope="module", params=[f"{kind}-{format}" for kind in ("random", "sparse") for format in SOURCES])
def saved(request, tmp_path_factory):
    """The path of a checkpoint of a stock program, and its arrays."""
    kind, format = request.param.split("-")
    folder = tmp_path_factory.mktemp(kind)
    yield save(format, folder / format, model(kind))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def convert():
    """Converts in another process. Returns the peak of its memory and its seconds."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(MODEL_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as server:

        def converted(source, target, dropped, **options):
            server.stdin.write(json.dumps([str(source), str(target), dropped, options]) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert answer is not None, "see its error"
            return answer

        yield converted
        server.stdin.close()


@pytest.mark.parametrize("to", ["artifex", "safetensors", "dcp", "orbax", "npz"])
def test_stock_loaders_find_the_same_bits(saved, to, convert, tmp_path, request):
    source, arrays = saved
    kept = {name: bits_of(array) for name, array in arrays.items() if to != "npz" or dtype_of(name) in NUMPY}
    target = tmp_path / ("target.npz" if to == "npz" else "target")
    peak, seconds = convert(source, target, sorted(arrays.keys() - kept.keys()), format=to, **FILES.get(to, {}))
    print(f"{request.node.name}: at most {peak >> 20} MiB, {seconds:.2f} s")  # `-rP` shows it
    chunk = max(array.nbytes for array in arrays.values()) if source.name == "orbax" else 0  # Orbax wrote one an array
    assert peak < (1 << 30) + 2 * chunk, peak  # a chunk, compressed and not
    found = set()
    for name, dtype, bits in load(to, target, kept):
        assert dtype.removeprefix("torch.") == dtype_of(name)
        assert bits.shape == kept[name].shape
        assert np.array_equal(bits, kept[name]), name
        found.add(name)
    assert found == set(kept)
    shutil.rmtree(target) if target.is_dir() else target.unlink()
