# SPDX-License-Identifier: Apache-2.0
"""`plan models` and `plan clusters`: the names that plans know."""

from __future__ import annotations

import argparse
from typing import Any

from artifex_devices._base.text import bytes_text, rate_text, table_lines
from artifex_devices.command_line import console
from artifex_devices.command_line.parser import add_parser
from artifex_devices.command_line.plan.actions import MODEL_FORMS
from artifex_devices.command_line.plan.cluster_argument import CLUSTER_FORMS

_JSON = "print everything as JSON"
_FORMATS = ("bfloat16", "float16")  # the first one that a chip has is in the table


def add_lists(actions: Any) -> None:
    """Adds the subcommands."""
    for name, summary, forms, run_action in (
        ("models", "list the models that have a name", MODEL_FORMS, _models),
        ("clusters", "list the chips that a cluster may have", CLUSTER_FORMS, _clusters),
    ):
        description = f"{summary[0].upper()}{summary[1:]}."
        parser = add_parser(actions, name, summary, description, forms, run_action=run_action)
        parser.add_argument("--json", action="store_true", help=_JSON)
        parser.set_defaults(cluster="", measured=False)


def _models(arguments: argparse.Namespace) -> int:
    from artifex_devices.models import HUB_IDS, SHAPES

    ids: dict[str, list[str]] = {name: [] for name in SHAPES}
    for hub_id, name in HUB_IDS.items():
        ids[name].append(hub_id)
    if arguments.json:
        models = []
        for name, shape in SHAPES.items():
            counts = {"parameters": shape.parameters.total, "active_parameters": shape.parameters.active}
            models.append({"name": name, "ids": ids[name], **counts, "source": shape.source})
        console.write_json("plan", {"kind": "models", "models": models})
        return console.OK
    rows = [("model", "parameters", "of a token", "id on the Hugging Face Hub")]
    for name, shape in SHAPES.items():
        rows.append((name, f"{shape.parameters.total:,}", f"{shape.parameters.active:,}", ids[name][0]))
    console.write_lines(table_lines(rows, right=(1, 2), width=console.terminal_width()))
    return console.OK


def _clusters(arguments: argparse.Namespace) -> int:
    from artifex_devices import cluster
    from artifex_devices._hardware.cluster_text import GPUS, TPUS
    from artifex_devices.accelerators import source_notes

    texts = [f"tpu {name} {'4x4' if name in ('v5e', 'v6e') else '2x2x4'}" for name in TPUS]
    texts += [f"{cluster.gpus(name).device_count} x {name}" for name in GPUS]
    by_name = {chip["chip"]: chip for chip in map(_chip, reversed(texts))}  # the first of several texts for a chip
    chips = list(reversed(by_name.values()))
    codes = sorted({code for chip in chips for code in chip["sources"]}, key=lambda code: int(code[1:]))
    sources = source_notes(f"[{' '.join(codes)}]")
    if arguments.json:
        console.write_json("plan", {"kind": "clusters", "clusters": chips, "sources": sources})
        return console.OK
    rows = [("cluster", "chip", "memory", "FLOP/s", "memory bandwidth", "sources")]
    for chip in chips:
        name = next((each for each in _FORMATS if each in chip["peak_flops"]), "")
        flops = f"{rate_text(chip['peak_flops'][name], 'FLOP/s')} {name}" if name else "not known"
        memory, rate = bytes_text(chip["memory_bytes"]), rate_text(chip["memory_bandwidth"], "B/s")
        rows.append((chip["text"], chip["chip"], memory, flops, rate, " ".join(chip["sources"])))
    console.write_lines(table_lines(rows, width=console.terminal_width()))
    console.write_lines(f"[{code}] {text}" for code, text in sources.items())
    return console.OK


def _chip(text: str) -> dict[str, Any]:
    """Returns the figures of a chip, from a cluster that has it."""
    from artifex_devices import cluster

    parts = cluster.from_text(text).parts
    figures = [parts["memory_bytes"], parts["memory_bandwidth"], *parts["peak_flops"].values()]
    return {
        "text": text,
        "chip": parts["chip_name"],
        "memory_bytes": int(parts["memory_bytes"][0]),
        "memory_bandwidth": parts["memory_bandwidth"][0],
        "peak_flops": {name: figure[0] for name, figure in parts["peak_flops"].items()},
        "sources": sorted({code for _, codes in figures for code in codes.split()}),
    }
