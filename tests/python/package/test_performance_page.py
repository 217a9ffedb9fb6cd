# SPDX-License-Identifier: Apache-2.0
"""The performance pages and their pictures are the output of bench/performance_page.py for the committed numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "bench" / "performance_page.py"
SVG = "{http://www.w3.org/2000/svg}"


def run(tmp_path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)


def test_the_page_shows_the_committed_numbers(tmp_path: Path) -> None:
    done = run(tmp_path, "--check")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0), "python bench/performance_page.py, and commit"


def test_a_page_edited_by_hand_is_reported(tmp_path: Path) -> None:
    assert run(tmp_path, "--docs", tmp_path).returncode == 0
    page = tmp_path / "performance_rows.md"
    page.write_text(page.read_text(encoding="utf-8").replace("GB/s", "TB/s"), encoding="utf-8")
    (tmp_path / "images" / "performance" / "stale.svg").write_text("<svg/>")
    done = run(tmp_path, "--docs", tmp_path, "--check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "performance_page: docs/images/performance/stale.svg differs from the data",
        "performance_page: docs/performance_rows.md differs from the data",
    ]
    assert run(tmp_path, "--docs", tmp_path).returncode == 0
    assert run(tmp_path, "--docs", tmp_path, "--check").stdout == ""


def test_the_readme_shows_the_medians_of_the_data() -> None:
    rows = {row["name"]: row for row in json.loads((ROOT / "bench" / "table.json").read_text())["rows"]}
    runs = rows["device_put 256 MiB, 8 shards, dim 0"]["peers"]["ours"]
    medians = [run["median"] for run in runs if run]
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- table of bench/performance_page.py -->")[2]
    line = next(line for line in table.splitlines() if line.startswith("| `device_put` of 256 MiB to 8 devices |"))
    assert line.split(" | ")[1] == f"{sum(medians) / len(medians) * 1e3:.3g} ms"


def test_each_picture_is_shown_once_and_each_curve_has_limits() -> None:
    text = (ROOT / "docs" / "performance_rows.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "images" / "performance").glob("*.svg"):
        assert text.count(f"](images/performance/{path.name})") == 1, path.name
    assert text.count("\nLimits:\n") == text.count("](images/performance/")
    assert "- all: unknown" not in text


def test_the_first_page_has_three_charts_and_twenty_rows_with_one_number_in_a_cell() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert text.count("](images/performance/") == 3
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    assert [len(row) for row in rows] == [5] * 22  # with the head and its line
    for _, *numbers, limit in rows[2:]:
        assert all(re.fullmatch(r"-|[\d.,]+( (ns|us|ms|s|MB|bytes))?", number) for number in numbers), numbers
        assert len(limit.removesuffix(" |")) > 3


def test_a_picture_has_a_line_for_each_library_and_the_numbers_of_the_data() -> None:
    curves = json.loads((ROOT / "bench" / "curves.json").read_text())
    curve = next(each for each in curves["curves"] if each["name"] == "device_put, one device")
    name = "by_bytes_device_put_one_device.svg"
    root = ElementTree.fromstring((ROOT / "docs" / "images" / "performance" / name).read_text(encoding="utf-8"))
    lines = [line.get("points", "").split() for line in root.iter(f"{SVG}polyline")]
    assert [len(line) for line in lines[:-1]] == [len(curve["peers"][peer]) for peer in ("ours", "jax", "numpy")]
    assert len(lines[-1]) == len(curve["peers"]["ours"])  # the copy
    # The slower of two points of one place is higher in the picture, where y grows downwards.
    last = [float(line[-1].split(",")[1]) for line in lines[:3]]
    medians = [curve["peers"][peer][-1]["median"] for peer in ("ours", "jax", "numpy")]
    assert sorted(range(3), key=last.__getitem__) == sorted(range(3), key=lambda i: -medians[i])
