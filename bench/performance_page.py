# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md, its pictures and the table of README.md from the JSON files of bench.

Example:
    python bench/performance_page.py            # write
    python bench/performance_page.py --check    # status 1 if a committed file differs from the data
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import textwrap
from pathlib import Path
from typing import Any

import gpu_table
from bounds import BOUNDS
from log_picture import Curve, log_picture
from report import footnotes_of_runs, header_of, lines_of_runs, quantity, times
from targets import TARGETS, Target

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
LABELS = {"ours": "artifex_devices", "jax": "JAX", "numpy": "NumPy, one thread"}
AXES = {
    "by_bytes": ("Bytes of the array", "against bytes"),
    "by_shards": ("Shards of 64 MiB, one for each device", "against shards"),
    "by_devices": ("Devices of the mesh, of 4,096 in the process", "against devices"),
    "by_leaves": ("Leaves of the tree, (8,16) float32 each", "against leaves"),
}
BEYOND_CACHES = 64 << 20
MOVED = ("device_put", "gather", "reshard", "x + x")  # curves that are limited by the machine's copies
BEGIN, END = "<!-- table of bench/performance_page.py -->", "<!-- end of table -->"
SUMMARY = {  # rows of the bench, as the tables of README.md and docs/compared.md describe them
    "import over NumPy": "`import`, beyond NumPy's own time",
    "installed size with dependencies, without NumPy": "installed size with dependencies, without NumPy",
    "device_put (8,16) f32, 8 shards, dim 0": "`device_put` of 512 bytes to 8 devices",
    "device_put tree of 200 x (8,16) f32, 8 shards each": "`device_put` of a tree of 200 such arrays",
    "device_put 256 MiB, 8 shards, dim 0": "`device_put` of 256 MiB to 8 devices",
    "gather 256 MiB from 8 shards, dim 0": "`np.asarray` of 256 MiB on 8 devices",
    "reshard 256 MiB, 8 shards, dim 0 -> 8 shards, last dim": "reshard of 256 MiB, rows to columns",
    "x + x (8,16) f32, 8 shards": "`x + x`, 512 bytes on 8 devices",
    "x + x 256 MiB, 8 shards": "`x + x`, 256 MiB on 8 devices",
    "2048^3 f32 matmul, rows over 8 shards": "`x @ y`, 2048 x 2048, x by rows on 8 devices",
    "psum of 4 MiB x 8 under shard_map": "`lax.psum` of 4 MiB on each of 8 devices",
    "4,096 devices: create": "creating 4,096 devices",
    "device_put 256 MiB, one device, aligned source": "`device_put` of 256 MiB that JAX shares instead of copying",
}
OF_README = (
    "import over NumPy",
    "device_put (8,16) f32, 8 shards, dim 0",
    "device_put 256 MiB, 8 shards, dim 0",
    "reshard 256 MiB, 8 shards, dim 0 -> 8 shards, last dim",
    "psum of 4 MiB x 8 under shard_map",
    "device_put 256 MiB, one device, aligned source",
)
WITH_SUMMARY = {HERE.parent / "README.md": OF_README, DOCS / "compared.md": tuple(SUMMARY)}


def pages(table: dict[str, Any], curves: dict[str, Any], gpu: dict[str, Any]) -> dict[str, str]:
    """Texts by their path below docs/."""
    made: dict[str, str] = {}
    sections = [_head(table, curves), _targets(table), _whole_table(table)]
    for family, (axis, title) in AXES.items():
        found = [curve for curve in curves["curves"] if curve["family"] == family and "ours" in curve["peers"]]
        limits = {curve["name"]: curve for curve in found if curve["name"].startswith("limit")}
        shown = [curve for curve in found if curve["name"] not in limits]
        if shown:
            sections.append(f"## Time {title}\n")
        for curve in shown:
            path = f"images/performance/{_slug(family, curve['name'])}.svg"
            limit = _limit(curve, family, list(limits.values()), curves)
            made[path] = _picture(curve, axis, limit)
            sections.append(_section(curve, path, axis, limit))
    sections.append(_gpus(gpu))
    return {"performance.md": "\n".join(sections), **made}


def _gpus(gpu: dict[str, Any]) -> str:
    return f"""## GPUs

The table has copies to, from and on a GPU, of 256 MiB unless the row names a size. JAX runs in its own process. The
plain call is one `cuMemcpyAsync` of the CUDA driver, from or to locked memory of the host, with a wait. [Use GPUs
through CUDA](how_to/cuda.md) explains how the library copies; `make bench-gpu` measures the copies on your GPU.

{gpu_table.table(gpu)}
{_wrapped(f"Conditions: {gpu_table.conditions(gpu)}.")}
"""


def summary(table: dict[str, Any], names: tuple[str, ...]) -> str:
    """A short table of the rows with these names: medians over all runs, with their conditions."""
    by_name = {row["name"]: row for row in table["rows"]}
    lines = []
    for name in names:
        found = by_name.get(name, {"peers": {}, "unit": "s"})
        cells = []
        for peer in LABELS:
            medians = [run["median"] for run in found["peers"].get(peer, []) if run]
            cells.append(quantity(statistics.median(medians), found["unit"]) if medians else "-")
        lines.append([SUMMARY[name], *cells])
    versions = table["runs"][0]["versions"]
    header = ["", LABELS["ours"], f"JAX {versions['jax']}" if "jax" in versions else "JAX", LABELS["numpy"]]
    return _markdown(header, lines) + "\n" + _wrapped(f"Medians. Conditions: {_conditions(table['runs'])}.")


def with_summary(text: str, table: dict[str, Any], names: tuple[str, ...]) -> str:
    """The text with the table between its markers replaced by the rows with these names."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{summary(table, names)}\n\n{END}{after}"


def _slug(family: str, name: str) -> str:
    kept = "".join(letter if letter.isalnum() else " " for letter in name.replace("+", "plus"))
    return "_".join([family, *kept.lower().split()])


def _head(table: dict[str, Any], curves: dict[str, Any]) -> str:
    return f"""# Performance

This page shows how long each operation takes, how this compares with JAX and NumPy, and what limits it. All libraries
ran on the same machine in the same run.

`bench/run.py`, `bench/curves.py` and `bench/gpu.py` measure `bench/table.json`, `bench/curves.json` and
`bench/gpu.json`. `bench/performance_page.py` writes this page and its pictures from these files; a test compares page
and data.

JAX runs in separate processes on as many CPU devices. It is compiled before it is timed, and each call waits for its
result (`block_until_ready`). Its sources are not aligned to 64 bytes, because JAX shares aligned memory instead of
copying it. NumPy runs plain loops in one thread, a lower limit for small work. All times are medians.

Each section lists the limits of an operation. They were found by profiling (perf, cachegrind) or by changing one thing,
on the same machine with little other load, so numbers in these texts may differ from the tables.

{_wrapped(f"Conditions of the tables: {_conditions(table['runs'])}.")}

{_wrapped(f"Conditions of the curves: {_conditions([curves])}; {_course(curves)}.")}

All numbers are of CPU devices, except in [the last section](#gpus).
"""


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _course(curves: dict[str, Any]) -> str:
    facts, rounds = curves["machine"], curves["rounds"]
    return f"{rounds} round{'s' if rounds > 1 else ''} in {facts['seconds']} s"


def _conditions(runs: list[dict[str, Any]]) -> str:
    first = runs[0]
    facts = first["machine"]
    versions = ", ".join(
        f"{LABELS.get(peer, peer).split(',')[0]} {version}" for peer, version in first["versions"].items()
    )
    dates = " and ".join(run["machine"]["date"].replace("T", " ").replace("+00:00", " UTC") for run in runs)
    loads = ", ".join(f"{run['machine']['load_before']:.1f}" for run in runs)
    rates = ", ".join(f"{max(run['copy_limits_bytes_per_s'].values()) / 1e9:.1f}" for run in runs)
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_bytes'] / 2**30:.0f} GiB, Linux {facts['kernel']}, "
        f"Python {facts['python']}, {versions}; {dates}; load {loads} at the start; streaming copy {rates} GB/s at best"
        f"{' (few repeats: --quick)' if any(run.get('quick') for run in runs) else ''}"
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _targets(table: dict[str, Any]) -> str:
    rows = []
    reasons = []
    for target in TARGETS:
        cells, outcome = _judged(target, table)
        rows.append([target.work or target.row, *cells, outcome])
        if outcome not in ("met", "not measured"):
            reasons.append(_wrapped(f"- {target.work or target.row}: {target.why or 'not examined yet'}.", "  ") + "\n")
    text = "## Targets\n\nThe targets are for 8 CPU devices unless stated otherwise. "
    text += "A target is met if every run is within it.\n\n"
    text += _markdown(["work", "target", "ours", "JAX", "outcome"], rows)
    if reasons:
        text += "\nThese targets are not met, for these reasons:\n\n" + "".join(reasons)
    return text


def _judged(target: Target, table: dict[str, Any]) -> tuple[list[str], str]:
    by_name = {row["name"]: row for row in table["rows"]}
    row = by_name.get(target.row)
    ours = [run for run in row["peers"].get("ours", []) if run] if row else []
    if row is None or not ours:
        return [target.aim, "-", "-"], "not measured"
    verdicts = [target.holds(row, run, by_name, number) for number, run in enumerate(row["peers"]["ours"]) if run]
    outcome = "met" if all(verdicts) else "not met" if not any(verdicts) else "in some runs"
    cells = [_values(row, peer, is_rate=target.least_rate is not None) for peer in ("ours", "jax")]
    return [target.aim, *cells], outcome


def _values(row: dict[str, Any], peer: str, *, is_rate: bool) -> str:
    medians = [run["median"] for run in row["peers"].get(peer, []) if run]
    if is_rate:
        return ", ".join(f"{row['bytes'] / median / 1e9:.1f} GB/s" for median in medians) or "-"
    return ", ".join(quantity(median, row["unit"]) for median in medians) or "-"


def _whole_table(table: dict[str, Any]) -> str:
    header, rows = header_of(table), lines_of_runs(table)
    notes = "".join(_wrapped(f"- {note.removeprefix('* ')}", "  ") + "\n" for note in footnotes_of_runs(table))
    runs = {1: "One run", 2: "Two separate runs, one number for each"}.get(
        len(table["runs"]), "Separate runs, one number for each"
    )
    legend = _wrapped(
        f"{runs}. ± is half the interquartile range. GB/s are the bytes of the value divided by the median. A ratio "
        "above 1 means that this library is faster (or smaller)."
    )
    return f"## All results\n\n{legend}\n\n{_markdown(header, rows)}\n{notes}"


def _limit(
    curve: dict[str, Any], family: str, limits: list[dict[str, Any]], curves: dict[str, Any]
) -> dict[float, float]:
    """Least seconds of a copy of as many bytes, by x; empty for curves that are not limited by copies."""
    rate = max(curves["copy_limits_bytes_per_s"].values())
    if family == "by_bytes" and limits and curve["name"].startswith(MOVED):
        measured: dict[float, list[float]] = {}
        for each in limits:
            for point in each["peers"]["ours"]:
                at_best = [point["x"] / rate] if point["x"] >= BEYOND_CACHES else []
                measured.setdefault(point["x"], []).extend([point["median"], *at_best])
        return {x: min(times) for x, times in measured.items()}
    if family == "by_shards":
        return {point["x"]: (64 << 20) / rate for point in curve["peers"]["ours"]}
    return {}


def _picture(curve: dict[str, Any], axis: str, limit: dict[float, float]) -> str:
    drawn = [
        Curve(
            LABELS[peer],
            [(p["x"], p["median"], p["first_quartile"], p["third_quartile"]) for p in curve["peers"][peer]],
        )
        for peer in LABELS
        if peer in curve["peers"]
    ]
    if limit:
        drawn.append(Curve("a copy of as many bytes", [(x, y, y, y) for x, y in sorted(limit.items())], is_limit=True))
    values = [point["x"] for point in curve["peers"]["ours"]]
    ticks = [(x, _amount(x, axis)) for x in values]
    return log_picture(curve["name"], axis, ticks, drawn)


def _amount(x: float, axis: str) -> str:
    if not axis.startswith("Bytes"):
        return f"{x:,.0f}"
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if x >= 1 << shift:
            return f"{x / (1 << shift):.0f} {unit}"
    return f"{x:.0f} B"


def _section(curve: dict[str, Any], path: str, axis: str, limit: dict[float, float]) -> str:
    others = [peer for peer in ("jax", "numpy") if peer in curve["peers"]]
    points = {peer: {point["x"]: point["median"] for point in curve["peers"][peer]} for peer in curve["peers"]}
    header = [axis.split(",")[0].lower(), "ours", *(f"{LABELS[peer].split(',')[0]} / ours" for peer in others)]
    header += ["ours / copy"] if limit else []
    each = {"by_devices": "per device", "by_leaves": "per leaf"}.get(curve["family"])
    header += [f"ours {each}"] if each else []
    rows = []
    for x, seconds in points["ours"].items():
        cells = [_amount(x, axis), quantity(seconds, "s")]
        cells += [times(points[peer][x] / seconds) if x in points[peer] else "-" for peer in others]
        cells += [f"{seconds / limit[x]:.2f}" if x in limit else "-"] if limit else []
        cells += [quantity(seconds / x, "s")] if each else []
        rows.append(cells)
    alt = f"{curve['name']}: time against {axis.split(',')[0].lower()}, both axes logarithmic"
    limits = BOUNDS.get((curve["family"], curve["name"]), (("all", "unknown"),))
    bounds = "".join(_wrapped(f"- {where}: {what}.", "  ") + "\n" for where, what in limits)
    return f"### {curve['name']}\n\n![{alt}]({path})\n\n{_markdown(header, rows)}\nLimits:\n\n{bounds}"


def main(arguments: list[str] | None = None) -> int:
    """Writes the page, or compares it with --check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", type=Path, default=HERE / "table.json")
    parser.add_argument("--curves", type=Path, default=HERE / "curves.json")
    parser.add_argument("--gpu", type=Path, default=HERE / "gpu.json")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder to write to")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a file differs")
    options = parser.parse_args(arguments)
    table = json.loads(options.table.read_text())
    made = pages(table, json.loads(options.curves.read_text()), json.loads(options.gpu.read_text()))
    pictures = options.docs / "images" / "performance"
    stale = {path.relative_to(options.docs).as_posix() for path in pictures.glob("*.svg")} - set(made)
    different = sorted(stale)
    for name, text in made.items():
        path = options.docs / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        different.append(name)
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in () if options.check else stale:
        (options.docs / name).unlink()
    different = [f"docs/{name}" for name in different]
    for path, names in WITH_SUMMARY.items():
        old = path.read_text(encoding="utf-8")
        new = with_summary(old, table, names)
        if new != old:
            different.append(path.relative_to(HERE.parent).as_posix())
            if not options.check:
                path.write_text(new, encoding="utf-8")
    for name in different:
        print(f"performance_page: {name} {'differs from the data' if options.check else 'written'}")
    return 1 if options.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
