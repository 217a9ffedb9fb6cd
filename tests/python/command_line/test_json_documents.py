# SPDX-License-Identifier: Apache-2.0
"""docs/formats/command_line.md lists the keys that each command writes with --json, and no others."""

import json
import re
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.command_line import main
from artifex_devices.distributed.flight_records import FlightRecords

PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "command_line.md").read_text(encoding="utf-8")
V5E = ("--cluster", "tpu v5e 4x4")
STEP = ("llama-2-7b", "--batch", "64", "--sequence", "4096", "--cluster", "tpu v5p 4x4x4")
RULES = ("--mesh", "data=16,model=4", "--rules", "embed=data,batch=data,kv_heads=model,mlp=model")
COMMANDS = [
    ("info", "## artifex_devices/info/1", ("info",)),
    ("topology", "## artifex_devices/topology/1", ("topology",)),
    ("doctor", "## artifex_devices/doctor/1", ("doctor",)),
    ("batch", "`batch recommend`:", ("batch", "recommend", "--hardware", "h100")),
    ("batch", "`batch validate`:", ("batch", "validate", "64", "--hardware", "h100")),
    ("plan", "`plan mesh`:", ("plan", "mesh", *V5E, "--mesh", "data=4,model=4")),
    ("plan", "`plan reshard`:", ("plan", "reshard", "bfloat16[64,64]", "x", "_,x", *V5E, "--mesh", "x=16")),
    ("plan", "`plan collective`:", ("plan", "collective", "all_gather", "1GB", "x", *V5E, "--mesh", "x=16")),
    ("plan", "`plan step`:", ("plan", "step", *STEP, *RULES)),
    ("plan", "`plan MODEL`, a search:", ("plan", *STEP, "--quiet")),
    ("plan", "`plan MODEL`, one configuration:", ("plan", *STEP, "--tensor", "1")),
    ("plan", "`plan models`:", ("plan", "models")),
    ("plan", "`plan clusters`:", ("plan", "clusters")),
    ("checkpoint", "`checkpoint inspect`:", ("checkpoint", "inspect", "PATH")),
    ("checkpoint", "`checkpoint convert`:", ("checkpoint", "convert", "PATH", "PATH2")),
    ("checkpoint", "`checkpoint compare`:", ("checkpoint", "compare", "PATH", "PATH")),
    ("checkpoint", "`checkpoint verify`:", ("checkpoint", "verify", "PATH")),
    ("data", "## artifex_devices/data/1", ("data", "inspect", "PATH")),
    ("audit", "`audit program`:", ("audit", "program", "PATH")),
    ("audit", "`audit shardings`:", ("audit", "shardings", "PATH")),
    ("audit", "`audit diff`:", ("audit", "diff", "PATH", "PATH")),
    ("flight-record", "## artifex_devices/flight-record/1", ("flight-record", "PATH")),
    ("timeline", "## artifex_devices/timeline/1", ("timeline", "PATH")),
]


@pytest.mark.parametrize(("name", "title", "words"), COMMANDS, ids=[" ".join(words[:2]) for *_, words in COMMANDS])
def test_the_page_lists_the_keys(name, title, words, tmp_path, capsys):
    if name == "checkpoint":
        checkpoint.save(tmp_path / "saved", {"w": ad.device_put(np.arange(4.0))})
    if name == "data":
        (tmp_path / "saved").mkdir()
        np.save(tmp_path / "saved" / "x.npy", np.arange(4.0))
    if name == "audit":
        text = "HloModule step, num_partitions=2\n\nENTRY %main () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}\n"
        shardings = json.dumps({"w": {"partition_spec": [], "shape": [8]}})
        (tmp_path / "saved").write_text(text if words[1] == "program" else shardings)
    if name in ("flight-record", "timeline"):
        (tmp_path / "saved").mkdir()
        FlightRecords(str(tmp_path / "saved"), 0, 1, "host")
    paths = {"PATH": str(tmp_path / "saved"), "PATH2": str(tmp_path / "copy")}
    main([paths.get(word, word) for word in (*words, "--json")])
    written = json.loads(capsys.readouterr().out)
    assert written.pop("format") == f"artifex_devices/{name}/1"
    table = PAGE.partition(f"\n{title}\n")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    listed = [key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(written)


@pytest.mark.parametrize(("command", "codes"), [("mesh", ["S2", "S5"]), ("reshard", ["S2", "S5", "S8"])])
def test_each_code_of_a_source_has_its_title(command, codes, capsys):
    (words,) = (words for *_, words in COMMANDS if words[:2] == ("plan", command))
    main([*words, "--json"])
    written = json.loads(capsys.readouterr().out)
    assert sorted(written["sources"]) == codes
    assert written["sources"]["S2"] == 'Google Cloud, "TPU v5e", https://docs.cloud.google.com/tpu/docs/v5e'
