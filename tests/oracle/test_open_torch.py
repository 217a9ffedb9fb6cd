# SPDX-License-Identifier: Apache-2.0
"""checkpoint.open: files that torch.save and torch.distributed.checkpoint write."""

import json
import pickle
import sys
import types
import zipfile

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices._base.text import bytes_text
from artifex_devices.checkpoint import rules

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
dcp = pytest.importorskip("torch.distributed.checkpoint", reason="PyTorch has no torch.distributed")
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is:UserWarning")  # as one process is meant

BOXES = [(), (slice(2, 5),), (slice(None), slice(1, 4)), (slice(3, 3),), (slice(-3, None), slice(-1, None))]
DTYPES = [
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "bfloat16", "float8_e4m3fn",
    "float8_e5m2", "complex64", "complex128",
]  # fmt: skip


def tensor_of(dtype, shape=(8, 6)):
    """A tensor of random bits."""
    kind = getattr(torch, dtype)
    most = 2 if dtype == "bool" else 256
    count = int(np.prod(shape)) * torch.empty(0, dtype=kind).element_size()
    bits = np.random.default_rng(1).integers(0, most, count, np.uint8)
    return torch.from_numpy(bits).view(kind).reshape(shape)


def check(reader, name, tensor):
    """All boxes have the bits of the tensor."""
    tensor = tensor.detach().contiguous()
    assert reader.shape(name) == tuple(tensor.shape)
    assert str(reader.dtype(name)) == str(tensor.dtype).removeprefix("torch.")
    bits = tensor.reshape(-1).view(torch.uint8).numpy().view(reader.dtype(name)).reshape(tensor.shape)
    for box in BOXES if tensor.ndim == 2 else [()]:
        found = reader.read(name, box)
        assert (found.dtype, found.shape) == (bits.dtype, bits[box].shape), (name, box)
        assert found.tobytes() == bits[box].tobytes(), (name, box)
        assert found.flags.c_contiguous


def tree():
    tensors = {dtype: tensor_of(dtype) for dtype in DTYPES}
    tensors["turned"] = tensor_of("float32", (6, 8)).t()
    tensors["part"] = tensor_of("float32", (9, 9))[1:, 2:8]
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(0, 3)
    tensors["parameter"] = torch.nn.Parameter(torch.ones(8, 6))
    tensors["same"] = tensors["float32"]
    return tensors


def test_boxes_of_pytorch_model_bin_have_its_bits(tmp_path):
    torch.save(tree() | {"epoch": 3, "inner": {"w": torch.ones(2)}, "none": None}, tmp_path / "pytorch_model.bin")
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with checkpoint.open(path) as reader:
            assert reader.format == "torch"
            assert dict(reader.values) == {"epoch": 3}
            assert "Left out, because they are neither dense tensors nor values: 'none'." in reader.notes
            for name, tensor in tree().items():
                check(reader, name, tensor)
            assert reader.read("inner.w").tolist() == [1, 1]


def test_files_before_pytorch_1_6_are_read(tmp_path):
    torch.save({"w": tensor_of("float32")}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with checkpoint.open(tmp_path / "a.pt") as reader:
        check(reader, "w", tensor_of("float32"))
    kept = bytes_text(tensor_of("float32").nbytes)
    assert f"the reader of torch needs at most {kept} more" in str(
        checkpoint.convert(tmp_path / "a.pt", tmp_path / "b", dry_run=True)
    )


def test_shards_need_an_index_that_fits(tmp_path):
    for number, name in enumerate("ab"):
        torch.save({name: torch.full((3,), number)}, tmp_path / f"pytorch_model-{number}.bin")
    with pytest.raises(ValueError, match="expected one file, or one index that says which files belong together"):
        checkpoint.open(tmp_path)
    index = tmp_path / "pytorch_model.bin.index.json"
    places = {"a": "pytorch_model-0.bin", "b": "pytorch_model-1.bin"}
    index.write_text(json.dumps({"weight_map": places}))
    for path in (tmp_path, index):
        assert checkpoint.open(path).read("b").tolist() == [1, 1, 1]
    for changed, text in [
        (places | {"c": "pytorch_model-1.bin"}, "lacks 'c'"),
        ({"a": "pytorch_model-0.bin", "x": "pytorch_model-1.bin"}, "lacks 'x'"),
        (places | {"c": "../x.bin"}, r"it names the file '\.\./x\.bin'"),
        ([], "its weight_map is not an object"),
    ]:
        index.write_text(json.dumps({"weight_map": changed}))
        with pytest.raises(ValueError, match=rf"checkpoint\.open: .*{text}"):
            checkpoint.open(tmp_path)


def test_shards_as_transformers_wrote_them_are_restored(tmp_path):
    """Embeddings that the output layer shares, an index with total_size, and a config beside the shards."""
    embed = tensor_of("bfloat16", (50, 8))
    shards = [
        {
            "model.embed_tokens.weight": embed,
            "lm_head.weight": embed,
            "model.layers.0.mlp.up_proj.weight": tensor_of("float16"),
        },
        {"model.norm.weight": torch.nn.Parameter(tensor_of("float32", (8,)), requires_grad=False)},
    ]
    places = {}
    for number, shard in enumerate(shards, 1):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        torch.save(shard, tmp_path / name)
        places |= dict.fromkeys(shard, name)
    index = {"metadata": {"total_size": 1600 + 96 + 32}, "weight_map": places}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text("{}")
    everything = shards[0] | shards[1]
    with checkpoint.open(tmp_path) as reader:
        assert sorted(reader.names()) == sorted(everything)
        for name, tensor in everything.items():
            check(reader, name, tensor)
    with ad.simulate(8):
        rows = ad.NamedSharding(ad.make_mesh((4, 2), ("x", "y")), ad.P("y", "x"))
        found = checkpoint.restore(tmp_path, {"lm_head": {"weight": rows}}, strict=False)["lm_head"]["weight"]
        assert found.sharding == rows
        assert np.asarray(found).tobytes() == embed.view(torch.uint8).numpy().tobytes()
    (tmp_path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(FileNotFoundError, match="pytorch_model-00002-of-00002"):
        checkpoint.open(tmp_path)


def test_views_are_read_from_their_storage(tmp_path):
    base = torch.arange(7 * 9 * 5.0).reshape(7, 9, 5)
    views = {
        "part": base[1:, 2:7:2, 3],
        "turned": base.permute(2, 0, 1)[1:3],
        "expanded": torch.arange(3.0).expand(4, 3),
        "one": torch.tensor(5.0).expand(2, 2),
        "empty": base[:, 3:3],
        "row": base[2, 3],
    }
    torch.save(views, tmp_path / "a.bin")
    with checkpoint.open(tmp_path / "a.bin") as reader:
        for name, view in views.items():
            assert np.array_equal(reader.read(name), view.numpy()), name
            if view.ndim == 2:
                assert np.array_equal(reader.read(name, (slice(1, 3), slice(1, 2))), view.numpy()[1:3, 1:2]), name


def test_tensors_that_are_not_their_elements_are_left_out(tmp_path):
    w = torch.ones(2, dtype=torch.complex64)
    torch.save({"conj": w.conj(), "sparse": torch.eye(2).to_sparse(), "w": torch.ones(2)}, tmp_path / "a.bin")
    with checkpoint.open(tmp_path / "a.bin") as reader:
        assert reader.names() == ("w",)
        assert "Left out, because they are neither dense tensors nor values: 'conj', 'sparse'." in reader.notes


def changed_archive(path, target, change):
    """Copies an archive, with other contents of its files."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for info in source.infolist():
            copy.writestr(info.filename, change(info.filename, source.read(info)))


def test_a_storage_with_fewer_bytes_than_its_tensor_is_refused(tmp_path):
    torch.save({"w": torch.arange(8.0), "v": torch.arange(8.0)}, tmp_path / "good.bin")

    def shorter(name, content):
        return content[:-4] if name.endswith("data/0") else content

    changed_archive(tmp_path / "good.bin", tmp_path / "a.bin", shorter)
    with pytest.raises(ValueError, match="the storage of 'w' has fewer bytes than its shape needs"):
        checkpoint.open(tmp_path / "a.bin")


@pytest.mark.parametrize(
    ("size", "stride"),
    [
        (b"K\x03\x85", b"K\x09\x85"),
        (b"\x8a\x06\0\0\0\0\0\x01\x85", b"K\x01\x85"),
        (b"\x8a\x06\0\0\0\0\0\x01\x85", b"K\x00\x85"),  # 2**40 times one element
    ],
)
def test_shapes_and_strides_that_lie_are_refused(tmp_path, size, stride):
    """PyTorch accepts these files where it does not read the elements."""
    torch.save({"w": torch.arange(3.0)}, tmp_path / "good.bin")

    def lying(name, content):
        honest = b"K\x03\x85q\x08K\x01\x85"
        assert content.count(honest) == name.endswith("data.pkl")
        return content.replace(honest, size + b"q\x08" + stride)

    changed_archive(tmp_path / "good.bin", tmp_path / "a.bin", lying)
    with pytest.raises(ValueError, match="the storage of 'w' has fewer bytes than its shape needs"):
        checkpoint.open(tmp_path / "a.bin")


def test_compressed_and_big_endian_archives_are_refused(tmp_path):
    torch.save({"w": torch.arange(8.0)}, tmp_path / "good.bin")
    changed_archive(tmp_path / "good.bin", tmp_path / "same.bin", lambda name, content: content)
    with checkpoint.open(tmp_path / "same.bin") as reader:
        assert reader.read("w").tolist() == list(range(8))

    def big_endian(name, content):
        return b"big" if name.endswith("byteorder") else content

    changed_archive(tmp_path / "good.bin", tmp_path / "a.bin", big_endian)
    with pytest.raises(ValueError, match="its numbers are big-endian"):
        checkpoint.open(tmp_path / "a.bin")
    with zipfile.ZipFile(tmp_path / "good.bin") as source, zipfile.ZipFile(tmp_path / "b.bin", "w", 8) as copy:
        for info in source.infolist():
            copy.writestr(info.filename, source.read(info))
    with pytest.raises(ValueError, match="it is compressed"):
        checkpoint.open(tmp_path / "b.bin")


class Evil:
    """A pickle of it would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('ran')",))


def test_code_in_a_pickle_is_refused(tmp_path):
    torch.save({"w": torch.ones(2), "x": Evil()}, tmp_path / "a.bin")
    with pytest.raises(ValueError, match=r"PyTorch does not read '.*a\.bin' with weights_only=True"):
        checkpoint.open(tmp_path / "a.bin")


@pytest.mark.parametrize("family", ["bin", "distcp"])
def test_without_torch_the_install_line_is_shown(tmp_path, monkeypatch, family):
    if family == "bin":
        torch.save({"w": torch.ones(2)}, tmp_path / "a.bin")
    else:
        dcp.save({"w": torch.ones(2)}, checkpoint_id=str(tmp_path), no_dist=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"checkpoint\.open: .*PyTorch is not installed.*`pip install torch`"):
        checkpoint.open(tmp_path)


def test_boxes_of_distcp_files_have_their_bits(tmp_path):
    saved = {"model": tree(), "step": 7, "optimizer": {"state": [torch.arange(4)], "lr": 0.5}, "objects": {1, 2}}
    dcp.save(saved, checkpoint_id=str(tmp_path / "c"), no_dist=True)
    with checkpoint.open(tmp_path / "c") as reader:
        assert reader.format == "dcp"
        for name, tensor in tree().items():
            check(reader, f"model.{name}", tensor)
        assert reader.read("optimizer.state.0").tolist() == [0, 1, 2, 3]
        assert dict(reader.values) == {"step": 7, "optimizer.lr": 0.5}


def test_metadata_of_megatron_is_read(tmp_path, monkeypatch):
    """Megatron adds a class of its own to the metadata, and a file beside it."""
    dcp.save({"w": torch.arange(8.0)}, checkpoint_id=str(tmp_path), no_dist=True)
    torch.save({"iteration": 3}, tmp_path / "common.pt")
    module = types.ModuleType("megatron.core.dist_checkpointing.strategies.torch")
    module.MCoreMetadata = type("MCoreMetadata", (dcp.Metadata,), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, "megatron", types.ModuleType("megatron"))
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def megatron(metadata):
        metadata.__class__ = module.MCoreMetadata
        metadata.mcore_data = {"w": {"nd_reformulated_orig_global_shape": (2, 4)}}

    change_metadata(tmp_path, megatron)
    monkeypatch.delitem(sys.modules, module.__name__)
    with checkpoint.open(tmp_path) as reader:
        assert reader.read("w").tolist() == list(range(8))


def change_metadata(folder, change):
    path = folder / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    change(metadata)
    path.write_bytes(pickle.dumps(metadata))


def test_parts_that_do_not_cover_their_tensor_are_an_error(tmp_path):
    dcp.save({"w": torch.arange(8.0)}, checkpoint_id=str(tmp_path), no_dist=True)

    def larger(metadata):
        metadata.state_dict_metadata["w"].size = torch.Size([9])

    change_metadata(tmp_path, larger)
    with pytest.raises(ValueError, match=r"'w' has 32 bytes in the files; expected 36 for float32 of shape \(9,\)"):
        checkpoint.open(tmp_path)


@pytest.mark.parametrize("file", ["../x", "/etc/hostname", "a/b", "..", ""])
def test_metadata_does_not_lead_out_of_the_folder(tmp_path, file):
    dcp.save({"w": torch.arange(8.0)}, checkpoint_id=str(tmp_path), no_dist=True)

    def away(metadata):
        for place in metadata.storage_data.values():
            place.relative_path = file

    change_metadata(tmp_path, away)
    with pytest.raises(ValueError, match="it names the file"):
        checkpoint.open(tmp_path)


def test_code_in_the_metadata_is_refused(tmp_path):
    dcp.save({"w": torch.arange(8.0)}, checkpoint_id=str(tmp_path), no_dist=True)
    for content in (pickle.dumps(Evil()), b"\x80\x02r\xff\xff\xff\xff.", b"", b"\x80\x04(((((("):
        (tmp_path / ".metadata").write_bytes(content)
        with pytest.raises(ValueError, match=r"metadata' is not metadata of torch\.distributed\.checkpoint"):
            checkpoint.open(tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match=r"it names builtins\.exec, which is not a class of the metadata"):
        checkpoint.open(tmp_path)


@pytest.fixture(params=["bin", "distcp"])
def save(request, tmp_path):
    """Saves tensors, and returns the file that has their elements."""

    def save(tensors):
        if request.param == "bin":
            torch.save(tensors, tmp_path / "a.bin")
            return tmp_path / "a.bin"
        dcp.save(tensors, checkpoint_id=str(tmp_path), no_dist=True)
        return tmp_path / "__0_0.distcp"

    return save


def change_byte(path, found, by=0):
    content = bytearray(path.read_bytes())
    content[content.index(found) + by] ^= 1
    path.write_bytes(content)


def test_verify_compares_checksums_of_storages(tmp_path, save):
    """Each storage is read once; names come in the order of the file."""
    base = torch.arange(1000, dtype=torch.int32)
    path = save({"a": torch.ones(5), "rows": base[200:210].reshape(2, 5), "whole": base, "empty": torch.zeros(0)})
    done = []
    with checkpoint.open(tmp_path) as reader:
        assert reader.verify(progress=done.append)[1] == "CRC-32 checksums of all elements were compared."
    assert done[-1] in (4020, 4060)  # torch.distributed.checkpoint writes the view by itself
    change_byte(path, base.numpy()[500:].tobytes(), 3)
    with checkpoint.open(tmp_path) as reader:
        assert reader.read("a").tolist() == [1] * 5
        with pytest.raises(
            ValueError, match=r"Reader\.verify: '.*(a\.bin|distcp)': '(rows|whole)' is damaged: its checksum"
        ):
            reader.verify()
    with pytest.raises(ValueError, match=r"checkpoint\.convert: .* is damaged: its checksum"):
        checkpoint.convert(tmp_path, tmp_path / "target", rules=list(map(rules.drop, ("a", "rows", "empty"))))
    assert not (tmp_path / "target").exists()


def test_a_wrong_byte_of_a_header_is_noticed_at_open(tmp_path, save):
    """PyTorch itself does not compare checksums: it would return another shape, or fewer elements."""
    change_byte(save({"w": torch.arange(10.0)}), b"K\x0a\x85", 1)
    with pytest.raises(ValueError, match=r"the checksum of its bytes from [0-9]+ is wrong"):
        checkpoint.open(tmp_path)


def test_files_without_checksums_are_read_and_said_to_have_none(tmp_path, save):
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        save({"w": torch.arange(10.0), "v": torch.ones(3)})
    finally:
        torch.serialization.set_crc32_options(before)
    with checkpoint.open(tmp_path) as reader:
        assert reader.read("w").tolist() == list(range(10))
        assert reader.verify() == (
            "All elements of 2 arrays were read.",
            "The format has no checksums of its elements: changed elements cannot be noticed.",
        )


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_metadata_of_each_protocol_is_read(tmp_path, protocol):
    dcp.save(
        {"w": torch.arange(1 << 17), "é" * 300: torch.ones(3, 4), "n": 5}, checkpoint_id=str(tmp_path), no_dist=True
    )
    path = tmp_path / ".metadata"
    path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()), protocol))
    with checkpoint.open(tmp_path) as reader:
        assert reader.read("w", (slice(70000, 70003),)).tolist() == [70000, 70001, 70002]
        assert reader.read("é" * 300).tolist() == [[1] * 4] * 3
        assert dict(reader.values) == {"n": 5}


@pytest.mark.parametrize("family", ["bin", "distcp"])
def test_damaged_files_are_refused_or_read(tmp_path, family):
    """Changed bits and truncation, of each file in turn: no error of another class, and no wrong shape."""
    tensors = {"w": torch.arange(24.0).reshape(4, 6), "h": torch.ones(3, dtype=torch.bfloat16), "step": 3}
    if family == "bin":
        torch.save(tensors, tmp_path / "a.bin")
    else:
        dcp.save(tensors, checkpoint_id=str(tmp_path), no_dist=True)
    random = np.random.default_rng(0)
    outcomes = set()
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for turn in range(60):
            changed = bytearray(content)
            for _ in range(1 + turn % 3):
                changed[random.integers(len(changed))] ^= 1 << random.integers(8)
            path.write_bytes(changed[: random.integers(len(changed))] if turn % 10 == 0 else changed)
            try:
                with checkpoint.open(tmp_path) as reader:
                    for name in reader.names():
                        assert reader.read(name).shape == reader.shape(name)
                outcomes.add("read")
            except (ValueError, OSError):
                outcomes.add("refused")
        path.write_bytes(content)
    assert outcomes == {"read", "refused"}


def test_a_missing_distcp_file_is_named(tmp_path):
    dcp.save({"w": torch.arange(8.0)}, checkpoint_id=str(tmp_path), no_dist=True)
    (tmp_path / "__0_0.distcp").unlink()
    with pytest.raises(FileNotFoundError, match=r"__0_0\.distcp"):
        checkpoint.open(tmp_path)


def test_only_the_header_of_an_item_is_read_at_open(tmp_path):
    dcp.save({"w": torch.arange(1 << 20)}, checkpoint_id=str(tmp_path), no_dist=True)
    file = tmp_path / "__0_0.distcp"
    with zipfile.ZipFile(file) as archive:
        begin = next(info for info in archive.infolist() if "/data/" in info.filename).header_offset
    with checkpoint.open(tmp_path) as reader:
        with open(file, "r+b") as opened:
            opened.seek(begin + (4 << 20))
            opened.write(b"\xff" * (1 << 20))  # beside the box
        assert reader.read("w", (slice(0, 1000),)).tolist() == list(range(1000))
