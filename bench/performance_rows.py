# SPDX-License-Identifier: Apache-2.0
"""The page docs/performance_rows.md: all rows and curves of the bench with their limits, and the pictures."""

from __future__ import annotations

import textwrap
from typing import Any

import gpu_table
from bounds import BOUNDS
from log_picture import Curve, log_picture
from report import footnotes_of_runs, header_of, lines_of_runs, quantity, times
from targets import TARGETS, Target

LABELS = {"ours": "artifex_devices", "jax": "JAX", "numpy": "NumPy, one thread"}
AXES = {
    "by_bytes": ("Bytes of the array", "against bytes"),
    "by_shards": ("Shards of 64 MiB, one for each device", "against shards"),
    "by_devices": ("Devices of the mesh, of 4,096 in the process", "against devices"),
    "by_leaves": ("Leaves of the tree, (8,16) float32 each", "against leaves"),
}
OWN_PEERS = {  # families with a section of their own: its title, its peers and its text
    "checkpoints": (
        "Checkpoints",
        ("numpy", "orbax"),
        "Saves and restores over 8 devices, beside plain writes and reads of the same bytes in one thread (numpy), and "
        "Orbax {orbax}. Reads come from the page cache.",
    ),
    "conversions": (
        "Conversions of checkpoints",
        ("numpy", "orbax", "torch"),
        "`checkpoint.convert` beside `cp` and `sync` of the same files (numpy), a restore and a save by Orbax {orbax}, "
        "and torch_save_to_dcp of torch {torch}. Reads come from the page cache.",
    ),
    "input": (
        "Input",
        ("grain", "torch"),
        "Shuffled batches of 256 samples from files, each decoded by the same function, beside Grain {grain} and the "
        "DataLoader of torch {torch}. Workers are threads here and processes in the others. torch makes a list of all "
        "indices, so its last two rows have 10^7 samples.",
    ),
}
BEYOND_CACHES = 64 << 20
MOVED = ("device_put", "gather", "reshard", "x + x")  # curves that are limited by the machine's copies


def rows_page(table: dict[str, Any], curves: dict[str, Any], gpu: dict[str, Any]) -> dict[str, str]:
    """The page and its pictures, by their paths below docs/."""
    made: dict[str, str] = {}
    main, others = _by_peers(table)
    sections = [
        _head(curves, table),
        _targets(table),
        all_results(main),
        *map(_section_of_family, others, others.values()),
    ]
    for family, (axis, title) in AXES.items():
        found = [curve for curve in curves["curves"] if curve["family"] == family and "ours" in curve["peers"]]
        limits = {curve["name"]: curve for curve in found if curve["name"].startswith("limit")}
        shown = [curve for curve in found if curve["name"] not in limits]
        if shown:
            sections.append(f"## Time {title}\n")
        for curve in shown:
            path = picture_path(family, curve["name"])
            limit = _limit(curve, family, list(limits.values()), curves)
            made[path] = _picture(curve, axis, limit)
            sections.append(_section(curve, path, axis, limit))
    sections.append(_gpus(gpu))
    return {"performance_rows.md": "\n".join(sections), **made}


def picture_path(family: str, name: str) -> str:
    """Path of a curve's picture below docs/."""
    kept = "".join(letter if letter.isalnum() else " " for letter in name.replace("+", "plus"))
    return f"images/performance/{'_'.join([family, *kept.lower().split()])}.svg"


def alternative_text(name: str, family: str) -> str:
    """What the picture of a curve shows, for readers who do not see it."""
    return f"{name}: time against {AXES[family][0].split(',')[0].lower()}, both axes logarithmic"


def conditions_of_tables(table: dict[str, Any]) -> str:
    """When and where the tables were measured, as lines of a page."""
    return wrapped(f"Conditions of the tables: {conditions(table['runs'])}.")


def conditions_of_curves(curves: dict[str, Any]) -> str:
    """When and where the curves were measured, as lines of a page."""
    rounds = f"{curves['rounds']} round{'s' if curves['rounds'] > 1 else ''} in {curves['machine']['seconds']} s"
    return wrapped(f"Conditions of the curves: {conditions([curves])}; {rounds}.")


def _head(curves: dict[str, Any], table: dict[str, Any]) -> str:
    return f"""# All measurements

[Performance](performance.md) has the most important rows and explains how they are measured. This page has all rows,
the targets, and time against bytes, shards, devices and leaves, with the limits of each.

The limits were found by profiling (perf, cachegrind) or by changing one thing, on the same machine with little other
load, so numbers in these texts may differ from the tables.

{conditions_of_tables(table)}

{conditions_of_curves(curves)}

All numbers are of CPU devices, except in [the last section](#gpus).
"""


def _gpus(gpu: dict[str, Any]) -> str:
    return f"""## GPUs

The table has copies to, from and on a GPU, of 256 MiB unless the row names a size. JAX runs in its own process. The
plain call is one `cuMemcpyAsync` of the CUDA driver, from or to locked memory of the host, with a wait. [Use GPUs
through CUDA](how_to/cuda.md) explains how the library copies; `make bench-gpu` measures the copies on your GPU.

{gpu_table.table(gpu)}
{wrapped(f"Conditions: {gpu_table.conditions(gpu)}.")}
"""


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph of a page, in lines."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def conditions(runs: list[dict[str, Any]]) -> str:
    """The machine, the versions, the dates and the load of runs."""
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


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _targets(table: dict[str, Any]) -> str:
    rows = []
    reasons = []
    for target in TARGETS:
        cells, outcome = judged(target, table)
        rows.append([target.work or target.row, *cells, outcome])
        if outcome not in ("met", "not measured"):
            reasons.append(wrapped(f"- {target.work or target.row}: {target.why or 'not examined yet'}.", "  ") + "\n")
    text = "## Targets\n\nThe targets are for 8 CPU devices unless stated otherwise. "
    text += "A target is met if every run is within it.\n\n"
    text += markdown(["work", "target", "ours", "JAX", "outcome"], rows)
    if reasons:
        text += "\nThese targets are not met, for these reasons:\n\n" + "".join(reasons)
    return text


def judged(target: Target, table: dict[str, Any]) -> tuple[list[str], str]:
    """The cells of a target, and whether it is met."""
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


def _by_peers(table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The rows beside JAX and NumPy, and by family the rows with other peers."""
    main = [row for row in table["rows"] if row["family"] not in OWN_PEERS]
    others = {}
    for family, (_, peers, _) in OWN_PEERS.items():
        rows = [row for row in table["rows"] if row["family"] == family]
        if rows:
            others[family] = {**table, "rows": rows, "peers": ["ours", *peers]}
    return {**table, "rows": main}, others


def _section_of_family(family: str, table: dict[str, Any]) -> str:
    """The section with the rows of a family that has its own peers."""
    title, peers, text = OWN_PEERS[family]
    versions: dict[str, str] = {}
    for run in table["runs"]:
        versions |= run["versions"]
    text = text.format(**{peer: versions.get(peer, "") for peer in peers})
    return f"## {title}\n\n{wrapped(text)}\n\n{markdown(header_of(table), lines_of_runs(table))}"


def all_results(table: dict[str, Any]) -> str:
    """The section with the rows beside JAX and NumPy."""
    header, rows = header_of(table), lines_of_runs(table)
    notes = "".join(wrapped(f"- {note.removeprefix('* ')}", "  ") + "\n" for note in footnotes_of_runs(table))
    runs = {1: "One run", 2: "Two separate runs, one number for each"}.get(
        len(table["runs"]), "Separate runs, one number for each"
    )
    loads = [(run["machine"]["load_before"], run["machine"]["cores"]) for run in table["runs"]]
    busy = [f"{load:.0f}" for load, cores in loads if load > cores]
    legend = wrapped(
        f"{runs}. ± is half the interquartile range. GB/s are the bytes of the value divided by the median. A ratio "
        "above 1 means that this library is faster (or smaller)."
        + f" Compare only ratios of rows from the run at a load of {', '.join(busy)}."
        * bool(busy)
    )
    return f"## All results\n\n{legend}\n\n{markdown(header, rows)}\n{notes}"


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
    limits = BOUNDS.get((curve["family"], curve["name"]), (("all", "unknown"),))
    bounds = "".join(wrapped(f"- {where}: {what}.", "  ") + "\n" for where, what in limits)
    picture = f"![{alternative_text(curve['name'], curve['family'])}]({path})"
    return f"### {curve['name']}\n\n{picture}\n\n{markdown(header, rows)}\nLimits:\n\n{bounds}"
