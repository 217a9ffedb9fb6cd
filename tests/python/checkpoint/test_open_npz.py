# SPDX-License-Identifier: Apache-2.0
"""checkpoint.open: .npy and .npz files, stored and compressed, and files that lie about their contents."""

import io
import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from artifex_devices import checkpoint

W = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
BOXES = [(), (slice(1, 3),), (slice(None), slice(2, 4)), (slice(1, 2), slice(None), slice(-2, None)), (slice(2, 2),)]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_boxes_are_those_of_numpy(tmp_path, save):
    arrays = {
        "w": W,
        "fortran": np.asfortranarray(W),
        "big": W.astype(">f4"),
        "big_fortran": np.asfortranarray(W.astype(">i2")),
        "scalar": np.array(3.5),
        "empty": np.zeros((0, 4), np.int64),
        "flags": W > 7,
        "z": (W + 1j * W).astype(np.complex128),
    }
    save(tmp_path / "a.npz", **arrays)
    with checkpoint.open(tmp_path / "a.npz") as reader:
        assert (reader.format, reader.names()) == ("npz", tuple(arrays))
        for name, array in arrays.items():
            native = array.astype(array.dtype.newbyteorder("="))
            assert (reader.shape(name), reader.dtype(name), reader.type(name)) == (
                array.shape,
                native.dtype,
                array.dtype.str,
            )
            for box in BOXES if array.ndim == 3 else [()]:
                found = reader.read(name, box)
                assert same(found, np.ascontiguousarray(native[box]).reshape(native[box].shape)), (name, box)
                assert found.flags.c_contiguous
        compressed = "It has compressed arrays: each read decompresses them up to the end of the box."
        assert (compressed in reader.notes) == (save is np.savez_compressed)


@pytest.mark.parametrize("array", [W, np.asfortranarray(W), np.array(2, np.int8)])
def test_a_npy_file_has_one_array(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    for path in (tmp_path, tmp_path / "a.npy"):
        with checkpoint.open(path) as reader:
            assert reader.names() == ("value",)
            assert same(reader.read("value"), np.array(array, order="C"))


def test_large_compressed_arrays_are_read_piece_by_piece(tmp_path):
    array = np.arange(3 << 20, dtype=np.uint8).reshape(3, -1)
    np.savez_compressed(tmp_path / "a.npz", a=array)
    with checkpoint.open(tmp_path / "a.npz") as reader:
        assert same(reader.read("a", (slice(1, 3), slice(5, None))), array[1:3, 5:].copy())
        assert same(reader.read("a"), array)


def test_objects_and_records_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([{}], dtype=object))
    np.save(tmp_path / "b.npy", np.zeros(2, [("x", "i4")]))
    for name in ("a.npz", "b.npy"):
        with pytest.raises(ValueError, match=r"checkpoint\.open: .* whose elements are Python objects or records"):
            checkpoint.open(tmp_path / name)


def test_types_without_a_dtype_are_listed(tmp_path):
    np.savez(tmp_path / "a.npz", text=np.array(["a"]), raw=np.zeros(2, "V2"), day=np.zeros(2, "M8[s]"), w=W)
    with checkpoint.open(tmp_path / "a.npz") as reader:
        assert [reader.type(name) for name in ("text", "raw", "day")] == ["<U1", "|V2", "<M8[s]"]
        assert same(reader.read("w"), W)
        for name in ("text", "raw", "day"):
            with pytest.raises(ValueError, match="which has no dtype here"):
                reader.read(name)


def npy(header, data=b"", version=1, length=None):
    """A .npy file with this text as header."""
    text = header.encode()
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n"


@pytest.mark.parametrize(
    "content",
    [
        npy(GOOD, bytes(7)),
        npy(GOOD, bytes(9)),
        npy(GOOD, bytes(8), version=9),
        npy(GOOD, bytes(8), version=2, length=1 << 31),
        npy(GOOD.replace("(2,)", "(-2,)"), bytes(8)),
        npy(GOOD.replace("(2,)", "(4611686018427387904, 8)")),
        npy(GOOD.replace("(2,)", "(True,)"), bytes(4)),
        npy(GOOD.replace("<f4", "f9"), bytes(8)),
        npy("{" * 5000),
        npy("(" * 9000),
        npy("__import__('os').abort()"),
        npy(GOOD)[:8],
    ],
)
@pytest.mark.parametrize("method", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_arrays_are_refused(tmp_path, content, method):
    path = tmp_path / "a"
    if method is None:
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("a.npy", content)
    with pytest.raises(ValueError, match=r"checkpoint\.open: .*is damaged: ") as caught:
        checkpoint.open(path)
    assert len(str(caught.value)) < 1000


def archive_with(*members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return content.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_archives_with_one_name_twice_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(archive_with(*[("a.npy", npy(GOOD, bytes(8)))] * 2))
    with pytest.raises(ValueError, match="or occurs twice"):
        checkpoint.open(tmp_path / "a.npz")


def test_names_that_are_not_utf_8_are_refused(tmp_path):
    """The name before a member differs from the name in the directory."""
    content = archive_with(("é.npy", npy(GOOD, bytes(8))))
    (tmp_path / "a.npz").write_bytes(content.replace("é".encode(), b"\xdc\x00", 1))
    with pytest.raises(ValueError, match=r"checkpoint\.open: .*a\.npz': 'the archive' is damaged: UnicodeDecodeError"):
        checkpoint.open(tmp_path / "a.npz")


def test_sizes_that_the_archive_cannot_contain_are_refused(tmp_path):
    content = archive_with(("a.npy", npy(GOOD.replace("(2,)", "(2147483648,)"), bytes(8))))
    at = content.index(b"PK\x01\x02")
    size = (1 << 31) - 1
    changed = content[: at + 24] + struct.pack("<I", size) + content[at + 28 :]
    (tmp_path / "a.npz").write_bytes(changed)
    with pytest.raises(ValueError, match=r"'a' is damaged: \d+ bytes cannot contain 2147483647"):
        checkpoint.open(tmp_path / "a.npz")


def test_wrong_bytes_of_a_compressed_array_are_noticed(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.random.default_rng(0).integers(0, 255, 4000, np.uint8))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[2000] ^= 255
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"Reader\.read: .*damaged"):
        checkpoint.open(tmp_path / "a.npz").read("a")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_that_is_replaced_is_read_as_it_was_opened(tmp_path, save):
    save(tmp_path / "a.npz", a=W)
    reader = checkpoint.open(tmp_path / "a.npz")
    (tmp_path / "a.npz").unlink()
    save(tmp_path / "a.npz", a=W + 1)
    assert same(reader.read("a"), W)


def test_a_wrong_byte_is_noticed_when_the_full_array_is_read(tmp_path):
    array = np.arange(120_000, dtype=np.int32).reshape(4, -1)
    np.savez(tmp_path / "a.npz", a=array, fortran=np.asfortranarray(array))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    for value in (array.tobytes(), array.tobytes("F")):
        content[content.index(value) + 100_000] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with checkpoint.open(tmp_path / "a.npz") as reader:
        assert same(reader.read("a", (slice(1, 4),)), array[1:])
        for name in ("a", "fortran"):
            with pytest.raises(
                ValueError, match=rf"Reader\.read: .*'{name}' is damaged: its checksum is [0-9a-f]{{8}}"
            ):
                reader.read(name)


@pytest.mark.parametrize("is_fortran", [False, True])
def test_slabs_in_order_decompress_each_byte_once(tmp_path, monkeypatch, is_fortran):
    """Slabs of the dimension that changes slowest in the file, from two threads in turn, too."""
    array = np.random.default_rng(0).integers(0, 255, (64, 64, 64), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", a=array.transpose() if is_fortran else array, b=array)
    read = 0
    stream_read = zipfile.ZipExtFile.read

    def counted(self, size=-1):
        nonlocal read
        piece = stream_read(self, size)
        read += len(piece)
        return piece

    with checkpoint.open(tmp_path / "a.npz") as reader:
        monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
        for begin in range(0, 64, 4):
            box = (slice(begin, begin + 4),)
            found = reader.read("a", (slice(None), slice(None), *box) if is_fortran else box)
            assert same(found.transpose() if is_fortran else found, array[box])
            assert same(reader.read("b", box), array[box])
        assert 2 * array.size <= read <= 2 * array.size + 2 * 200
        monkeypatch.undo()
        assert same(reader.read("b", (slice(8, 12), slice(3, 4))), array[8:12, 3:4])  # before the last position


def test_threads_that_read_slabs_of_one_array_read_its_elements(tmp_path):
    array = np.random.default_rng(0).integers(0, 255, (256, 1024), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", a=array)
    with checkpoint.open(tmp_path / "a.npz") as reader, ThreadPoolExecutor(8) as pool:
        slabs = pool.map(lambda begin: reader.read("a", (slice(begin, begin + 2),)), range(0, 256, 2))
        assert same(np.concatenate(list(slabs)), array)


def test_a_wrong_checksum_is_noticed_by_the_last_of_the_slabs(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.random.default_rng(0).integers(0, 255, (4, 20_000), np.uint8))
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        (info,) = archive.infolist()
    content = (tmp_path / "a.npz").read_bytes()
    wrong = struct.pack("<I", info.CRC ^ 1)
    (tmp_path / "a.npz").write_bytes(content.replace(struct.pack("<I", info.CRC), wrong))
    with checkpoint.open(tmp_path / "a.npz") as reader:
        for begin in range(3):
            reader.read("a", (slice(begin, begin + 1),))
        with pytest.raises(ValueError, match=r"Reader\.read: .*Bad CRC-32"):
            reader.read("a", (slice(3, 4),))
