# SPDX-License-Identifier: Apache-2.0
"""XLA's Layout: its text, its checks, and the memory that it describes, against NumPy."""

import copy
import math
import pickle

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.layout import Layout as JaxLayout
from artifex_devices.testing import dtypes
from artifex_devices.testing.array_strategies import random_bits
from artifex_devices.xla_client import Layout, PjRtLayout
from hypothesis import given, settings
from hypothesis import strategies as st

COMBINE = Layout.COMBINE


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (((1, 0),), "{1,0}"),
        (((),), "{}"),
        (((2, 0, 1),), "{2,0,1}"),
        (([1, 0], [(8, 128)]), "{1,0:T(8,128)}"),
        (((1, 0), ((8, 128), (2, 1))), "{1,0:T(8,128)(2,1)}"),
        (((1, 0), [(8, 128)], 4), "{1,0:T(8,128)E(4)}"),
        (((0, 1), [], 4), "{0,1:E(4)}"),
        (((1, 0), [(COMBINE, 8)]), "{1,0:T(*,8)}"),
        (((1, 0), [()]), "{1,0:T()}"),
        ((np.array([1, 0]),), "{1,0}"),
    ],
)
def test_text_says_what_was_given_and_reads_back(args, text):
    layout = Layout(*args)
    assert layout.to_string() == str(layout) == text
    assert layout.minor_to_major() == tuple(args[0])
    assert layout.tiling() == [tuple(tile) for tile in (args[1] if len(args) > 1 else ())]
    assert layout.element_size_in_bits() == (args[2] if len(args) > 2 else 0)
    assert Layout.parse(text) == layout
    assert hash(Layout.parse(text)) == hash(layout)
    assert eval(repr(layout)) == layout


@pytest.mark.parametrize(
    ("text", "canonical", "tail", "space"),
    [
        ("{1,0:T(8,128)(2,1)L(1024)E(4)S(1)}", "{1,0:T(8,128)(2,1)L(1024)E(4)S(1)}", 1024, 1),
        (" { 1 , 0 : T ( 8 , * , 128 ) } ", "{1,0:T(8,*,128)}", 1, 0),
        ("{1,0:}", "{1,0}", 1, 0),
        ("{1,0:L(1)E(0)S(0)}", "{1,0}", 1, 0),
        ("{:T(8)}", "{:T(8)}", 1, 0),
        ("{01,\t0}\n", "{1,0}", 1, 0),
        ("{0:S(5)}", "{0:S(5)}", 1, 5),
    ],
)
def test_other_spellings_are_read(text, canonical, tail, space):
    layout = Layout.parse(text)
    assert str(layout) == canonical
    assert (layout.tail_padding_alignment_in_elements(), layout.memory_space()) == (tail, space)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "character 0 is the end of the text; expected '{' that begins a layout"),
        ("1,0", "character 0 is '1'; expected '{' that begins a layout"),
        ("{1,,0}", "character 3 is ','; expected a number"),
        ("{1,0,}", "character 5 is '}'; expected a number"),
        ("{1,0", "character 4 is the end of the text; expected '}' that ends the layout"),
        ("{1,0}x", "character 5 is 'x'; expected the end of the text"),
        ("{+1,0}", "character 1 is '+'; expected a number"),
        ("{1,0:T}", "character 6 is '}'; expected the sizes of a tile, in parentheses"),
        ("{1,0:T(8 128)}", "character 9 is '1'; expected ')' that ends a tile"),
        ("{1,0:E(4)T(8)}", "character 9 is 'T'; expected '}', or T(..), L(..), E(..), S(..) in this order, each once"),
        ("{1,0:T(8)T(8)}", "character 9 is 'T'; expected '}'"),
        ("{1,0:D(D,D)}", "character 5 is 'D'; expected '}'"),
        ("{1,0:#(u32)}", "character 5 is '#'; expected '}'"),
        ("{1,0:*(u32)}", "character 5 is '*'; expected '}'"),
        ("{1,0:SC(0:1,2)}", "character 5 is 'S'; expected '}'"),
        ("{1,0:P(f32[2]{0})}", "character 5 is 'P'; expected '}'"),
        ("{1,0:M(3)}", "character 5 is 'M'; expected '}'"),
        ("{99999999999999999999}", "character 1 is '9'; expected a number that fits 64 bits"),
        ("{*}", "character 1 is '*'; expected a number"),
        ("{1,0:E(4}", "character 8 is '}'; expected ')' after the number"),
        ("{\x00}", "character 1 is the byte 0x00; expected a number"),
        ("{1,0}é", "character 5 is the byte 0xc3; expected the end of the text"),
        ("{" + ",".join("0" for _ in range(65)) + "}", "character 129 is '0'; expected at most 64 numbers"),
        ("{0:T" + "(1)" * 17 + "}", "expected at most 16 tiles"),
        ("{" * 100_000, "the text has 100000 characters; expected at most 16384"),
    ],
)
def test_wrong_text_says_where(text, wrong):
    with pytest.raises(ValueError, match=r"^Layout.parse: ") as caught:
        Layout.parse(text)
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        (((0, 0),), "minor_to_major names dimension 0 twice; expected a permutation"),
        (((-1,),), "minor_to_major[0] is -1; expected each of 0 to 0 once"),
        (((5, 0),), "minor_to_major[0] is 5; expected each of 0 to 1 once"),
        (((1, 0), [(0, 8)]), "tiling[0][0] is 0; expected a size from 1 on, or Layout.COMBINE"),
        (((1, 0), [(8,), (-1, 2)]), "tiling[1][0] is -1; expected a size from 1 on"),
        (((1, 0), [(8, COMBINE)]), "tiling[0] ends in *; expected a size"),
        (((1, 0), [], -1), "element_size_in_bits is -1; expected 0 to 128"),
        (((1, 0), [], 1 << 40), "element_size_in_bits is 1099511627776; expected 0 to 128"),
        ((range(65),), "minor_to_major has 65 entries; expected at most 64"),
        (((0,), [(1,)] * 40), "tiling has 17 tiles; expected at most 16"),
        (((0,), [(1,) * 65]), "tiling[0] has 65 sizes; expected at most 64"),
    ],
)
def test_wrong_values_are_errors(args, wrong):
    with pytest.raises(ValueError, match=r"^Layout: ") as caught:
        Layout(*args)
    assert wrong in str(caught.value)


def test_all_that_is_wrong_is_reported_at_once():
    with pytest.raises(ValueError, match="minor_to_major") as caught:
        Layout((0, 0), [(0,)], -1)
    assert all(part in str(caught.value) for part in ("twice", "tiling[0][0] is 0", "element_size_in_bits is -1"))
    with pytest.raises(ValueError, match="tail alignment is 0"):
        Layout.parse("{0:L(0)}")
    with pytest.raises(ValueError, match="memory space is -1"):
        Layout.parse("{0:S(-1)}")


@pytest.mark.parametrize("args", [("10",), (1,), ((1.5, 0),), ((1, 0), 8), ((1, 0), [8]), ((1, 0), "(8,)"), ((True,),)])
def test_wrong_types_are_type_errors(args):
    with pytest.raises(TypeError, match="Layout: "):
        Layout(*args)


def test_equality_copies_and_pickles():
    layout = Layout.parse("{1,0:T(8,128)L(4)E(4)S(1)}")
    assert layout != Layout((1, 0))
    assert layout != "{1,0}"
    assert Layout((1, 0)) != Layout((0, 1))
    assert Layout.parse("{1,0:S(1)}") != Layout.parse("{1,0}")
    for again in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), copy.deepcopy(layout)):
        assert again == layout
        assert str(again) == str(layout)
    wrapped = PjRtLayout(layout)
    assert wrapped._xla_layout() == layout
    assert str(wrapped) == str(layout)
    assert wrapped == PjRtLayout(layout) != PjRtLayout(Layout((1, 0)))
    assert hash(wrapped) == hash(PjRtLayout(layout))
    assert eval(repr(wrapped)) == wrapped == pickle.loads(pickle.dumps(wrapped))
    with pytest.raises(TypeError):
        PjRtLayout("{1,0}")


def test_jax_layouts_take_numpys_integers_and_nothing_else():
    layout = JaxLayout(np.argsort([3, 1]), [np.array([8, 128])], np.int8(4))
    assert layout == JaxLayout((1, 0), ((8, 128),), 4)
    numbers = (*layout.major_to_minor, *layout.tiling[0], layout.sub_byte_element_size_in_bits)
    assert [type(n) for n in numbers] == [int] * 5


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ((3,), "major_to_minor is 3 (int)"),
        ((None,), "major_to_minor is None (NoneType)"),
        (("10",), "major_to_minor is '10' (str)"),
        (((True, False),), "major_to_minor[0] is True (bool)"),
        (((1.0, 0),), "major_to_minor[0] is 1.0 (float)"),
        (((0, 1), 3), "tiling is 3 (int)"),
        (((0, 1), (8, 128)), "tiling[0] is 8 (int)"),
        (((0, 1), ((8, 1.5),)), "tiling[0][1] is 1.5 (float)"),
        (((0, 1), None, "4"), "sub_byte_element_size_in_bits is '4' (str)"),
    ],
)
def test_wrong_types_in_jax_layouts_are_type_errors(args, what):
    with pytest.raises(TypeError, match="expected") as caught:
        JaxLayout(*args)
    assert str(caught.value).startswith(f"Layout: {what}; expected ")
    with pytest.raises(TypeError, match=r"is 3 .int.; expected a PjRtLayout"):
        JaxLayout.from_pjrt_layout(3)


def test_jax_layouts_convert_both_ways():
    assert JaxLayout((0, 1))._to_xla_layout(np.dtype("f4")) == Layout((1, 0))
    assert JaxLayout((1, 0), ((8, 128),))._to_xla_layout(np.dtype("f4")) == Layout((0, 1), [(8, 128)])
    assert JaxLayout((0,), ((8,),))._to_xla_layout(np.dtype(ml_dtypes.int4)) == Layout((0,), [(8,)], 4)
    assert JaxLayout((0,), (), 8)._to_xla_layout(np.dtype("i1")) == Layout((0,), [], 8)
    back = JaxLayout.from_pjrt_layout(PjRtLayout(Layout((0, 1), [(8, 128)], 4)))
    assert back == JaxLayout((1, 0), ((8, 128),), 4)
    assert back.update(tiling=None) == JaxLayout((1, 0), None, 4)
    assert back.update(major_to_minor=(0, 1)) == JaxLayout((0, 1), ((8, 128),), 4)
    for text in ("{1,0:S(1)}", "{1,0:L(8)}"):
        with pytest.raises(ValueError, match="from_pjrt_layout"):
            JaxLayout.from_pjrt_layout(PjRtLayout(Layout.parse(text)))


# --- Memory


def tiled_by_numpy(x, layout):
    """The physical array: pad, split and turn, as XLA's description of tiled layouts has it."""
    x = x.transpose(layout.minor_to_major()[::-1])
    for tile in layout.tiling():
        shape = (1,) * (len(tile) - x.ndim) + x.shape
        kept, sizes, merged = list(shape[: len(shape) - len(tile)]), [], 1
        whole = len(kept)
        for size, cut in zip(shape[whole:], tile, strict=True):
            merged *= size
            if cut == COMBINE:
                continue
            kept.append(merged)
            sizes.append(cut)
            merged = 1
        x = x.reshape(kept)
        counts = [-(-size // cut) for size, cut in zip(kept[whole:], sizes, strict=True)]
        padded = np.zeros((*kept[:whole], *(n * cut for n, cut in zip(counts, sizes, strict=True))), x.dtype)
        padded[tuple(slice(0, size) for size in kept)] = x
        pairs = (n for pair in zip(counts, sizes, strict=True) for n in pair)
        split = padded.reshape((*kept[:whole], *pairs))
        k = len(sizes)
        order = (*range(whole), *(whole + 2 * i for i in range(k)), *(whole + 2 * i + 1 for i in range(k)))
        x = split.transpose(order)
    return x


@st.composite
def layouts_and_shapes(draw):
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(0, 6), min_size=rank, max_size=rank)))
    order = draw(st.permutations(range(rank)))
    sizes = st.one_of(st.integers(1, 4), st.just(COMBINE))
    tile = st.lists(sizes, max_size=rank + 1).filter(lambda t: not t or t[-1] != COMBINE)
    return Layout(tuple(order), draw(st.lists(tile, max_size=3))), shape


@settings(max_examples=400, deadline=None)
@given(layouts_and_shapes(), dtypes(), st.integers(0, 1000), st.booleans())
def test_pack_is_numpys_memory_and_unpack_brings_every_bit_back(drawn, dtype, seed, reverse):
    layout, shape = drawn
    x = random_bits(shape, dtype, seed)
    if reverse:
        x = x[tuple(slice(None, None, -1) for _ in shape)]
    expected = tiled_by_numpy(x, layout)
    assert layout.physical_shape(shape) == expected.shape
    memory = layout.pack(x)
    assert memory.dtype == np.uint8
    assert memory.shape == (layout.byte_size(shape, dtype),)
    assert memory.tobytes() == expected.tobytes()
    back = layout.unpack(memory, shape, dtype)
    assert (back.dtype, back.shape) == (dtype, shape)
    assert back.flags.c_contiguous
    assert back.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("layout", "shape", "physical"),
    [
        ("{1,0:T(2,2)}", (3, 5), (2, 3, 2, 2)),
        ("{4,3,2,1,0:T(*,*,2,*,3)}", (2, 7, 8, 11, 10), (56, 37, 2, 3)),
        ("{1,0:T(8,128)(2,1)}", (16, 256), (2, 2, 4, 128, 2, 1)),
        ("{0:T(4,128)}", (100,), (1, 1, 4, 128)),
        ("{2,1,0:T(8,128)}", (3, 9, 1), (3, 2, 1, 8, 128)),
        ("{1,0:T(4,4)}", (0, 5), (0, 2, 4, 4)),
    ],
)
def test_physical_shapes_are_those_of_xlas_description(layout, shape, physical):
    assert Layout.parse(layout).physical_shape(shape) == physical


def test_element_17_of_xlas_example():
    layout = Layout((1, 0), [(2, 2)])
    x = np.arange(15, dtype=np.uint8).reshape(3, 5)
    assert layout.pack(x)[17] == x[2, 3]


@pytest.mark.parametrize("text", ["{1,0:T(8,128)(2,1)}", "{0,1:T(8,128)}", "{1,0:T(*,128)}", "{0,1}", "{1,0:T(100,3)}"])
def test_big_arrays_are_packed_by_the_workers(text):
    layout = Layout.parse(text)
    x = np.arange(1003 * 2005, dtype=np.uint16).reshape(1003, 2005)
    memory = layout.pack(x)
    assert memory.tobytes() == tiled_by_numpy(x, layout).tobytes()
    assert np.array_equal(layout.unpack(memory, x.shape, x.dtype), x)


@pytest.mark.parametrize(
    ("name", "bits"), [("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4_e2m1fn", 4), ("bool", 1)]
)
@pytest.mark.parametrize("tiles", [[], [(2, 4)]])
@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (0, 3), (1, 1), (301, 7001)])
def test_small_elements_share_bytes_the_first_in_the_low_bits(name, bits, tiles, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = random_bits(shape, dtype, 5)
    layout = Layout((0, 1), tiles, bits)
    whole = tiled_by_numpy(x, Layout((0, 1), tiles)).ravel().view(np.uint8)
    each_bit = (whole[:, None] >> np.arange(bits, dtype=np.uint8)) & 1
    expected = np.packbits(each_bit, bitorder="little")
    memory = layout.pack(x)
    assert memory.size == layout.byte_size(shape, dtype) == math.ceil(whole.size * bits / 8)
    assert memory.tobytes() == expected.tobytes()
    assert layout.unpack(memory, shape, dtype).tobytes() == x.tobytes()


def test_bits_of_whole_bytes_change_nothing_and_a_tail_is_padded():
    x = np.arange(15, dtype=np.int32).reshape(3, 5)
    assert Layout((1, 0), [], 32).pack(x).tobytes() == x.tobytes()
    tail = Layout.parse("{1,0:L(8)}")
    assert tail.byte_size((3, 5), "int32") == 64
    assert tail.pack(x).tobytes() == x.tobytes() + b"\0" * 4
    assert np.array_equal(tail.unpack(tail.pack(x), (3, 5), "int32"), x)


@pytest.mark.parametrize(
    ("bits", "dtype", "expected"),
    [(4, "int8", "expected 8 for int8"), (16, "float32", "expected 32"), (1, ml_dtypes.int4, "expected 8 or 4")],
)
def test_bits_that_would_lose_values_are_refused(bits, dtype, expected):
    with pytest.raises(ValueError, match=expected):
        Layout((0,), [], bits).pack(np.zeros(3, dtype))


def test_wrong_shapes_and_memories_are_refused():
    layout = Layout((1, 0), [(2, 2)])
    with pytest.raises(
        ValueError, match=r"Layout.pack: the layout {1,0:T\(2,2\)} orders 2 dimensions and shape \(3,\)"
    ):
        layout.pack(np.zeros(3))
    with pytest.raises(ValueError, match="memory has 7 bytes; expected 8 for shape"):
        layout.unpack(b"1234567", (2, 3), "uint8")
    with pytest.raises(TypeError, match="expected contiguous bytes"):
        layout.unpack(np.zeros(16, np.uint8)[::2], (2, 3), "uint8")
    with pytest.raises(TypeError, match="memory is of type str"):
        layout.unpack("12345678", (2, 3), "uint8")
    with pytest.raises(TypeError, match=r"Layout.pack"):
        layout.pack(np.array([["a"]]))
    with pytest.raises(ValueError, match=r"Layout.physical_shape"):
        layout.physical_shape((-1, 3))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("{1,0:T(4611686018427387904,4)}", (2, 3)),
        ("{1,0:T(3037000500,3037000500)}", (1, 1)),
        ("{2,1,0:T(*,2)}", (0, 1 << 62, 1 << 62)),
        ("{1,0}", (1 << 62, 4)),
        ("{0:T(4611686018427387904)L(9223372036854775807)}", (1,)),
        ("{0:T(4611686018427387904)}", (1,)),
    ],
)
def test_sizes_beyond_63_bits_are_refused_before_any_memory_is_taken(text, shape):
    with pytest.raises(ValueError, match="63 bits"):
        Layout.parse(text).byte_size(shape, "float64")


def test_huge_tiles_round_a_small_array():
    layout = Layout((0,), [(1 << 20,), (3,)])
    x = np.arange(5, dtype=np.int16)
    memory = layout.pack(x)
    assert memory.size == layout.byte_size((5,), "int16") == 2 * 3 * -(-(1 << 20) // 3)
    assert memory.tobytes() == tiled_by_numpy(x, layout).tobytes()
    assert np.array_equal(layout.unpack(memory, (5,), "int16"), x)


def test_arrays_of_devices_are_packed_too():
    x = ad.device_put(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert Layout((1, 0), [(2, 2)]).pack(x).tolist() == [0, 1, 3, 4, 2, 0, 5, 0]
