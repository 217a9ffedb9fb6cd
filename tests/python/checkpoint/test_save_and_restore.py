# SPDX-License-Identifier: Apache-2.0
"""save and restore in one process: exact bits for every dtype, sharding and tree."""

import os
from dataclasses import dataclass
from typing import NamedTuple

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint

NAMES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
ML_NAMES = [
    *("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
    *("int2", "int4", "uint2", "uint4"),
]
DTYPES = [np.dtype(name) for name in NAMES] + [np.dtype(getattr(ml_dtypes, name)) for name in ML_NAMES]


def bits(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    most = 2 if dtype == np.bool_ else 4 if dtype.name.endswith(("int2", "int4", "e2m1fn")) else 256
    return random.integers(0, most, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_has_the_same_bits_afterwards(dtype, tmp_path):
    value = bits((8, 6), dtype)
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        rows, columns = (ad.NamedSharding(mesh, ad.P(*spec)) for spec in (("x",), (None, "y")))
        checkpoint.save(tmp_path / "c", {"w": ad.device_put(value, rows)})
        restored = checkpoint.restore(tmp_path / "c", {"w": columns}, verify=True)["w"]
        assert same(restored, value)
        assert restored.sharding == columns
    assert same(checkpoint.restore(tmp_path / "c")["w"], value)


SPECS = [(), ("x",), (None, "y"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))]


@pytest.mark.parametrize("kind", ["even", "uneven", "empty"])
def test_any_sharding_is_restored_under_any_other(kind, tmp_path):
    shape = {"even": (16, 8), "uneven": (13, 5), "empty": (0, 8)}[kind]
    value = bits(shape, np.dtype(np.float32))
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        shardings = [ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short") for spec in SPECS]
        tree = {str(i): ad.device_put(value, sharding) for i, sharding in enumerate(shardings)}
        checkpoint.save(tmp_path / "c", tree)
        for turn in range(len(SPECS)):
            like = {str(i): shardings[(i + turn) % len(SPECS)] for i in range(len(SPECS))}
            restored = checkpoint.restore(tmp_path / "c", like)
            for name, array in restored.items():
                assert same(array, value), (name, turn)
                assert array.sharding == like[name]


def test_the_files_do_not_depend_on_the_sharding_in_one_process(tmp_path):
    value = bits((64, 32), np.dtype(np.float64))
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        for i, spec in enumerate(SPECS):
            array = ad.device_put(value, ad.NamedSharding(mesh, ad.P(*spec)))
            checkpoint.save(tmp_path / str(i), {"w": array})
    texts = {
        (tmp_path / str(i) / "shard-00001-model-00001-of-00001.safetensors").read_bytes() for i in range(len(SPECS))
    }
    assert len(texts) == 1


def test_large_arrays_cross_piece_boundaries(tmp_path):
    value = bits((1031, 1021), np.dtype(np.float32))  # 4 MiB and odd rows
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        for spec, other in ((("x",), (None, "y")), (("y", "x"), ()), ((None, "x"), ("x", "y"))):
            put = ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short")
            get = ad.NamedSharding(mesh, ad.P(*other), uneven="last-short")
            checkpoint.save(tmp_path / "c", {"w": ad.device_put(value, put)}, overwrite=True)
            for verify in (False, True):
                assert same(checkpoint.restore(tmp_path / "c", {"w": get}, verify=verify)["w"], value)


def test_an_emulated_gpu_saves_and_restores(tmp_path):
    value = bits((16, 8), np.dtype(np.float32))
    with ad.simulate(4, platform="gpu"):
        mesh = ad.make_mesh((4,), ("x",))
        rows, columns = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P(None, "x"))
        checkpoint.save(tmp_path / "c", {"w": ad.device_put(value, rows)})
        restored = checkpoint.restore(tmp_path / "c", {"w": columns})["w"]
        assert same(ad.device_get(restored), value)


def test_a_column_major_layout_is_saved_as_its_value(tmp_path):
    value = bits((6, 4), np.dtype(np.int32))
    target = ad.layout.Format(ad.layout.Layout((1, 0)), ad.SingleDeviceSharding(ad.devices()[0]))
    checkpoint.save(tmp_path / "c", ad.device_put(value, target))
    assert same(checkpoint.restore(tmp_path / "c")["value"], value)


class Point(NamedTuple):
    x: object
    y: object


@ad.tree_util.register_dataclass
@dataclass
class Layer:
    weight: object
    bias: object


def test_trees_with_custom_nodes_and_values(tmp_path):
    tree = {
        "layers": [Layer(np.ones((2, 2)), Point(np.float32(3), None)), (np.arange(3),)],
        "step": 2**80,
        "rate": -0.0,
        "infinite": float("inf"),
        "done": True,
        "z": complex(1, float("-inf")),
        "half": "\ud83d",  # half of a surrogate pair, as in names of files
        "text": "é\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    }
    checkpoint.save(tmp_path / "c", tree)
    restored = checkpoint.restore(tmp_path / "c", tree)
    assert isinstance(restored["layers"][0], Layer)
    assert np.array_equal(restored["layers"][0].weight, np.ones((2, 2)))
    assert type(restored["layers"][0].bias.x) is np.float32
    assert restored["layers"][0].bias == Point(np.float32(3), None)
    assert str(restored["rate"]) == "-0.0"
    names = ("step", "infinite", "done", "z", "half", "text")
    assert [restored[name] for name in names] == [tree[name] for name in names]
    plain = checkpoint.restore(tmp_path / "c")
    assert sorted(plain) == sorted(tree)
    assert plain["layers"][0]["bias"] == {"x": 3}
    assert plain["layers"][0]["weight"].tolist() == [[1, 1], [1, 1]]
    assert plain["layers"][1][0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("tree", "restored"),
    [
        ({"data": {"step": 3, "order": "abc"}, "lr": 0.5}, None),
        ({"a.b": {"c.d": 1}}, None),
        ([1, [2, "x"]], None),
        ({"w": (1, 2), "n": [None, {"x": 2}]}, {"w": [1, 2], "n": {1: {"x": 2}}}),
        ({"a": {0: 1, 1: 2}}, {"a": {"0": 1, "1": 2}}),
        ({"a": {"b": {"c": [{"d": 1}, {"d": 2}]}}}, None),
        (7, {"value": 7}),
    ],
)
def test_without_like_the_saved_dicts_and_lists_are_returned(tree, restored, tmp_path):
    checkpoint.save(tmp_path / "a", tree)
    checkpoint.convert(tmp_path / "a", tmp_path / "b", num_files=2)
    expected = tree if restored is None else restored
    assert checkpoint.restore(tmp_path / "a") == checkpoint.restore(tmp_path / "b") == expected


def test_arrays_of_one_element_and_rank_zero(tmp_path):
    with ad.simulate(2):
        mesh = ad.make_mesh((2,), ("x",))
        replicated = ad.NamedSharding(mesh, ad.P())
        tree = {"a": ad.device_put(np.float64(2.5), replicated), "b": np.array(3 + 4j), "c": np.zeros((1, 0, 2))}
        checkpoint.save(tmp_path / "c", tree)
        restored = checkpoint.restore(tmp_path / "c", {"a": replicated, "b": replicated, "c": replicated})
        assert float(restored["a"]) == 2.5
        assert complex(restored["b"]) == 3 + 4j
        assert restored["c"].shape == (1, 0, 2)


def test_like_decides_what_the_leaves_become(tmp_path):
    value = bits((4,), np.dtype(np.int16))
    checkpoint.save(tmp_path / "c", {"w": value})
    device = ad.SingleDeviceSharding(ad.devices()[0])
    for like, kind in (
        (ad.ShapeDtypeStruct((4,), np.int16, sharding=device), ad.Array),
        (ad.ShapeDtypeStruct((4,), np.int16), np.ndarray),
        (ad.device_put(value, device), ad.Array),
        (np.zeros(4, np.int16), np.ndarray),
        (device, ad.Array),
    ):
        restored = checkpoint.restore(tmp_path / "c", {"w": like})["w"]
        assert type(restored) is kind
        assert same(restored, value)
        assert kind is not np.ndarray or restored.flags.writeable


def test_overwriting_replaces_everything(tmp_path):
    checkpoint.save(tmp_path / "c", {"a": np.ones(3), "b": np.ones(2)})
    checkpoint.save(tmp_path / "c", {"a": np.zeros(5)}, overwrite=True)
    restored = checkpoint.restore(tmp_path / "c")
    assert list(restored) == ["a"]
    assert restored["a"].tolist() == [0.0] * 5
    assert sorted(os.listdir(tmp_path)) == ["c"]


def test_what_an_interrupted_save_left_is_removed(tmp_path):
    left = tmp_path / ".c.saving"
    left.mkdir()
    (left / "shard-00001-model-00001-of-00001.safetensors").write_bytes(b"half")
    checkpoint.save(tmp_path / "c", {"a": 1})
    assert sorted(os.listdir(tmp_path)) == ["c"]


def test_a_plain_safetensors_file_and_an_index_are_restored(tmp_path):
    value = bits((8, 6), np.dtype(np.float32))
    half = value[:4]

    def file(name, tensors):
        header, data = [], b""
        for key, array in tensors.items():
            end = len(data) + array.nbytes
            shape = ",".join(map(str, array.shape))
            header.append(f'"{key}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{len(data)},{end}]}}')
            data += array.tobytes()
        text = ("{" + ",".join(header) + "}").encode()
        (tmp_path / name).write_bytes(len(text).to_bytes(8, "little") + text + data)

    file("model-00001-of-00002.safetensors", {"a": value})
    file("model-00002-of-00002.safetensors", {"b": half})
    index = (
        '{"metadata":{},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}'
    )
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with ad.simulate(2):
        columns = ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P(None, "x"))
        restored = checkpoint.restore(tmp_path, {"a": columns, "b": columns})
        assert same(restored["a"], value)
        assert same(restored["b"], half)
        alone = checkpoint.restore(tmp_path / "model-00002-of-00002.safetensors", {"b": columns})
        assert same(alone["b"], half)
