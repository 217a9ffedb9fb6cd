# SPDX-License-Identifier: Apache-2.0
"""DLPack: Arrays shown to other libraries and made of their memory; capsules that lie."""

import ctypes
import gc
import importlib
import threading
import weakref

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.dlpack import from_dlpack
from artifex_devices.testing import assert_same_bits

X = np.arange(64, dtype=np.float32).reshape(8, 8)
NUMPY_DTYPES = "? b h i l B H I L e f d F D".split()  # noqa: SIM905
SUB_BYTE = ["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]


class Capsules:
    """The capsule functions of Python, and the tensor that a capsule holds, read as the standard lays it out."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device_type", ctypes.c_int32),
            ("device_id", ctypes.c_int32),
            ("rank", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
        ]

    class Versioned(ctypes.Structure):
        _fields_ = [
            ("major", ctypes.c_uint32),
            ("minor", ctypes.c_uint32),
            ("context", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
            ("flags", ctypes.c_uint64),
        ]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    @classmethod
    def header(cls, capsule):
        header = cls.Versioned.from_address(cls.pointer(capsule, b"dltensor_versioned"))
        header.capsule = capsule  # keeps what is read
        return header

    @classmethod
    def tensor(cls, capsule):
        name = cls.name(capsule)
        start = cls.pointer(capsule, name)
        tensor = cls.Tensor.from_address(start + (32 if name == b"dltensor_versioned" else 0))
        tensor.capsule = capsule
        return tensor


class Producer:
    """Gives the capsule of an array after `spoil` changed its tensor (and header)."""

    def __init__(self, array, spoil=lambda tensor, header: None, version=(1, 0), device=(1, 0)):
        self.array, self.spoil, self.version, self.device = array, spoil, version, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        capsule = self.array.__dlpack__(max_version=self.version)
        header = Capsules.header(capsule) if self.version else None
        self.spoil(Capsules.tensor(capsule), header)
        return capsule


# --- Out


@pytest.mark.parametrize("letter", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_numpy_sees_the_memory_itself_read_only(letter, shape, devices):
    value = np.arange(int(np.prod(shape))).reshape(shape).astype(np.dtype(letter))
    array = ad.device_put(value, devices[3])
    view = np.from_dlpack(array)
    assert_same_bits(view, value)
    assert not view.flags.writeable
    assert not value.size or view.ctypes.data == array.unsafe_buffer_pointer()


def test_the_view_keeps_the_memory_after_delete():
    with ad.simulate(1):
        array = ad.device_put(X)
        view = np.from_dlpack(array)
        array.delete()
        del array
        gc.collect()
        filler = [ad.device_put(X + i) for i in range(20)]  # would take the block if it were free
        assert_same_bits(view, X)
        del filler


def test_the_last_view_can_go_in_any_thread_and_gives_the_memory_back(settled):
    with ad.simulate(1):
        big = np.ones(1 << 20, np.float32)
        before = ad.devices()[0].memory_stats()["pool_bytes_in_use"]
        views = [np.from_dlpack(ad.device_put(big)) for _ in range(4)]
        assert ad.devices()[0].memory_stats()["pool_bytes_in_use"] > before
        thread = threading.Thread(target=views.clear)
        thread.start()
        thread.join()
        assert ad.devices()[0].memory_stats()["pool_bytes_in_use"] == before


def test_a_capsule_that_nobody_takes_gives_its_memory_back(settled):
    with ad.simulate(1):
        before = ad.devices()[0].memory_stats()["pool_bytes_in_use"]
        for version in (None, (1, 0)):
            capsule = ad.device_put(np.ones(1 << 20, np.float32)).__dlpack__(max_version=version)
            del capsule
        assert ad.devices()[0].memory_stats()["pool_bytes_in_use"] == before


def test_copy_true_is_memory_of_the_consumers_own():
    array = ad.device_put(X)
    view = np.from_dlpack(array, copy=True)
    assert view.flags.writeable
    view[0, 0] = 99
    assert_same_bits(array, X)
    assert_same_bits(np.from_dlpack(array, copy=False), X)


@pytest.mark.parametrize("version", [None, (0, 0), (0, 5), (0, 8)])
def test_consumers_from_before_1_0_get_a_capsule_as_from_jax(version):
    array = ad.device_put(X)
    capsule = array.__dlpack__(max_version=version)
    assert Capsules.name(capsule) == b"dltensor"
    tensor = Capsules.tensor(capsule)
    assert (tensor.device_type, tensor.device_id, tensor.rank, tensor.byte_offset) == (1, 0, 2, 0)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([8, 8], [8, 1])
    assert tensor.data == array.unsafe_buffer_pointer()


@pytest.mark.parametrize("version", [(1, 0), (1, 1), (2, 0)])
def test_newer_consumers_get_a_read_only_one(version):
    capsule = ad.device_put(X).__dlpack__(max_version=version)
    header = Capsules.header(capsule)
    assert (header.major, header.minor, header.flags) == (1, 0, 1)
    copied = Capsules.header(ad.device_put(X).__dlpack__(max_version=version, copy=True))
    assert copied.flags == 2


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bfloat16", 4),
        ("float8_e3m4", 7),
        ("float8_e4m3", 8),
        ("float8_e4m3b11fnuz", 9),
        ("float8_e4m3fn", 10),
        ("float8_e4m3fnuz", 11),
        ("float8_e5m2", 12),
        ("float8_e5m2fnuz", 13),
        ("float8_e8m0fnu", 14),
    ],
)
def test_ml_dtypes_have_their_codes_and_come_back(name, code):
    dtype = np.dtype(getattr(ml_dtypes, name))
    array = ad.device_put(np.array([1.0, 2.0, 0.5]).astype(dtype))
    tensor = Capsules.tensor(array.__dlpack__())
    assert (tensor.code, tensor.bits, tensor.lanes) == (code, 8 * dtype.itemsize, 1)
    assert_same_bits(from_dlpack(array), array)


@pytest.mark.parametrize("name", SUB_BYTE)
def test_types_below_a_byte_need_dlpack_1_1(name):
    array = ad.device_put(np.array([1, 0, 1]).astype(getattr(ml_dtypes, name)))
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match=rf"{name}.*view\(np.uint8\)"):
            array.__dlpack__(max_version=version)
    header = Capsules.header(array.__dlpack__(max_version=(1, 1)))
    assert (header.minor, header.flags) == (1, 5)
    assert_same_bits(from_dlpack(array), array)


def test_an_array_on_several_devices_names_the_repair(named):
    for array in (ad.device_put(X, named("x", "y")), ad.device_put(X, named())):
        for call in (array.__dlpack__, array.__dlpack_device__, lambda array=array: np.from_dlpack(array)):
            with pytest.raises(BufferError, match=r"8 devices; expected one.*np.asarray\(x\).*addressable_shards"):
                call()
        for shard in array.addressable_shards:
            assert_same_bits(np.from_dlpack(shard.data), X[shard.index])


def test_a_deleted_array_is_an_error():
    array = ad.device_put(X)
    array.delete()
    for call in (array.__dlpack__, array.__dlpack_device__):
        with pytest.raises(RuntimeError, match="deleted"):
            call()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"stream": 1}, RuntimeError, "stream"),
        ({"stream": "no"}, RuntimeError, "stream"),
        ({"dl_device": (2, 0)}, BufferError, r"\(2, 0\)"),
        ({"dl_device": (1, 99)}, BufferError, r"\(1, 99\)"),
        ({"dl_device": (1, -1)}, BufferError, "dl_device"),
        ({"dl_device": 1}, TypeError, "dl_device"),
        ({"dl_device": (1, 0, 0)}, TypeError, "dl_device"),
        ({"dl_device": (1, "0")}, TypeError, "dl_device"),
        ({"dl_device": (1, 2**80)}, TypeError, "dl_device"),
        ({"max_version": "1.0"}, TypeError, "max_version"),
        ({"max_version": (1,)}, TypeError, "max_version"),
        ({"max_version": (1.0, 0)}, TypeError, "max_version"),
        ({"bogus": 1}, TypeError, "bogus|incompatible"),
    ],
)
def test_odd_wishes_are_errors(options, error, words):
    with pytest.raises(error, match=words):
        ad.device_put(X).__dlpack__(**options)


def test_the_host_can_be_asked_for():
    array = ad.device_put(X)
    assert array.__dlpack_device__() == (1, 0)
    assert Capsules.tensor(array.__dlpack__(dl_device=(1, 0), stream=None, copy=None)).device_id == 0


# --- In


@pytest.mark.parametrize("letter", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5), (1, 1)])
def test_row_major_memory_is_shown_and_held(letter, shape):
    source = np.arange(int(np.prod(shape))).reshape(shape).astype(np.dtype(letter))
    array = from_dlpack(source)
    assert (array.dtype, array.shape, array.committed) == (source.dtype, shape, True)
    assert array.devices() == {ad.devices()[0]}
    assert_same_bits(array, source)
    assert np.shares_memory(np.asarray(array), source) == bool(source.size)


def test_the_producer_lives_as_long_as_the_array_or_a_view_of_it():
    class Source(np.ndarray):
        pass

    source = X.copy().view(Source)
    reference = weakref.ref(source)
    array = from_dlpack(source, copy=False)
    address = source.ctypes.data
    del source
    gc.collect()
    assert reference() is not None
    view = np.asarray(array)
    assert view.ctypes.data == address
    array.delete()
    del array
    gc.collect()
    assert reference() is not None
    assert_same_bits(view, X)
    del view
    gc.collect()
    assert reference() is None


def test_writes_of_the_producer_show_unless_a_copy_was_asked_for():
    source = X.copy()
    shown, copied = from_dlpack(source), from_dlpack(source, copy=True)
    source[0, 0] = 42
    assert float(np.asarray(shown)[0, 0]) == 42
    assert_same_bits(copied, X)


@pytest.mark.parametrize(
    "source",
    [X.T, X[::2], X[:, 1:3], X[::-1], np.broadcast_to(X[0], (4, 8)), X[1:, :5]],
    ids="transposed stepped columns reversed broadcast corner".split(),  # noqa: SIM905
)
def test_other_layouts_are_copied_unless_forbidden(source):
    array = from_dlpack(source)
    assert_same_bits(array, source)
    assert not np.shares_memory(np.asarray(array), X)
    with pytest.raises(ValueError, match=r"copy=False.*row-major"):
        from_dlpack(source, copy=False)


def test_a_row_major_part_is_shown():
    assert np.shares_memory(np.asarray(from_dlpack(X[2:5], copy=False)), X)


def test_another_device_gets_a_copy_as_in_jax(devices):
    array = from_dlpack(X, device=devices[2])
    assert array.devices() == {devices[2]}
    assert not np.shares_memory(np.asarray(array), X)
    with pytest.raises(ValueError, match="copy=False"):
        from_dlpack(X, device=devices[2], copy=False)
    assert np.shares_memory(np.asarray(from_dlpack(X, device=devices[0], copy=False)), X)


def test_device_may_be_a_sharding_over_one(devices, named):
    sharding = ad.NamedSharding(ad.Mesh([devices[0]], "one"), ad.P("one"))
    array = from_dlpack(X, device=sharding, copy=False)
    assert array.sharding == sharding
    assert from_dlpack(X, device=ad.SingleDeviceSharding(devices[1])).devices() == {devices[1]}
    with pytest.raises(ValueError, match=r"8 devices.*device_put"):
        from_dlpack(X, device=named("x"))
    with pytest.raises(TypeError, match="device is of type str"):
        from_dlpack(X, device="cpu")


def test_the_current_world_is_where_it_goes():
    with ad.simulate(2):
        assert from_dlpack(X).devices() == {ad.devices()[0]}


def test_foreign_memory_is_counted_and_can_be_moved(devices, named):
    with ad.simulate(2):
        device = ad.devices()[0]
        array = from_dlpack(X.copy())
        assert device.memory_stats()["bytes_in_use"] == X.nbytes
        array.delete()
        assert device.memory_stats()["bytes_in_use"] == 0
    array = from_dlpack(X.copy())
    assert_same_bits(ad.device_put(array, named("x", "y")), X)


def test_an_array_of_ours_is_shown_too(devices):
    array = ad.device_put(X, devices[0])
    again = from_dlpack(array)
    assert again is not array
    array.delete()
    assert_same_bits(again, X)
    assert_same_bits(np.from_dlpack(again), X)


def test_capsules_from_before_1_0_are_taken():
    class Old:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self):  # knows no options
            return X.copy().__dlpack__()

    assert_same_bits(from_dlpack(Old(), copy=False), X)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (3, TypeError, "__dlpack__"),
        (None, TypeError, "NoneType"),
        ([1.0], TypeError, "device_put"),
        (X.__dlpack__(), TypeError, "PyCapsule"),
        (np.array(["a"]), BufferError, None),
        (np.array([1], "datetime64[s]"), BufferError, None),
        (np.array([1], ">i4"), BufferError, None),
    ],
    ids="int None list capsule text dates big-endian".split(),  # noqa: SIM905
)
def test_what_is_not_an_array_is_an_error(source, error, words):
    with pytest.raises(error, match=words):
        from_dlpack(source)


def test_copy_must_be_a_bool_or_none():
    with pytest.raises(TypeError, match="copy"):
        from_dlpack(X, copy="yes")


@pytest.mark.parametrize("device", [None, 1, (1,), (1, 0, 0), ("a", "b"), "ab"])
def test_an_answer_that_is_not_a_device_is_an_error(device):
    with pytest.raises(TypeError, match="__dlpack_device__"):
        from_dlpack(Producer(X.copy(), device=device))


@pytest.mark.parametrize("device", [(8, 0), (-1, 0), (10**9, 3)])
def test_memory_that_is_not_the_hosts_is_refused(device):
    with pytest.raises(BufferError, match=r"host memory, \(1, 0\).*cpu\(\)"):
        from_dlpack(Producer(X.copy(), device=device))


def test_memory_of_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(BufferError, match=r"memory is of CUDA device 0, which this program does not have; .*the host"):
        from_dlpack(Producer(X.copy(), device=(2, 0)))


def set_to(name, value):
    return lambda tensor, header: setattr(tensor, name, value)


def set_shape(*sizes):
    def spoil(tensor, header):
        for d, size in enumerate(sizes):
            tensor.shape[d] = size

    return spoil


def set_stride(value):
    def spoil(tensor, header):
        tensor.strides[0] = value

    return spoil


@pytest.mark.parametrize("version", [None, (1, 0)], ids=["old", "versioned"])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (set_to("device_type", 8), "device type 8"),
        (set_to("rank", -1), "-1 dimensions"),
        (set_to("rank", 10**6), "1000000 dimensions"),
        (set_to("shape", ctypes.POINTER(ctypes.c_int64)()), "no shape"),
        (set_shape(-8, 8), r"shape \(-8, 8\)"),
        (set_shape(2**62, 2**62), "63 bits"),
        (set_shape(2**62, 0), "63 bits"),
        (set_stride(2**62), "stride"),
        (set_stride(-(2**63)), "stride"),
        (set_to("data", None), "no data"),
        (set_to("code", 3), "type code 3"),
        (set_to("code", 200), "type code 200"),
        (set_to("bits", 33), "33 bits"),
        (set_to("bits", 0), "0 bits"),
        (set_to("lanes", 4), "4 lanes"),
        (set_to("lanes", 0), "0 lanes"),
    ],
)
def test_a_capsule_that_lies_is_an_error_and_stays_whole(spoil, words, version):
    source = ad.device_put(X.copy())  # its capsules do not read what was spoilt when they go
    with pytest.raises(BufferError, match=words):
        from_dlpack(Producer(source, spoil, version))


def test_a_later_major_version_is_refused():
    source = ad.device_put(X)
    with pytest.raises(BufferError, match=r"DLPack 2\.0"):
        from_dlpack(Producer(source, lambda tensor, header: setattr(header, "major", 2)))


def test_missing_strides_mean_row_major():
    none = ctypes.POINTER(ctypes.c_int64)()
    assert_same_bits(from_dlpack(Producer(ad.device_put(X), set_to("strides", none)), copy=False), X)


def test_the_byte_offset_counts():
    def one_row_on(tensor, header):
        tensor.byte_offset = 32
        tensor.shape[0] = 7

    assert_same_bits(from_dlpack(Producer(ad.device_put(X), one_row_on), copy=False), X[1:])


def test_an_unaligned_address_is_copied():
    def one_byte_on(tensor, header):
        tensor.byte_offset = 1
        tensor.shape[0] = 7

    expected = np.frombuffer(X.tobytes()[1 : 1 + 7 * 32], np.float32).reshape(7, 8)
    assert_same_bits(from_dlpack(Producer(ad.device_put(X), one_byte_on)), expected)
    with pytest.raises(ValueError, match="alignment"):
        from_dlpack(Producer(ad.device_put(X), one_byte_on), copy=False)


class Gives:
    """Its capsule is whatever was given."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.capsule


@pytest.mark.parametrize("capsule", [None, 3, X, "dltensor"], ids=["None", "int", "array", "text"])
def test_what_is_not_a_capsule_is_an_error(capsule):
    with pytest.raises(TypeError, match="expected a capsule"):
        from_dlpack(Gives(capsule))


def test_a_capsule_is_taken_once():
    for version in (None, (1, 0)):
        source = Gives(ad.device_put(X).__dlpack__(max_version=version))
        assert_same_bits(from_dlpack(source), X)
        with pytest.raises(BufferError, match=r"used_dltensor.*once"):
            from_dlpack(source)


@pytest.mark.parametrize("name", [b"something", None])
def test_a_capsule_of_another_kind_is_refused(name):
    memory = ctypes.create_string_buffer(8)
    with pytest.raises(BufferError, match="the capsule is named"):
        from_dlpack(Gives(Capsules.new(ctypes.addressof(memory), name, None)))


def test_a_failed_placement_gives_the_memory_back():
    class Source(np.ndarray):
        pass

    with ad.simulate(1, bytes_limit=16):
        for copy in (None, True, False):
            source = X.copy().view(Source)
            reference = weakref.ref(source)
            with pytest.raises(MemoryError, match="RESOURCE_EXHAUSTED"):
                from_dlpack(source, copy=copy)
            del source
            gc.collect()
            assert reference() is None


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_other_libraries_when_installed(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    theirs = importlib.import_module("torch").arange(6.0) if library == "torch" else module.arange(6.0)
    ours = from_dlpack(theirs, copy=False)
    assert_same_bits(ours, np.arange(6, dtype=np.float32))
    back = module.from_dlpack(ad.device_put(X))
    assert_same_bits(np.asarray(back), X)


def test_copy_is_true_false_or_none(devices):
    with pytest.raises(TypeError, match="__dlpack__: copy is of type str"):
        ad.device_put(np.ones(2), devices[0]).__dlpack__(copy="yes")
