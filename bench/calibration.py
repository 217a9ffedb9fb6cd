# SPDX-License-Identifier: Apache-2.0
"""Predicted against measured: the tables of docs/how_to/calibrate.md, from bench/calibration.json.

Example:
    python bench/calibration.py               # calibrate, check, print; nothing is written
    python bench/calibration.py --update      # the same, and write bench/calibration.json and the tables
    python bench/calibration.py --page        # write the tables of the committed numbers
    python bench/calibration.py --page --check  # status 1 if the committed page differs from the numbers
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORD = HERE / "calibration.json"
PAGE = HERE.parent / "docs" / "how_to" / "calibrate.md"
BEGIN = "<!-- tables of bench/calibration.py -->"
END = "<!-- end of tables -->"
MIB = 1 << 20


def measured(rounds: int, check_rounds: int) -> tuple[dict[str, Any], str]:
    """Results of a check with its calibration, for JSON and as text."""
    from artifex_devices import calibration

    found = calibration.calibrate(rounds=rounds, cache=False)
    checked = calibration.check(found, rounds=check_rounds)
    return checked.to_dict(), f"{found}\n\n{checked}"


def shown(record: dict[str, Any]) -> dict[str, Any]:
    """The facts of a check that the page shows."""
    row = ("name", "kind", "nbytes", "devices", "predicted", "measured", "error")
    return {
        **{key: record[key] for key in ("date", "median_error_large", "large_bytes", "notes")},
        "calibration": {"conditions": record["calibration"]["conditions"]},
        "rows": [{key: each[key] for key in row} for each in record["rows"]],
    }


def tables(record: dict[str, Any]) -> str:
    """Markdown of a check: conditions, medians by size, and all rows from 64 MiB on."""
    conditions = record["calibration"]["conditions"]
    cache = conditions["cache_bytes"]
    rows = record["rows"]
    head = (
        f"{conditions['cpu_model']}, {conditions['workers']} workers, {conditions['memory_nodes']} memory "
        f"node{'s' * (conditions['memory_nodes'] > 1)}, last-level caches of "
        f"{'unknown size' if cache is None else f'{cache // MIB} MiB'}; calibrated {conditions['date']} in "
        f"{conditions['seconds']:.1f} s, checked {record['date']}."
    )
    sizes = sorted({row["nbytes"] for row in rows})
    medians = ["| MiB | reshards | collectives |", "| --- | --- | --- |"]
    medians += [
        f"| {size // MIB} | {_error(rows, 'reshard', size, size)} | {_error(rows, 'collective', size, size)} |"
        for size in sizes
    ]
    large = record["large_bytes"]
    of_large = [_error(rows, kind, large) for kind in ("reshard", "collective")]
    medians.append(f"| **{large // MIB} and more** | **{of_large[0]}** | **{of_large[1]}** |")
    every = {row["devices"]: None for row in rows}
    header = ["", "MiB", *(f"{count} devices: predicted, measured, error" for count in every)]
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    by_name: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for row in rows:
        if row["nbytes"] >= large:
            by_name.setdefault((row["name"].split(", threads")[0], row["nbytes"]), {})[row["devices"]] = row
    for (name, nbytes), of in by_name.items():
        cells = [_cell(of[count]) if count in of else "-" for count in every]
        lines.append(f"| {name} | {nbytes // MIB} | {' | '.join(cells)} |")
    notes = "".join(f"{note}.\n" for note in record["notes"])
    share = f"Median error from {large // MIB} MiB on: **{100 * record['median_error_large']:.1f} %**."
    return "\n".join([head, "", share, notes, *medians, "", *lines])


def _error(rows: list[dict[str, Any]], kind: str, least: int, most: int | None = None) -> str:
    errors = [
        abs(row["error"])
        for row in rows
        if row["kind"] == kind and least <= row["nbytes"] and (most is None or row["nbytes"] <= most)
    ]
    return f"{100 * statistics.median(errors):.0f} %" if errors else "-"


def _cell(row: dict[str, Any]) -> str:
    return f"{1e3 * row['predicted']:.3g} ms, {1e3 * row['measured']:.3g} ms, {100 * row['error']:+.0f} %"


def page(text: str, record: dict[str, Any]) -> str:
    """The page with the tables of these numbers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables(record)}\n\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints, or writes the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the record and the page")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page of the record")
    parser.add_argument("--check", action="store_true", help="with --page: write nothing; status 1 if the page differs")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each sample of the calibration")
    parser.add_argument("--check-rounds", type=int, default=3, help="turns of each row of the check")
    options = parser.parse_args(arguments)
    if not options.page:
        record, text = measured(options.rounds, options.check_rounds)
        print(text)
        if not options.update:
            return 0
        from json_rows import json_rows

        RECORD.write_text(json_rows(shown(record)))
    before = PAGE.read_text(encoding="utf-8")
    after = page(before, json.loads(RECORD.read_text()))
    if options.check:
        return int(before != after)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
