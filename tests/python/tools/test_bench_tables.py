# SPDX-License-Identifier: Apache-2.0
"""The bench's tables of several runs, its verdicts on what was aimed at, and its pictures."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"
NAMES = ("bounds", "json_rows", "log_picture", "measure", "performance_page", "performance_rows", "report", "targets")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Modules of bench/, which are not package."""
    monkeypatch.syspath_prepend(str(BENCH))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    for name in NAMES:
        sys.modules.pop(name, None)


def test_json_has_a_row_a_line(bench: SimpleNamespace) -> None:
    record = {"unit": "s", "notes": [], "rows": [{"x": 1, "y": [2, 3]}, {"x": 4}], "by": {"a": {"x": 5}}, "few": [1, 2]}
    text = bench.json_rows.json_rows(record)
    assert json.loads(text) == record
    assert text.splitlines()[3:7] == ['"rows": [', '{"x": 1, "y": [2, 3]},', '{"x": 4}', "],"]


@pytest.mark.parametrize("name", ["calibration", "compiled_memory", "curves", "gpu", "published_runs", "table"])
def test_committed_records_have_a_row_a_line(bench: SimpleNamespace, name: str) -> None:
    text = (BENCH / f"{name}.json").read_text(encoding="utf-8")
    assert bench.json_rows.json_rows(json.loads(text)) == text


def stats(median: float) -> dict[str, Any]:
    return {
        "median": median,
        "first_quartile": 0.9 * median,
        "third_quartile": 1.1 * median,
        "spread": 0.2 * median,
        "least": median,
        "repeats": 9,
        "notes": "",
        "samples": [median] * 9,
    }


def run_of(**rows: dict[str, float]) -> dict[str, Any]:
    """What run.py --json writes, of rows by name: the median of each peer."""
    return {
        "machine": {
            "date": "2026-01-02T03:04:05+00:00",
            "cpu": "a CPU",
            "cores": 2,
            "memory_bytes": 8 << 30,
            "kernel": "6.1",
            "python": "3.11.7",
            "load_before": 0.25,
        },
        "copy_limits_bytes_per_s": {"one": 1e10, "all": 2e10},
        "versions": {"ours": "0.1.0", "jax": "0.10.2"},
        "peers": ["ours", "jax"],
        "rows": [
            {
                "name": name,
                "family": "put",
                "bytes": 10**9 if name == "big" else 0,
                "unit": "s",
                "peers": {peer: stats(median) for peer, median in peers.items()},
            }
            for name, peers in rows.items()
        ],
        "problems": [],
        "quick": False,
    }


def test_runs_are_shown_side_by_side(bench: SimpleNamespace) -> None:
    runs = [run_of(big={"ours": 0.1, "jax": 0.5}, once={"ours": 2e-6}), run_of(big={"ours": 0.2, "jax": 24.0})]
    table = bench.report.merged(runs)
    assert all("samples" not in run for row in table["rows"] for run in row["peers"]["ours"] if run)
    assert bench.report.header_of(table) == ["work", "ours", "jax", "jax / ours", "of copy limit"]
    assert bench.report.lines_of_runs(table) == [
        [
            "big",
            "100 ms ±10% (10.0 GB/s), 200 ms ±10% (5.0 GB/s)",
            "500 ms ±10% (2.0 GB/s), 24 s ±10% (0.0 GB/s)",
            "5x, 120x",
            "50%, 25%",
        ],
        ["once", "2 us ±10%", "-", "-", "-"],
    ]


def test_rows_of_input_are_beside_grain_and_torch(bench: SimpleNamespace) -> None:
    runs = [run_of(big={"ours": 0.1, "jax": 0.5}), run_of(batches={"ours": 1e-5, "grain": 1e-4, "torch": 3e-5})]
    runs[1]["rows"][0]["family"] = "input"
    main, others = bench.performance_rows._by_peers(bench.report.merged(runs))
    (batches,) = others.values()
    assert [row["name"] for row in main["rows"]] == ["big"]
    assert bench.report.header_of(batches)[:6] == ["work", "ours", "grain", "grain / ours", "torch", "torch / ours"]
    ((name, _, _, grain, _, torch, _),) = bench.report.lines_of_runs(batches)
    assert (name, grain, torch) == ("batches", "10x", "3x")


def test_runs_on_a_busy_machine_are_named(bench: SimpleNamespace) -> None:
    runs = [run_of(big={"ours": 0.1, "jax": 0.5}) for _ in range(2)]
    sentence = "Compare only ratios of rows from the run at a load of 13."
    assert sentence not in bench.performance_rows.all_results(bench.report.merged(runs))
    runs[1]["machine"]["load_before"] = 13.3
    text = bench.performance_rows.all_results(bench.report.merged(runs))
    assert sentence in " ".join(text.split())


@pytest.mark.parametrize(
    ("ours", "outcome"), [((1e-6, 1.9e-6), "met"), ((1e-6, 2e-6), "in some runs"), ((2e-6, 3e-6), "not met")]
)
def test_an_aim_is_met_when_each_run_meets_it(bench: SimpleNamespace, ours: Any, outcome: str) -> None:
    table = bench.report.merged([run_of(small={"ours": median, "jax": 1.0}) for median in ours])
    target = bench.targets.Target("small", "< 2 us", most=2e-6)
    assert bench.performance_rows.judged(target, table)[1] == outcome
    assert bench.performance_rows.judged(bench.targets.Target("other", "", most=1), table)[1] == "not measured"


def test_an_aim_of_bytes_per_second_and_one_beside_another_row(bench: SimpleNamespace) -> None:
    table = bench.report.merged([run_of(big={"ours": 0.05, "jax": 0.5}, peer={"jax": 0.049})])
    judged = bench.performance_rows.judged
    assert judged(bench.targets.Target("big", "> 19 GB/s", least_rate=19e9), table) == (
        ["> 19 GB/s", "20.0 GB/s", "2.0 GB/s"],
        "met",
    )
    assert judged(bench.targets.Target("big", "> 20 GB/s", least_rate=20e9), table)[1] == "not met"
    beside = {"beside": ("jax", "peer"), "aim": "JAX's"}
    assert judged(bench.targets.Target("big", **beside), table)[1] == "not met"
    assert judged(bench.targets.Target("big", **beside, factor=1.03), table)[1] == "met"
    absent = bench.targets.Target("big", "NumPy's", beside=("numpy", "peer"))
    assert judged(absent, table)[1] == "not met"


def test_each_aim_has_a_row_of_its_own(bench: SimpleNamespace) -> None:
    rows = [target.row for target in bench.targets.TARGETS]
    assert len(set(rows)) == len(rows)


def test_points_of_a_picture_lie_by_their_logarithms(bench: SimpleNamespace) -> None:
    curve = bench.log_picture.Curve("a < b", [(x, y, y, y) for x, y in ((1, 1e-6), (10, 1e-5), (100, 1e-4))])
    root = ElementTree.fromstring(bench.log_picture.log_picture("T & C", "x", [(1, "1"), (100, "100")], [curve]))
    (line,) = root.iter(f"{SVG}polyline")
    (x0, y0), (x1, y1), (x2, y2) = (tuple(map(float, point.split(","))) for point in line.get("points", "").split())
    assert (x1 - x0, y0 - y1) == pytest.approx((x2 - x1, y1 - y2), abs=0.11)
    assert x2 > x0
    assert y2 < y0
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["T & C", "1 µs", "10 µs", "100 µs", "1", "100", "x", "a < b"]


def test_what_takes_long_is_timed_a_few_times_only(bench: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = bench.measure
    now = [0.0]
    monkeypatch.setattr(measure.time, "perf_counter", lambda: now[0])

    def work(_: Any) -> None:
        now[0] += 4.0

    assert measure.time_row(measure.Row("slow", work), quick=False) == [4.0, 4.0, 4.0]
    assert now[0] == 20.0  # two to warm up

    def quick_work(_: Any) -> None:
        now[0] += 0.25

    assert measure.time_row(measure.Row("fast", quick_work, calls=2, per=5), quick=False) == [0.05] * 10


def test_bytes_are_shown_in_a_unit_that_fits(bench: SimpleNamespace) -> None:
    assert bench.report.quantity(128.0, "bytes") == "128 bytes"
    assert bench.report.quantity(14.7e6, "bytes") == "14.7 MB"
