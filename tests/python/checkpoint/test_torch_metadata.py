# SPDX-License-Identifier: Apache-2.0
"""The metadata of torch.distributed.checkpoint as a hostile pickle. tests/oracle opens files of PyTorch."""

import pickletools
import tracemalloc

import pytest
from artifex_devices.checkpoint.readers import distcp_metadata
from artifex_devices.checkpoint.readers.distcp_metadata import Chunk, Place, StoredTensor, read_metadata

MODULE = b"torch.distributed.checkpoint."
MARK, END = b"(", b"."


def name(path):
    module, _, last = path.rpartition(b".")
    return b"c" + module + b"\n" + last + b"\n"


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value


def number(value):
    return b"J" + value.to_bytes(4, "little")


def pairs(items):
    return b"}(" + b"".join(key + value for key, value in items) + b"u"


def record(path, **fields):
    return name(MODULE + path) + b")\x81" + pairs((text(key.encode()), value) for key, value in fields.items()) + b"b"


def size(*values):
    return name(b"torch.Size") + MARK + b"".join(map(number, values)) + b"t\x85R"


def index(key, origin=None):
    return record(b"metadata.MetadataIndex", fqn=text(key), **({} if origin is None else {"offset": origin}))


def place(file=b"a.distcp", begin=0, nbytes=8):
    return record(b"filesystem._StorageInfo", relative_path=text(file), offset=number(begin), length=number(nbytes))


def tensor(shape, chunks, dtype=b"torch.float32"):
    properties = name(MODULE + b"metadata.TensorProperties") + b")\x81(" + name(dtype) + b"\x89tb"
    return record(b"metadata.TensorStorageMetadata", properties=properties, size=shape, chunks=b"](" + chunks + b"e")


def chunk(origin, sizes):
    return record(b"metadata.ChunkStorageMetadata", offsets=origin, sizes=sizes)


def metadata(items, places):
    return b"\x80\x02" + record(b"metadata.Metadata", state_dict_metadata=items, storage_data=places) + END


def read(folder, content):
    (folder / ".metadata").write_bytes(content)
    return read_metadata("checkpoint.open", str(folder))


GOOD = metadata(
    pairs(
        [
            (text(b"w"), tensor(size(3, 2), chunk(size(0, 0), size(2, 2)) + chunk(size(2, 0), size(1, 2)))),
            (text(b"step"), record(b"metadata.BytesStorageMetadata")),
        ]
    ),
    pairs(
        [
            (index(b"w", size(0, 0)), place(b"a.distcp", 5, 7)),
            (index(b"w", size(2, 0)), place(b"b.distcp", 1, 2)),
            (index(b"step"), place(b"a.distcp", 70000, 9)),
        ]
    ),
)


def test_places_of_tensors_and_objects_are_read(tmp_path):
    chunks = (Chunk((0, 0), (2, 2), Place("a.distcp", 5, 7)), Chunk((2, 0), (1, 2), Place("b.distcp", 1, 2)))
    expected = {"w": StoredTensor("torch.float32", (3, 2), chunks)}, {"step": Place("a.distcp", 70000, 9)}
    assert read(tmp_path, GOOD) == expected


ONE_PART = pairs([(index(b"w", size(0)), place())])
BOMB = b")" + b"q\0h\0\x86" * 60  # a tuple of 2**60 leaves
REFUSED = {
    "an argument that is longer than the data": (b"\x80\x02X\xff\xff\xff\x7fabc.", "expected 2147483647 bytes"),
    "a frame that is longer than the data": (b"\x80\x04\x95" + b"\xff" * 7 + b"\x7fN.", "a frame that is longer"),
    "no value": (b"\x80\x02.", "pop from empty list"),
    "a tuple of fewer values": (b"\x80\x02N\x86.", "its opcode TUPLE2 has too few values"),
    "no end": (b"\x80\x02N", "pickle exhausted before seeing STOP"),
    "a function": (b"\x80\x02cos\nsystem\n" + text(b"true") + b"\x85R.", "it names os.system, which is not a class"),
    "a name inside a class": (
        b"\x80\x04" + b"".join(map(text, (MODULE + b"metadata", b"Metadata.__init__"))) + b"\x93.",
        r"it names torch\.distributed\.checkpoint\.metadata\.Metadata\.__init__, which",
    ),
    "a name that is not a text": (b"\x80\x04" + BOMB + b"h\0\x93.", "expected str instance, tuple found"),
    "a call of a text": (b"\x80\x02" + text(b"x") + b")R.", "it calls a str with a tuple"),
    "a call without arguments": (b"\x80\x02" + name(b"torch.Size") + b"NR.", "it calls a function with a NoneType"),
    "attributes of a function": (
        b"\x80\x02" + name(b"torch.Size") + pairs([(text(b"a"), b"N")]) + b"b.",
        "its opcode BUILD is applied to function",
    ),
    "attributes of a class": (
        b"\x80\x02" + name(MODULE + b"metadata.Metadata") + pairs([(text(b"chunks"), b"]")]) + b"b.",
        "its opcode BUILD is applied to type",
    ),
    "items of a record": (
        b"\x80\x02" + record(b"metadata.Metadata") + text(b"a") + b"Ns.",
        "SETITEM is applied to Rec",
    ),
    "values for a tuple": (b"\x80\x02)Na.", "its opcode APPEND is applied to tuple"),
    "a key whose hash takes exponential time": (b"\x80\x02}" + BOMB + b"Ns.", "its opcode SETITEM is applied to tuple"),
    "numbers as keys, which may all have one hash": (b"\x80\x02}K\x01Ns.", "its opcode SETITEM is applied to int"),
    "a name of a tensor that is a tuple": (
        metadata(b"}", pairs([(record(b"metadata.MetadataIndex", fqn=BOMB), place())])),
        "a name is a tuple",
    ),
    "a shape of values that take exponential time to print": (
        metadata(b"}", pairs([(record(b"metadata.MetadataIndex", fqn=text(b"w"), offset=BOMB), place())])),
        "sizes are .*tuple",
    ),
    "a shape of too many sizes": (b"\x80\x02" + size(*range(65)) + END, "sizes are a tuple"),
    "a negative size": (b"\x80\x02" + name(b"torch.Size") + b"](J\xff\xff\xff\xffe\x85R.", r"sizes are \[-1\]"),
    "a dtype that is not one": (
        metadata(pairs([(text(b"w"), tensor(size(1), b"", b"torch.Size"))]), b"}"),
        "the dtype of 'w' is a function",
    ),
    "a root that is not an object": (b"\x80\x02N.", "it has a NoneType instead of an object with attributes"),
    "half a surrogate pair": (metadata(pairs([(text(b"\xed\xa0\x80"), b"N")]), b"}"), "surrogates not allowed"),
    "a file in another folder": (metadata(b"}", pairs([(index(b"w"), place(b"a/b"))])), "it names the file 'a/b'"),
    "a file name that no file has": (metadata(b"}", pairs([(index(b"w"), place(b"a" * 256))])), "it names the file"),
    "parts without bytes": (
        metadata(pairs([(text(b"w"), tensor(size(2), chunk(size(1), size(1))))]), ONE_PART),
        r"it has no bytes, or twice the same bytes, of 'w' at \(1,\)",
    ),
    "a part that a tensor has twice, as many tensors may have many": (
        metadata(pairs([(text(b"w"), tensor(size(2), chunk(size(0), size(1)) * 2))]), ONE_PART),
        r"it has no bytes, or twice the same bytes, of 'w' at \(0,\)",
    ),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("content", "problem"), REFUSED.values(), ids=REFUSED)
def test_hostile_metadata_is_refused(tmp_path, content, problem):
    with pytest.raises(ValueError, match=rf"is not metadata of torch\.distributed\.checkpoint: .*{problem}"):
        read(tmp_path, content)


NEEDED = {
    "APPEND", "APPENDS", "BINFLOAT", "BINGET", "BININT", "BININT1", "BININT2", "BINPUT", "BINUNICODE", "BUILD",
    "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "FRAME", "GLOBAL", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK",
    "MEMOIZE", "NEWFALSE", "NEWOBJ", "NEWTRUE", "NONE", "PROTO", "REDUCE", "SETITEM", "SETITEMS", "SHORT_BINUNICODE",
    "STACK_GLOBAL", "STOP", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
}  # fmt: skip


def test_other_opcodes_are_refused(tmp_path):
    """Such as PERSID, INST, OBJ, NEWOBJ_EX, EXT1 and NEXT_BUFFER, which call functions or refer to other objects."""
    others = [each for each in pickletools.opcodes if each.name not in NEEDED]
    assert len(others) == len(pickletools.opcodes) - len(NEEDED)
    for opcode in others:
        ends_with_line = opcode.arg is not None and opcode.arg.n == pickletools.UP_TO_NEWLINE
        argument = b"''\n" if opcode.name == "STRING" else b"1\n1\n" if ends_with_line else bytes(8)
        content = b"\x80\x02N" + opcode.code.encode("latin-1") + argument + END
        with pytest.raises(ValueError, match=f"it has the opcode {opcode.name}, which no metadata needs"):
            read(tmp_path, content)


SHARED = b"](" + b"K\x01" * 2000 + b"eq\0"
CALL = name(b"torch.device") + b")R"
MANY = {
    "a place of the memo": b"N" + b"r\xff\xff\xff\xff" + END,
    "shapes of one list": SHARED + MARK + (name(b"torch.Size") + b"h\0\x85R") * 500 + b"t.",
    "records of one dict": pairs((text(b"%d" % i), b"N") for i in range(2000)) + b"q\0" + (CALL + b"h\0b") * 500 + END,
    "tuples of one list": SHARED + b"h\0h\0\x86" * 5000 + END,
    "tuples in tuples": b")" + b"\x85" * 100_000 + END,
    "lists in lists": b"]" * 50_000 + b"a" * 49_999 + END,
    "dicts in dicts": (b"}" + text(b"")) * 10_000 + b"N" + b"s" * 10_000 + END,
    "records in records": CALL * 10_000 + b"b" * 9_999 + END,
    "marks": MARK * 100_000 + END,
    "places of the memo": b"N" + b"\x94" * 100_000 + END,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("content", MANY.values(), ids=MANY)
def test_memory_grows_with_the_bytes_of_the_pickle(tmp_path, content):
    """Also for values that are stored once and used often, and for values in values in values."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="is not metadata of torch"):
            read(tmp_path, b"\x80\x02" + content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000 + 200 * len(content)


def test_nothing_outside_the_pickle_is_changed(tmp_path):
    before = repr(distcp_metadata._ALLOWED), dict(vars(distcp_metadata.Record))
    for content, _ in REFUSED.values():
        with pytest.raises(ValueError, match="is not metadata"):
            read(tmp_path, content)
    assert (repr(distcp_metadata._ALLOWED), dict(vars(distcp_metadata.Record))) == before
    assert read(tmp_path, GOOD)[1] == {"step": Place("a.distcp", 70000, 9)}
