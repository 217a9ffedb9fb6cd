# SPDX-License-Identifier: Apache-2.0
"""Calls of the checkpoint functions with their results and errors, word for word."""

from __future__ import annotations

import json
import re
import struct

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.sharding import NamedSharding, P
from recorded_texts import check_recorded

VALUES = {
    "flag": True,
    "off": False,
    "count": 255,
    "negative": -3,
    "big": 2**80,
    "rate": 0.1,
    "infinite": float("-inf"),
    "complex": 1.5 - 2j,
    "text": "a ß\n",
    "empty": "",
}


def safetensors(path, tensors):
    """Writes a file of (type, shape, bytes) by name."""
    header, data = {}, b""
    for name, (kind, shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


CALLS = """
checkpoint.save(f / "one", {"a": x, "b": {"c": [1, 2.5, "t"]}, "d": np.float32(3)})
checkpoint.save(f / "one", {"a": x})
checkpoint.save(f / "one", {"a": x}, overwrite=1)
checkpoint.save(f / "values", values)
checkpoint.restore(f / "values") == values
[type(v).__name__ for v in checkpoint.restore(f / "values").values()]
checkpoint.restore(f / "values", {**values, "count": 1.0})
checkpoint.restore(f / "values", {**values, "count": x})
checkpoint.restore(f / "one", {"a": 3, "b": {"c": [1, 2.5, "t"]}, "d": np.float32(3)})
checkpoint.restore(f / "one", {"a": x, "b": {"c": [1, 2.5, "t"]}, "d": np.float32(0)})
checkpoint.restore(f / "one")
checkpoint.restore(f / "one", {"a": x[:4]}, strict=False)
checkpoint.restore(f / "one", {"a": x.astype(np.float32)}, strict=False)
checkpoint.restore(f / "one", {"a": x.astype(np.float32), "d": x}, strict=False)
checkpoint.restore(f / "one", {"a": x})
checkpoint.restore(f / "one", {"spam": x})
checkpoint.restore(f / "one", {"a": [x]}, strict=False)
checkpoint.restore(f / "one", {"a": "text"}, strict=False)
checkpoint.restore(f / "one", {"a": None}, strict=False)
checkpoint.restore(f / "one", {"a": object}, strict=False)
checkpoint.restore(f / "one", {"a": rows}, strict=False)["a"]
checkpoint.restore(f / "one", {"a": ad.ShapeDtypeStruct((8, 2), float)}, strict=False)["a"]
checkpoint.restore(f / "one", {"a": ad.ShapeDtypeStruct((8, 2), float, sharding=rows)}, strict=False)["a"].sharding.spec
checkpoint.restore(f / "one", {"a": ad.ShapeDtypeStruct((8, 3), float, sharding=rows)}, strict=False)
checkpoint.restore(f / "one", strict=1)
checkpoint.restore(f / "one", verify=1)
checkpoint.restore(f / "none")
checkpoint.restore(3)
checkpoint.restore("")
checkpoint.restore("a\\0b")
checkpoint.metadata(f / "one")
checkpoint.metadata(f / "one").to_json()
checkpoint.metadata(f / "one").nbytes, checkpoint.metadata(f / "one").process_count, checkpoint.metadata(f / "one").path
checkpoint.metadata(f / "one").arrays["a"]
checkpoint.metadata(f / "values")
checkpoint.metadata(f)
checkpoint.save(f / "twice", {"a.b": 1, "a": {"b": 2}})
checkpoint.save(f / "twice", {f"{i}.{j}": 1 for i in range(3) for j in range(3)} | {str(i): [0, 1, 2] for i in range(3)})
checkpoint.save(f / "wrong", {"a": object()})
checkpoint.save(f / "wrong", {"a": np.array([None])})
checkpoint.save(f / "wrong", {"\\ud800": 1})
checkpoint.save(f / "leaf", x), checkpoint.restore(f / "leaf", x[:] * 0), checkpoint.metadata(f / "leaf").arrays.keys()
checkpoint.save(f / "none", None), checkpoint.restore(f / "none"), checkpoint.metadata(f / "none")
checkpoint.save(f / "tree", {"a": {"x": 1}, "b": (2, {"y": 3})}), list(checkpoint.restore(f / "tree"))
checkpoint.save(f / "plain.safetensors", x), (f / "plain.safetensors").is_dir()
checkpoint.restore(f / "model.safetensors")
checkpoint.metadata(f / "model.safetensors")
checkpoint.metadata(f / "model.safetensors").to_json()
checkpoint.restore(f / "model.safetensors", {"w": x}, strict=False)
checkpoint.restore(f / "odd.safetensors")
checkpoint.metadata(f / "odd.safetensors")
checkpoint.restore(f / "odd.safetensors", {"odd": x}, strict=False)
checkpoint.restore(f / "odd.safetensors", {"good": np.zeros(2, np.float32)}, strict=False)
checkpoint.restore(f / "parts")
checkpoint.restore(f / "index")
checkpoint.restore(f / "bad_index")
checkpoint.restore(f / "empty")
checkpoint.save(f / "wide", {"a": x, "e": np.arange(5), "step": 7})
checkpoint.convert(f / "wide", f / "two", num_files=3).files, checkpoint.metadata(f / "two").arrays["a"].parts
checkpoint.metadata(f / "two")
checkpoint.metadata(f / "two").process_count, sorted(p.name for p in (f / "two").iterdir())
checkpoint.restore(f / "two", verify=True)
checkpoint.convert(f / "one", f / "two")
checkpoint.convert(f / "one", f / "two", overwrite=True).files, checkpoint.metadata(f / "two").process_count
checkpoint.convert(f / "wide", f / "three", num_files=2, progress=seen.append).files, seen[-1]
checkpoint.convert(f / "one", f / "four", num_files=0)
checkpoint.convert(f / "one", f / "four", num_files=100_000)
checkpoint.convert(f / "one", f / "four", overwrite=1)
checkpoint.convert(f / "missing", f / "four")
checkpoint.convert(f / "one", f / "four", progress=lambda count: 1 / 0), (f / "four").exists()
(f / "four").exists()
checkpoint.convert(f / "model.safetensors", f / "five").files, checkpoint.restore(f / "five")["w"]
checkpoint.save(f / "file.txt", x)
checkpoint.save(f / "file.txt", x, overwrite=True)
checkpoint.save(f / "other", x, overwrite=True)
checkpoint.save(f / "one", {"a": x + 1}, overwrite=True), checkpoint.restore(f / "one")["a"][0]
checkpoint.Manager(f / "run"), checkpoint.Manager(f / "run", max_to_keep=2, keep_every=10).directory
checkpoint.Manager(f / "run", max_to_keep=0)
checkpoint.Manager(f / "run", keep_every=0)
checkpoint.Manager(f / "run", max_to_keep=1.5)
checkpoint.Manager(3)
[manager.save(step, {"w": np.array(step)}) for step in (0, 5, 10, 11, 12, 13)], manager.all_steps(), manager.latest_step()
manager.save(13, {"w": 1})
manager.save(13, {"w": 1}, overwrite=True), manager.restore(13), manager.restore(12, {"w": np.array(0)})
manager.restore(11)
manager.restore(-1)
manager.restore(10**18)
manager.restore(1.0)
manager.save(10**18 - 1, {"w": 1}), manager.all_steps()
manager.save_async(99, {"w": x}).wait(), manager.latest_step()
checkpoint.Manager(f / "nothing").all_steps(), checkpoint.Manager(f / "nothing").latest_step()
checkpoint.Manager(f / "nothing").restore(1)
future.wait(), future.wait(), future.done(), future.nbytes, future.bytes_written
future.wait(timeout_s=-1)
future.wait(timeout_s="1")
checkpoint.save_async(f / "async", {"w": x})
checkpoint.save_async(f / "fresh", {"w": object()})
""".strip().splitlines()


def text_of(value):
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(map(text_of, value))})"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text_of(each)}" for key, each in value.items())
    if isinstance(value, (ad.Array, np.ndarray, np.generic)):
        return f"{type(value).__name__} {value.dtype} {np.asarray(value).tolist()}"
    return f"{value}"


def outcome(text, known):
    try:
        return text_of(eval(text, known))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_recorded_checkpoint_calls_return_and_refuse_the_same(tmp_path):
    x = np.arange(16.0).reshape(8, 2)
    four = np.arange(4, dtype=np.float32)
    safetensors(tmp_path / "model.safetensors", {"w": ("F32", [2, 2], four.tobytes()), "n": ("I64", [], bytes(8))})
    odd = {"odd": ("F8_E8M0", [2], b"ab"), "good": ("F32", [2], four[:2].tobytes())}
    safetensors(tmp_path / "odd.safetensors", odd)
    for name in ("parts", "index", "bad_index", "empty", "other"):
        (tmp_path / name).mkdir()
    for name in ("parts", "index"):
        safetensors(tmp_path / name / "a.safetensors", {"a": ("F32", [4], four.tobytes())})
    safetensors(tmp_path / "parts" / "b.safetensors", {"a": ("F64", [2], four.tobytes())})
    safetensors(tmp_path / "index" / "b.safetensors", {"b": ("F32", [4], four.tobytes())})
    index = {"weight_map": {"a": "a.safetensors"}}
    (tmp_path / "index" / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "bad_index" / "model.safetensors.index.json").write_text('{"weights": 1}')
    (tmp_path / "file.txt").write_text("a text")
    (tmp_path / "other" / "notes.txt").write_text("a text")
    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",))
        known = {
            **globals(),
            "f": tmp_path,
            "x": x,
            "values": VALUES,
            "rows": NamedSharding(mesh, P("x")),
            "seen": [],
            "manager": checkpoint.Manager(tmp_path / "run", max_to_keep=2, keep_every=10),
            "future": checkpoint.save_async(tmp_path / "async", {"w": x, "step": 3}),
        }
        known["future"].wait()
        text = "\n".join(f"{call}\n    {outcome(call, known)}" for call in CALLS)
    text = text.replace(str(tmp_path), "FOLDER")
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    check_recorded("checkpoints", {"calls": text})


CHANGES = [
    {"format": "spam"},
    {"version": "1"},
    {"version": 2},
    {"process_count": 0},
    {"process_count": 1.0},
    {"arrays": {"w": {"shape": 3, "dtype": "int8"}}},
    {"arrays": {"w": {"shape": [-1], "dtype": "int8"}}},
    {"arrays": {"w": {"shape": [2**63], "dtype": "int8"}}},
    {"arrays": {"w": {"shape": [1] * 65, "dtype": "int8"}}},
    {"arrays": {"w": {"shape": [1.0], "dtype": "int8"}}},
    {"arrays": {"w": {"shape": [1], "dtype": 3}}},
    {"arrays": []},
    {"values": {"a": {"type": "int", "text": 3}}},
    {"values": {"a": {"type": "spam", "text": "3"}}},
    {"values": {"a": {"type": "bool", "text": "true"}}},
    {"values": {"a": {"type": "complex", "text": "1"}}},
]


def test_recorded_mistakes_of_manifests(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.zeros(1, np.int8)})
    path = tmp_path / "a" / "checkpoint.json"
    content = json.loads(path.read_text())
    found = {}
    for change in CHANGES:
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(ValueError, match=r"^checkpoint\.metadata: ") as caught:
            checkpoint.metadata(tmp_path / "a")
        found[repr(change)[:100]] = str(caught.value).replace(str(tmp_path), "FOLDER")
    check_recorded("manifests", found)
