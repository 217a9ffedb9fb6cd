# SPDX-License-Identifier: Apache-2.0
"""artifex_devices checkpoint."""

import json
import re

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.command_line import main

SHARD = "shard-00001-model-00001-of-00001.safetensors"
RULES = """
[[rule]]
kind = "transpose"
pattern = "w"
axes = [1, 0]

[[rule]]
kind = "rename"
source = "w"
target = "v"
"""
LLAMA = {
    "embed_tokens": (32, 8), "norm": (8,), "layers.0.input_layernorm": (8,), "layers.0.post_attention_layernorm": (8,),
    "layers.0.mlp.gate_proj": (16, 8), "layers.0.mlp.up_proj": (16, 8), "layers.0.mlp.down_proj": (8, 16),
    "layers.0.self_attn.q_proj": (8, 8), "layers.0.self_attn.k_proj": (4, 8), "layers.0.self_attn.v_proj": (4, 8),
    "layers.0.self_attn.o_proj": (8, 8),
}  # fmt: skip


@pytest.fixture
def saved(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": np.arange(16, dtype=np.float32).reshape(8, 2), "step": 10})
    return tmp_path / "c"


def run(*words):
    return main(["checkpoint", *map(str, words)])


def test_inspect_is_a_table(saved, capsys):
    assert run("inspect", saved) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{saved}: artifex",
        "name  dtype    shape   bytes",
        "w     float32  (8, 2)  64 bytes",
        "step  int      10",
        "1 array, 64 bytes",
        "It is artifex: checkpoint.json is of this package, saved by 1 process.",
        "It is not dcp in .distcp files: it has none; not torch: it has no .bin, .pt or .pth file of a model; not npz: "
        "it is not one .npz or .npy file; not orbax: it has no _METADATA, _sharding or manifest.ocdbt.",
    ]


def test_inspect_as_json(saved, capsys):
    assert run("inspect", saved, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arrays"] == {"w": {"shape": [8, 2], "dtype": "float32", "type": "F32", "nbytes": 64}}
    assert found["values"] == {"step": {"type": "int", "value": "10"}}


def test_safetensors_come_before_files_of_torch_beside_them(saved, tmp_path, capsys):
    assert run("convert", saved, tmp_path / "hub", "--format", "safetensors", "--allow-extra", "step") == 0
    (tmp_path / "hub" / "pytorch_model.bin").write_bytes(b"")
    capsys.readouterr()
    assert run("inspect", tmp_path / "hub") == 0
    assert "It also has torch: the folder has pytorch_model.bin." in capsys.readouterr().out


def test_a_path_without_a_checkpoint_is_an_invalid_argument(tmp_path, capsys):
    for what in (["inspect"], ["verify"], ["convert"], ["compare"]):
        assert run(*what, tmp_path / "none", *([tmp_path / "b"] if what[0] in ("convert", "compare") else [])) == 2
        assert (
            "does not exist; expected a checkpoint or a safetensors file; correct the path" in capsys.readouterr().err
        )


def test_convert_changes_the_number_of_files(saved, tmp_path, capsys):
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    assert run("convert", saved, parts, "--files", 3) == 0
    assert re.fullmatch(rf"{parts}: artifex, 64 bytes in 3 files; measured .*s, .*/s\n", capsys.readouterr().out)
    found = checkpoint.metadata(parts)
    assert [part.shape for part in found.arrays["w"].parts] == [(3, 2), (3, 2), (2, 2)]
    assert found.process_count == 3
    assert run("convert", parts, whole) == 0
    assert (whole / SHARD).read_bytes() == (saved / SHARD).read_bytes()
    assert checkpoint.restore(whole, verify=True)["step"] == 10
    assert run("convert", parts, whole) == 2
    assert "pass overwrite=True" in capsys.readouterr().err
    assert run("convert", parts, whole, "--overwrite") == 0


def test_convert_applies_rules_and_writes_other_formats(saved, tmp_path, capsys):
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    words = ["convert", saved, tmp_path / "out.npz", "--format", "npz", "--dtype", "float16", "--rules", rules]
    assert run(*words) == 2
    assert "the format 'npz' cannot store the values 'step'" in capsys.readouterr().err
    words += ["--allow-extra", "step"]
    assert run(*words, "--dry-run") == 0
    assert "nothing is written" in capsys.readouterr().out
    assert not (tmp_path / "out.npz").exists()
    assert run(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["nbytes"], found["path"]) == ("npz", 32, str(tmp_path / "out.npz"))
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["v"].tolist() == np.arange(16).reshape(8, 2).T.tolist()
        assert arrays["v"].dtype == np.float16


def test_a_preset_is_applied_in_both_directions(tmp_path, capsys):
    random = np.random.default_rng(0)
    weights = {f"model.{name}.weight": random.random(shape, np.float32) for name, shape in LLAMA.items()}
    checkpoint.save(tmp_path / "a", weights)
    preset = ["--preset", "hf-to-maxtext-llama:heads=2,kv_heads=1,head_dim=4,tied=true,prefix="]
    assert run("convert", tmp_path / "a", tmp_path / "b", *preset) == 0
    assert "decoder.layers.mlp.wi_0.kernel" in checkpoint.open(tmp_path / "b").names()
    assert run("convert", tmp_path / "b", tmp_path / "c", *preset, "--inverse") == 0
    assert run("compare", tmp_path / "a", tmp_path / "c") == 0
    assert run("compare", tmp_path / "a", tmp_path / "b", *preset) == 0
    assert run("convert", tmp_path / "a", tmp_path / "d", "--preset", "hf-to-maxtext-llama:heads=x") == 2
    assert "--preset: " in capsys.readouterr().err


def test_compare_ends_with_1_if_something_differs(saved, tmp_path, capsys):
    w = np.arange(16, dtype=np.float32).reshape(8, 2)
    checkpoint.save(tmp_path / "b", {"v": w.T, "step": 10})
    (tmp_path / "rules.toml").write_text(RULES)
    assert run("compare", saved, tmp_path / "b", "--rules", tmp_path / "rules.toml") == 0
    assert capsys.readouterr().out.endswith("1 array compared, 64 bytes: equal\n")
    assert run("compare", tmp_path / "b", saved, "--rules", tmp_path / "rules.toml", "--inverse") == 0
    assert run("compare", saved, tmp_path / "b") == 1
    assert "only in a: float32 (8, 2)" in capsys.readouterr().out.splitlines()[-2]
    assert run("compare", saved, tmp_path / "b", "--json") == 1
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["differences"]] == ["v", "w"]


def test_verify_finds_a_changed_byte(saved, capsys):
    assert run("verify", saved) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["All elements of 1 array were read.", "CRC-32C checksums of all elements were compared."]
    content = bytearray((saved / SHARD).read_bytes())
    content[-3] ^= 1
    (saved / SHARD).write_bytes(content)
    assert run("verify", saved) == 2
    assert "Reader.verify: " in capsys.readouterr().err
    assert run("inspect", saved) == 0


def test_verify_names_arrays_of_types_without_a_dtype(tmp_path, capsys):
    header = json.dumps({"q": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    assert run("verify", tmp_path / "a.safetensors") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "All elements of 0 arrays were read.",
        "The format has no checksums of its elements: changed elements cannot be noticed.",
        "Not read, because their types have no dtype here: 'q'.",
    ]


def test_an_interrupted_conversion_names_its_folder(saved, tmp_path, capsys, monkeypatch):
    def fail(*args, dry_run=False, **options):
        if dry_run:
            return convert(*args, dry_run=True, **options)
        error = KeyboardInterrupt()
        error.add_note("finished files are in 'x.partial'")
        raise error

    convert = checkpoint.convert
    monkeypatch.setattr(checkpoint, "convert", fail)
    assert run("convert", saved, tmp_path / "b") == 130
    assert capsys.readouterr().err == "artifex_devices checkpoint: finished files are in 'x.partial'\n"
