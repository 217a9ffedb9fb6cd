# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/how_to/calibrate.md are what bench/calibration.py makes of the committed numbers."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "bench" / "calibration.py"


def load():
    spec = importlib.util.spec_from_file_location("bench_calibration", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(name, kind, mib, devices, error):
    return {
        "name": name, "kind": kind, "nbytes": mib << 20, "devices": devices, "predicted": 2e-3 * (1 + error),
        "measured": 2e-3, "median": 2.1e-3, "spread": 1e-4, "error": error,
    }  # fmt: skip


def page_numbers(*rows):
    conditions = {
        "cpu_model": "a processor", "workers": 2, "memory_nodes": 1, "cache_bytes": 32 << 20,
        "date": "2026-11-22T14:00:00+00:00", "seconds": 8.0,
    }  # fmt: skip
    return {
        "date": "2026-11-22T14:01:00+00:00", "rows": list(rows), "median_error_large": 0.123, "large_bytes": 64 << 20,
        "notes": ["left out: arrays of 1.0 GiB"], "calibration": {"conditions": conditions},
    }  # fmt: skip


def test_the_page_matches_the_numbers():
    done = subprocess.run([sys.executable, str(TOOL), "--page", "--check"], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0), "python bench/calibration.py --page, and commit"


def test_the_medians_of_the_record_are_those_of_its_rows():
    record = json.loads((ROOT / "bench" / "calibration.json").read_text())
    errors = sorted(abs(row["error"]) for row in record["rows"] if row["nbytes"] >= record["large_bytes"])
    middle = (errors[(len(errors) - 1) // 2] + errors[len(errors) // 2]) / 2
    assert record["median_error_large"] == middle
    for each in record["rows"]:
        assert each["error"] == each["predicted"] / each["measured"] - 1


def test_tables_have_a_line_for_each_thing_and_medians_by_size():
    text = load().tables(
        page_numbers(
            row("1024 x 1024, rows to columns", "reshard", 4, 4, 0.5),
            row("4096 x 4096, rows to columns", "reshard", 64, 4, -0.1),
            row("4096 x 4096, rows to columns", "reshard", 64, 8, 0.3),
            row("psum, threads", "collective", 64, 4, 0.05),
        )
    )
    assert text.startswith("a processor, 2 workers, 1 memory node, last-level caches of 32 MiB; calibrated 2026-11-22T")
    assert "Median error from 64 MiB on: **12.3 %**." in text
    assert "left out: arrays of 1.0 GiB." in text
    assert "| 4 | 50 % | - |" in text
    assert "| 64 | 20 % | 5 % |" in text
    assert "| **64 and more** | **20 %** | **5 %** |" in text
    assert "| 4096 x 4096, rows to columns | 64 | 1.8 ms, 2 ms, -10 % | 2.6 ms, 2 ms, +30 % |" in text
    assert "| psum | 64 | 2.1 ms, 2 ms, +5 % | - |" in text
    assert "1024 x 1024" not in text


def test_only_the_tables_of_the_page_are_replaced():
    tool = load()
    numbers = page_numbers(row("psum, threads", "collective", 64, 4, 0.05))
    page = tool.page(f"before\n{tool.BEGIN}\nold\n{tool.END}\nafter\n", numbers)
    assert page == f"before\n{tool.BEGIN}\n\n{tool.tables(numbers)}\n\n{tool.END}\nafter\n"
    assert tool.page(page, numbers) == page
