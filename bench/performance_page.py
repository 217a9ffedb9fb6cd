# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md, docs/performance_rows.md, their pictures and the table of README.md from bench's files.

Example:
    python bench/performance_page.py            # write
    python bench/performance_page.py --check    # status 1 if a committed file differs from the data
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

from performance_rows import (
    LABELS,
    alternative_text,
    conditions,
    conditions_of_curves,
    conditions_of_tables,
    markdown,
    picture_path,
    rows_page,
    wrapped,
)
from report import quantity

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
BEGIN, END = "<!-- table of bench/performance_page.py -->", "<!-- end of table -->"


class Chosen(NamedTuple):
    """A row of the bench in a short table."""

    work: str
    limit: str
    is_compared: bool = False  # also in docs/compared.md


CHOSEN = {  # by name of the row
    "import over NumPy": Chosen("`import`, beyond NumPy's own time", "loading 57 modules", True),
    "installed size with dependencies, without NumPy": Chosen(
        "installed size with dependencies, without NumPy", "machine code: 8 of 15 MB", True
    ),
    "device_put (8,16) f32, 8 shards, dim 0": Chosen(
        "`device_put` of 512 bytes to 8 devices", "Python's interpreter", True
    ),
    "device_put tree of 200 x (8,16) f32, 8 shards each": Chosen(
        "`device_put` of a tree of 200 such arrays", "2 us for each leaf", True
    ),
    "device_put 256 MiB, 8 shards, dim 0": Chosen("`device_put` of 256 MiB to 8 devices", "memory", True),
    "device_put 256 MiB, one device, may_alias=True": Chosen(
        "`device_put` of 256 MiB with `may_alias=True`, which shares it", "the call"
    ),
    "gather 256 MiB from 8 shards, dim 0": Chosen("`np.asarray` of 256 MiB on 8 devices", "memory", True),
    "gather of 100 Arrays (8,16) f32 from 8 shards": Chosen(
        "`device_get` of 100 Arrays of 512 bytes", "2 us for each Array"
    ),
    "copy 64 MiB, transpose of 4-byte items": Chosen("copying the transpose of a matrix of 64 MiB", "memory"),
    "reshard 256 MiB, 8 shards, dim 0 -> 8 shards, last dim": Chosen(
        "reshard of 256 MiB, rows to columns", "memory", True
    ),
    "x + x (8,16) f32, 8 shards": Chosen("`x + x`, 512 bytes on 8 devices", "Python's interpreter", True),
    "x + x 256 MiB, 8 shards": Chosen("`x + x`, 256 MiB on 8 devices", "memory", True),
    "sum of 256 MiB, 8 shards": Chosen("`x.sum()`, 256 MiB on 8 devices", "memory"),
    "2048^3 f32 matmul, rows over 8 shards": Chosen(
        "`x @ y`, 2048 x 2048, x by rows on 8 devices", "NumPy's BLAS", True
    ),
    "shard_map + psum of 16 floats, 8 devices": Chosen(
        "`shard_map` with a `psum` of 16 numbers, 8 devices", "Python, for each device"
    ),
    "shard_map + psum of 16 floats, 256 devices": Chosen("the same, 256 devices", "Python, for each device"),
    "psum of 4 MiB x 8 under shard_map": Chosen("`lax.psum` of 4 MiB on each of 8 devices", "memory", True),
    "all_gather of 4 MiB x 8 under shard_map": Chosen("`lax.all_gather` of 4 MiB on each of 8 devices", "memory"),
    "prefetch, producer and consumer of equal CPU time of one core, times the ideal": Chosen(
        "prefetching: time over the ideal", "the slower of the two"
    ),
    "4,096 devices: create": Chosen("creating 4,096 devices", "0.8 us for each device", True),
}
OF_README = (
    "import over NumPy",
    "device_put (8,16) f32, 8 shards, dim 0",
    "device_put 256 MiB, 8 shards, dim 0",
    "reshard 256 MiB, 8 shards, dim 0 -> 8 shards, last dim",
    "psum of 4 MiB x 8 under shard_map",
    "device_put 256 MiB, one device, may_alias=True",
)
COMPARED = tuple(name for name, row in CHOSEN.items() if row.is_compared)
WITH_SUMMARY = {HERE.parent / "README.md": OF_README, DOCS / "compared.md": COMPARED}
ANSWERS = (  # what a reader wants to know first, and the row of the bench
    (
        "Python limits small calls. `device_put` of 512 bytes to 8 devices takes",
        "device_put (8,16) f32, 8 shards, dim 0",
    ),
    (
        "Memory limits copies of large arrays. A reshard of 256 MiB from rows to columns takes",
        "reshard 256 MiB, 8 shards, dim 0 -> 8 shards, last dim",
    ),
    (
        "NumPy limits arithmetic. A product of matrices of 2048 x 2048 takes",
        "2048^3 f32 matmul, rows over 8 shards",
    ),
)
CHARTS = (  # family and name of a curve, heading, and what limits it
    (
        "by_bytes",
        "device_put, 8 shards",
        "Copying to devices",
        "Up to 16 KiB, the fixed cost of the Python call is the limit. From 16 MiB on, it is memory: the dashed line "
        "is a plain copy of as many bytes.",
    ),
    (
        "by_bytes",
        "reshard, rows to columns over 8",
        "Changing a sharding",
        "A reshard copies each byte once, directly to its new place. The limits are the same: the call, then memory.",
    ),
    (
        "by_devices",
        "shard_map + psum of 16 floats per device",
        "Running a program with a collective",
        "Python is the limit: it runs the body once for each device, in turn, on one thread. This takes 2 to 4 us for "
        "each device. On one device, JAX's compiled program is faster.",
    ),
)


def pages(table: dict[str, Any], curves: dict[str, Any], gpu: dict[str, Any]) -> dict[str, str]:
    """Texts by their path below docs/."""
    return {"performance.md": _front(table, curves), **rows_page(table, curves, gpu)}


def _front(table: dict[str, Any], curves: dict[str, Any]) -> str:
    charts = "\n".join(
        f"### {heading}\n\n![{alternative_text(name, family)}]({picture_path(family, name)})\n\n{wrapped(limit)}\n"
        for family, name, heading, limit in CHARTS
    )
    machine = table["runs"][0]["machine"]
    answers = "\n".join(
        wrapped(f"- {text} {ours} here, {jax} in JAX and {numpy} in NumPy on one thread.", "  ")
        for text, name in ANSWERS
        for ours, jax, numpy in [[_median(table, name, peer) for peer in LABELS]]
    )
    return f"""# Performance

How fast is artifex_devices beside JAX and NumPy, and what limits it? All three did the same work on the same machine
({machine["cpu"]}, {machine["cores"]} cores, no GPU) in the same run:

{answers}

[All measurements](performance_rows.md) has every row, the targets, and copies [to and from a
GPU](performance_rows.md#gpus).

## Time against size

Both axes are logarithmic; lower is faster. The line of NumPy is a plain loop over the parts in one thread.

{charts}
## Twenty operations

{short_table(table, tuple(CHOSEN), shows_limits=True)}
"Memory" means that most of the time goes into reading and writing the bytes. A dash means that the library has no
such operation or that it was not measured.

## How it was measured

- All devices are CPU devices of one machine. JAX runs in separate processes on as many CPU devices. It is compiled
  before it is timed, and each call waits for its result (`block_until_ready`).
- JAX shares the memory of a source that is aligned to 64 bytes instead of copying it. Sources are not aligned, except
  in the row of `may_alias=True`, in which both libraries share.
- NumPy runs plain loops in one thread, a lower limit for small work.
- All times are medians over the repeats of all runs.

{conditions_of_tables(table)}

{conditions_of_curves(curves)}

`make performance` measures everything again on your machine, in 50 minutes. It writes `bench/table.json` and
`bench/curves.json`, and this page and its pictures from them; a test compares page and data.
"""


def short_table(table: dict[str, Any], names: tuple[str, ...], *, shows_limits: bool = False) -> str:
    """The rows with these names, with medians over all runs."""
    lines = []
    for name in names:
        cells = [_median(table, name, peer) for peer in LABELS]
        lines.append([CHOSEN[name].work, *cells, *([CHOSEN[name].limit] if shows_limits else [])])
    versions = table["runs"][0]["versions"]
    header = ["", LABELS["ours"], f"JAX {versions['jax']}" if "jax" in versions else "JAX", LABELS["numpy"]]
    return markdown([*header, "limited by"] if shows_limits else header, lines)


def _median(table: dict[str, Any], name: str, peer: str) -> str:
    """The median over all runs, or a dash."""
    row = next((row for row in table["rows"] if row["name"] == name), {"peers": {}, "unit": "s"})
    medians = [run["median"] for run in row["peers"].get(peer, []) if run]
    return quantity(statistics.median(medians), row["unit"]) if medians else "-"


def with_summary(text: str, table: dict[str, Any], names: tuple[str, ...]) -> str:
    """The text with the table between its markers replaced by the rows with these names."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    summary = short_table(table, names) + "\n" + wrapped(f"Medians. Conditions: {conditions(table['runs'])}.")
    return f"{before}{BEGIN}\n\n{summary}\n\n{END}{after}"


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
