# SPDX-License-Identifier: Apache-2.0
"""checkpoint.open: our format, safetensors and DCP in safetensors; formats that are found, and boxes."""

import json
import os
import pickle

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint

W = np.arange(48.0, dtype=np.float32).reshape(8, 6)
BOXES = [
    (),
    (slice(2, 5),),
    (slice(None), slice(1, 2)),
    (slice(-3, None), slice(None, -2)),
    (slice(3, 3), slice(None)),
    (slice(6, 100), slice(5, 2)),
]


def write(path, tensors, boxes=None, dtype="F32"):
    """Writes a safetensors file, with the metadata of torch.distributed.checkpoint for `boxes`."""
    header, data = {}, b""
    for name, array in tensors.items():
        content = array.tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        data += content
    if boxes is not None:
        header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(boxes)}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_rows(folder, name, begin, end, **more):
    write(folder / name, {"w": W[begin:end]}, {"w": {"saved_offsets": [begin, 0], **more}})


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.fixture
def ours(tmp_path):
    mesh = ad.make_mesh((4,), ("x",))
    tree = {"w": ad.device_put(W, ad.NamedSharding(mesh, ad.P("x"))), "n": np.int8(3), "step": 7, "name": "run"}
    checkpoint.save(tmp_path / "ours", tree)
    return tmp_path / "ours"


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain").mkdir()
    write(tmp_path / "plain" / "model.safetensors", {"w": W, "n": np.ones((), np.float32)})
    return tmp_path / "plain"


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "parts").mkdir()
    write_rows(tmp_path / "parts", "a.safetensors", 0, 3)
    write_rows(tmp_path / "parts", "b.safetensors", 3, 8)
    return tmp_path / "parts"


@pytest.mark.parametrize(("name", "format"), [("ours", "artifex"), ("plain", "safetensors"), ("parts", "dcp")])
def test_each_box_has_the_elements_that_numpy_takes(request, name, format):
    with checkpoint.open(request.getfixturevalue(name)) as reader:
        assert reader.format == format
        assert (reader.shape("w"), reader.dtype("w"), reader.type("w")) == ((8, 6), np.float32, "F32")
        assert same(reader.read("w"), W)
        for box in BOXES:
            assert same(reader.read("w", box), W[box]), box


def test_values_of_our_checkpoints_are_read(ours):
    with checkpoint.open(ours, format="artifex") as reader:
        assert reader.names() == ("n", "w")
        assert dict(reader.values) == {"step": 7, "name": "run"}
        assert same(reader.read("n"), np.array(3, np.int8))
        assert same(reader.read("n", ()), np.array(3, np.int8))


def test_only_the_bytes_of_the_box_are_read(plain):
    """Bytes beside the box are at a page that the file lost: reading them would be an error."""
    with checkpoint.open(plain) as reader:
        file = plain / "model.safetensors"
        os.truncate(file, file.stat().st_size - W.nbytes // 2 - 4)
        assert same(reader.read("w", (slice(0, 4),)), W[:4])
        with pytest.raises(ValueError, match=r"Reader\.read: .*model\.safetensors ends at byte .*truncated"):
            reader.read("w")


def test_checksums_of_pieces_in_the_box_are_compared(tmp_path):
    """Two parts of 4 rows, with pieces of 2 rows; a byte of row 5 is wrong."""
    w = np.arange(8 * 400_000, dtype=np.uint8).reshape(8, -1)
    checkpoint.save(tmp_path / "one", {"w": w})
    checkpoint.convert(tmp_path / "one", tmp_path / "c", num_files=2)
    file = tmp_path / "c" / "shard-00002-model-00001-of-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-400_000 * 2 - 7] ^= 1
    file.write_bytes(content)
    with checkpoint.open(tmp_path / "c") as reader:
        assert same(reader.read("w", (slice(0, 4),), verify=True), w[:4])
        assert same(reader.read("w", (slice(1, 5),)), w[1:5])
        assert reader.read("w", (slice(5, 8),)).tobytes() != w[5:].tobytes()
        assert same(reader.read("w", (slice(4, 8), slice(0, 9))), w[4:, :9].copy())
        for box, verify in [((), False), ((slice(3, 7),), False), ((slice(5, 6), slice(0, 9)), True)]:
            with pytest.raises(
                ValueError, match=r"Reader\.read: .*shard-00002.*: the checksum of 800000 bytes of w is"
            ):
                reader.read("w", box, verify=verify)


def test_boxes_of_several_pieces_are_those_of_numpy(tmp_path):
    w = np.arange(3 * 5 * 300_000, dtype=np.uint32).view(np.uint8).reshape(3, 5, -1)[:, :, :300_000].copy()
    checkpoint.save(tmp_path / "c", {"w": w})
    random = np.random.default_rng(0)
    with checkpoint.open(tmp_path / "c") as reader:
        for turn in range(40):
            begins, ends = np.sort(random.integers(0, [[3, 5, 300_001]] * 2, (2, 3)), axis=0)
            box = tuple(slice(int(begin), int(end) + 1) for begin, end in zip(begins, ends, strict=True))[: turn % 4]
            assert same(reader.read("w", box), w[box].copy()), box


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "complex64", "float16", "bool"])
def test_all_bits_are_kept(tmp_path, dtype):
    bits = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 256, 64, np.uint8)
    if dtype == "int4":
        bits = bits.view(np.int8) >> 4
    value = bits.astype(ml_dtypes.int4) if dtype == "int4" else bits.view(np.dtype(dtype))
    checkpoint.save(tmp_path / "c", {"x": value})
    with checkpoint.open(tmp_path / "c") as reader:
        assert same(reader.read("x", (slice(3, 7),)), value[3:7])


def test_a_type_without_a_dtype_is_listed_and_not_read(tmp_path):
    write(tmp_path / "a.safetensors", {"q": np.zeros(4, np.uint8)}, dtype="F4")
    with checkpoint.open(tmp_path / "a.safetensors") as reader:
        assert (reader.shape("q"), reader.type("q")) == ((4,), "F4")
        assert "F4" in str(reader)
        for call in (reader.dtype, reader.read):
            with pytest.raises(ValueError, match="'q' is stored as F4, which has no dtype here"):
                call("q")


def test_the_text_lists_arrays_values_and_notes(ours, parts):
    assert str(checkpoint.open(ours)).split("\n") == [
        f"{ours}: artifex",
        "name  dtype    shape   bytes",
        "n     int8     ()      1 byte",
        "w     float32  (8, 6)  192 bytes",
        "name  str      'run'",
        "step  int      7",
        "2 arrays, 193 bytes",
        "It is artifex: checkpoint.json is of this package, saved by 1 process.",
        "It is not dcp in .distcp files: it has none; not torch: it has no .bin, .pt or .pth file of a model; not npz: "
        "it is not one .npz or .npy file; not orbax: it has no _METADATA, _sharding or manifest.ocdbt.",
    ]
    assert "No file states the shape of 'w': a missing last file cannot be noticed." in checkpoint.open(parts).notes


def test_a_stated_shape_has_no_note_on_missing_files(tmp_path):
    write_rows(tmp_path, "a.safetensors", 0, 8, global_shape=[8, 6])
    notes = checkpoint.open(tmp_path).notes
    assert not any("cannot be noticed" in note for note in notes)


def test_two_formats_in_a_folder_need_a_choice(plain):
    (plain / "pytorch_model.bin").write_bytes(b"")
    text = (
        r"has several formats \(safetensors or dcp: the folder has model\.safetensors; torch: the folder has "
        r"pytorch_model\.bin\); expected one; pass format='safetensors'"
    )
    with pytest.raises(ValueError, match=text):
        checkpoint.open(plain)
    with checkpoint.open(plain, format="safetensors") as reader:
        assert "It also has torch: the folder has pytorch_model.bin." in reader.notes


def test_the_state_of_a_trainer_is_not_a_second_format(plain):
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "common.pt"):
        (plain / name).write_bytes(b"")
    assert checkpoint.open(plain).format == "safetensors"


def test_another_format_than_the_one_that_is_named_is_an_error(plain, ours):
    with pytest.raises(ValueError, match="has the format 'safetensors'; expected format='dcp'"):
        checkpoint.open(plain, format="dcp")
    with pytest.raises(ValueError, match=r"is not of the format 'npz' \(artifex: the folder has checkpoint\.json\)"):
        checkpoint.open(ours, format="npz")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "the folder is empty"),
        (b"GGUF\3\0\0\0", r"the file begins with b'GGUF"),
        (b"", "the file begins with b''"),
    ],
)
def test_what_is_not_a_checkpoint_is_described(tmp_path, content, text):
    path = tmp_path / "x"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"checkpoint\.open: .*x' has no known format: {text}"):
        checkpoint.open(path)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a regular file"):
        checkpoint.open(tmp_path / "pipe")


def test_wrong_names_and_boxes_are_errors(plain):
    reader = checkpoint.open(plain)
    for call in (reader.read, reader.shape, reader.dtype, reader.type):
        with pytest.raises(ValueError, match="does not have an array 'v'; expected 'w', 'n'"):
            call("v")
    with pytest.raises(TypeError, match=r"box is slice.*expected a tuple of slices"):
        reader.read("w", slice(0, 2))
    with pytest.raises(TypeError, match="expected a tuple of slices"):
        reader.read("w", (0, slice(0, 2)))
    with pytest.raises(TypeError, match="expected slices of integers"):
        reader.read("w", (slice(0.0, 2),))
    with pytest.raises(ValueError, match="box has a slice with step 2; expected step 1"):
        reader.read("w", (slice(0, 4, 2),))
    with pytest.raises(ValueError, match=r"box has 3 slices; expected at most 2, for shape \(8, 6\)"):
        reader.read("w", (slice(None),) * 3)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(reader)
    reader.close()
    reader.close()
    assert reader.shape("w") == (8, 6)
    with pytest.raises(ValueError, match="the reader is closed"):
        reader.read("w")


def test_an_index_is_opened_by_its_path_and_by_its_folder(plain):
    (plain / "model.safetensors").rename(plain / "a.safetensors")
    index = plain / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "a.safetensors", "n": "a.safetensors"}}))
    for path in (plain, index, plain / "a.safetensors"):
        assert checkpoint.open(path).format == "safetensors"
    index.write_text(json.dumps({"weight_map": {"w": "a.safetensors", "v": "a.safetensors"}}))
    with pytest.raises(ValueError, match=r"checkpoint\.open: .*'v' is not in 'a\.safetensors'"):
        checkpoint.open(plain)
