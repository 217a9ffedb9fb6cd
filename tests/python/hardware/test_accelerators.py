# SPDX-License-Identifier: Apache-2.0
"""The catalogue of accelerators: every cell of the recorded table, and how chips are found."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from artifex_devices import HardwareType, _core
from artifex_devices.accelerators import Accelerator, accelerator, accelerators

FORMATS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "tensorfloat32", "fp8": "float8"}
FORMATS |= {"fp4": "float4", "int8": "int8", "int4": "int4"}
NOT_IN_THE_TABLE = {"TPU8i", "TPU8t"}  # from the text beside it, without links
LATER = {"NVIDIA H800 SXM"}  # rows that the table does not have
# The table has 141e9 bytes; data sheets mean GiB, as with the 80 GB of the H100.
OTHER_BYTES = {"NVIDIA H200 SXM": 141 * 2**30}
# The table is older than these rows of pci.ids.
NEWER_PCI_IDS = {
    "NVIDIA H200 SXM": ["10de:2335"],
    "NVIDIA B200 (HGX, 1000 W)": ["10de:2901"],
    "NVIDIA GB200 NVL72 (per GPU)": ["10de:2941"],
    "AMD MI300X": ["1002:74a1"],
}


@pytest.fixture(scope="module")
def recorded(shared_topologies):
    return json.loads((shared_topologies / "accelerators.json").read_text())["accelerators"]


def in_the_tables_words(row: dict) -> dict:
    """A row of the core's catalogue, as accelerators.json writes it."""
    names = {long: short for short, long in FORMATS.items()}
    links = row["links"]
    facts = {
        "name": row["name"],
        "hardware_type": row["hardware_type"] or None,
        "platform": row["platform"],
        "device_kinds": list(row["device_kinds"]),
        "pci": list(row["pci_ids"]),
        "flops": {names[name]: value for name, value in row["peak_flops"].items()},
        "hbm_bytes": row["memory_bytes"],
        "hbm_bw": row["memory_bandwidth"],
        "chips_per_host": row["chips_per_host"],
        "pcie_one_way": row["pcie_one_way"],
        "src": list(row["sources"]),
    }
    link = {"kind": links["kind"], "links": links["links"], "one_way": links["one_way"]}
    if row["platform"] == "tpu":
        facts |= {
            "cores_per_chip": row["cores_per_chip"],
            "devices_per_chip": row["devices_per_chip"],
            "pod": list(links["pod"]) if links["pod"] else links["pod_note"],
            "host_shape": list(row["host_shape"]) if row["host_shape"] else None,
            "wrap": links["wrap"] + (f" ({links['wrap_note']})" if links["wrap_note"] else ""),
            "dcn_per_chip": row["network_per_chip"],
        }
        link |= {"dims": links["torus_dims"], "nominal_one_way": links["nominal_one_way"]}
    else:
        facts |= {
            "domain": links["domain_note"] or links["domain_chips"],
            "nic_per_gpu": row["network_per_chip"],
        }
        if links["switches"] is not None:
            facts["switches"] = links["switches"]
        link["egress_one_way"] = links["links"] * links["one_way"]
    return {**facts, "link": link}


def test_every_cell_is_that_of_the_recorded_table(recorded):
    rows = {row["name"]: row for row in _core.accelerator_catalogue()}
    ours = {name: in_the_tables_words(row) for name, row in rows.items() if row["links"] and name not in LATER}
    assert set(rows) - set(ours) == NOT_IN_THE_TABLE | LATER
    assert list(ours) == [row["name"] for row in recorded]
    for row in recorded:
        cells = {key: value for key, value in row.items() if key not in ("critical_batch_bf16", "nic_note")}
        cells["hbm_bytes"] = OTHER_BYTES.get(row["name"], cells["hbm_bytes"])
        cells["pci"] = NEWER_PCI_IDS.get(row["name"], cells["pci"])
        mine = ours[row["name"]]
        if cells["platform"] == "gpu" and "switches" not in cells:
            mine.pop("switches", None)
        assert mine == cells


def test_the_h800_is_an_h100_with_slower_links():
    # Zhao et al. 2025, arXiv:2505.09343, section 4.1: 400 instead of 900 GB/s both ways, eight 400G NICs in a node.
    h800, h100 = accelerator("NVIDIA H800"), accelerator("h100")
    assert (h800.peak_flops, h800.memory_bytes) == (h100.peak_flops, h100.memory_bytes)
    assert h800.memory_bandwidth == h100.memory_bandwidth
    assert h800.links.links * h800.links.one_way == 200e9
    assert h800.network_per_chip == 50e9


def test_critical_batches_of_the_recorded_table_follow_from_its_numbers(recorded):
    for row in recorded:
        chip = accelerator(row["name"])
        peak = chip.peak_flops.get("bfloat16", chip.peak_flops.get("float16"))
        assert peak is not None
        assert round(peak / chip.memory_bandwidth, 1) == row["critical_batch_bf16"]


def test_unchecked_facts_are_noted(recorded):
    for row in recorded:
        if "unverified" in row.get("nic_note", ""):
            assert "network" in accelerator(row["name"]).note
            assert "not checked" in accelerator(row["name"]).note


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (HardwareType.H100, "NVIDIA H100 SXM"),
        (HardwareType.A100, "NVIDIA A100 SXM 80GB"),
        (HardwareType.V100, "NVIDIA V100 SXM2 16GB"),
        ("tpu_v5p", "TPU v5p"),
        ("H100", "NVIDIA H100 SXM"),
        ("tpu v5 lite", "TPU v5e"),
        ("amd mi300x", "AMD MI300X"),
        ("mi300x", "AMD MI300X"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100 SXM 40GB"),
        ("10de:2330", "NVIDIA H100 SXM"),
        ("1AE0:0063", "TPU v5e"),
    ],
)
def test_found_by_type_name_kind_or_pci_id(asked, name):
    assert accelerator(asked).name == name


@pytest.mark.parametrize(
    "asked", ["NVIDIA H100 PCIe", "Tesla T4", "RTX A1000", "10de:1eb8", "1ae0:0042", "", "TPU v4 lite", "\ud800"]
)
def test_a_chip_that_is_not_here_is_an_error_that_lists_those_that_are(asked):
    with pytest.raises(ValueError, match=r"^accelerator: .* is not in the catalogue; expected one of TPU v4, "):
        accelerator(asked)


def test_errors_for_unknown_hardware_have_a_fix():
    with pytest.raises(ValueError, match=r"measure it, with roofline\(device\)"):
        accelerator(HardwareType.CPU)
    with pytest.raises(ValueError, match="pass the name of a chip"):
        accelerator(HardwareType.UNKNOWN)
    with pytest.raises(TypeError, match=r"^accelerator: hardware is 100 \(int\); expected a HardwareType or a str"):
        accelerator(100)  # type: ignore[arg-type]


def test_rows_are_values():
    h100 = accelerator("h100")
    assert isinstance(h100, Accelerator)
    assert h100.hardware_type is HardwareType.H100
    assert h100.links is not None
    assert h100.links.egress_one_way == 4.5e11
    assert h100.sources[0].title == '"How to Scale Your Model", chapter 12'
    assert "int4" not in h100.peak_flops
    with pytest.raises(TypeError):
        h100.peak_flops["int4"] = 0.0  # type: ignore[index]
    assert accelerators()[0].name == "TPU v4"
    assert pickle.loads(pickle.dumps(h100)) is copy.deepcopy(h100) is h100
    assert accelerator("TPU8i").links is None
    ironwood = accelerator("TPU7x").links
    assert ironwood is not None
    assert (ironwood.egress_one_way, ironwood.nominal_one_way) == (None, 1e11)
    assert ironwood.note == "9216 chips, 3-D torus; assumed, as v4/v5p"


def test_every_types_own_row_is_of_that_type():
    for kind in HardwareType:
        if kind not in (HardwareType.CPU, HardwareType.UNKNOWN):
            assert accelerator(kind).hardware_type is kind
