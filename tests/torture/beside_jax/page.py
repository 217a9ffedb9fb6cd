# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reliability.md of results.json and the catalogue; nothing in its tables is typed by hand.

Example:
    python tests/torture/beside_jax/page.py            # write
    python tests/torture/beside_jax/page.py --check    # status 1 where the page is not what the results say
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from catalogue import GROUPS, SCENARIOS, Scenario  # noqa: E402

DOCS = HERE.parents[2] / "docs"
PEERS = {"ours": "artifex_devices", "jax": "JAX"}
SHOWN = 120  # characters of an outcome; results.json has more
SLOW_S = 5.0  # from here on the seconds are told

HEAD = """# Reliability

What is promised when things go wrong, and what comes of the same misfortunes here and in JAX.

## What is promised

1. No input crashes or hangs the process; a bad call leaves no trace.
2. Errors have JAX's classes, or the nearest built-in ones, and name the argument, the value and the axis.
3. Arrays never change: placing copies, unless aliasing is asked for by name; views of them are read-only.
4. Where a participant fails, the others stop, the caller gets its own exception, and the next call works.
5. Collectives that do not fit together are an error that says who waits where.
6. Ctrl-C ends every call that waits.
7. The interpreter can end with copies and programs in flight: its exit status is kept and nothing is printed.
8. After a fork the child may end, or use the library.
9. Prefetching keeps the order, gives all batches before an error, looks ahead as far as told, and ends with its reader.
10. Memory is counted exactly; limits and shortages are errors with the bytes asked for.
11. Sizes are computed in checked 64-bit arithmetic, before anything is allocated.
12. Moves keep each bit; max and min keep NaN; sums have a fixed order.
13. Files are parsed with limits; one that cannot be read is an error.
14. No library is loaded from the working directory.
15. The environment is read once; malformed values of our own variables are errors that name them.
16. Signal handlers, locale, affinity, standard output and error are left alone.

`tests/torture/README.md` says which tests hold each of them, and what does not hold yet. `make test-torture` runs those
that need a process of their own.

## Beside JAX

Each row is one program, written once (`tests/torture/beside_jax`) and run on both libraries, each in a process of its
own with 8 simulated CPU devices; a rule judges what came of it, and most are followed by calls that must work. Outcomes
in bold are not what should be. JAX runs mapped functions under `jit`. There a body is traced once for all participants,
so that what one of them does alone is `lax.cond` on its number, and Python in a participant is `pure_callback`; here
both are plain Python. The promises above are ours: JAX has not given all of them. What it does not have at all
(prefetching, limits of memory, MPI) is not in the table.
"""


def page(results: dict[str, Any]) -> str:
    """The text."""
    rows = results["rows"]
    parts = [HEAD, _counts(rows), _conditions(results)]
    for group in GROUPS:
        members = [each for each in SCENARIOS.values() if each.group == group]
        parts.append(f"### {group[0].upper()}{group[1:]}\n")
        lines = [[each.title, each.should, *(_cell(rows[each.name].get(peer)) for peer in PEERS)] for each in members]
        parts.append(_markdown(["what", "what should be", *PEERS.values()], lines))
        notes = [_wrapped(f"- {each.title}: {each.note}", "  ") for each in members if each.note]
        if notes:
            parts.append("\n".join(notes) + "\n")
    parts.append(TAIL)
    return "\n".join(parts)


TAIL = """## How to run it

```bash
make test-torture                                  # ours, with all other torture tests
make torture-beside-jax                            # both, and prints what came of each; installs JAX beside
make torture-beside-jax ARGS="-k fork"             # some
make torture-beside-jax ARGS=--update              # rewrites the results and this page
```

A test compares this page with the results and the catalogue; the results are of the run named above.
"""


def _counts(rows: dict[str, Any]) -> str:
    told = []
    for peer, label in PEERS.items():
        found = [row[peer] for row in rows.values() if peer in row]
        told.append(f"{label}: {sum(each['good'] for each in found)} of {len(found)} as they should be")
    return f"{'; '.join(told)}.\n"


def _conditions(results: dict[str, Any]) -> str:
    machine, versions = results["machine"], results["versions"]
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    date = machine["date"].replace("T", " ").replace("+00:00", " UTC")
    return (
        _wrapped(
            f"Run {date} on {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
            f"Linux {machine['kernel']}; {told}. The machine had other work."
        )
        + "\n"
    )


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not run"
    text = found["outcome"]
    if len(text) > SHOWN:
        text = text[:SHOWN].rsplit(" ", 1)[0] + " ..."
    if found["seconds"] >= SLOW_S and not found["good"] and "killed" not in text and "later" not in text:
        text += f" ({found['seconds']:.0f} s)"
    text = text.replace("*", "\\*").replace("<", "&lt;").replace("|", "\\|")
    return text if found["good"] else f"**{text}**"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    return "".join("| " + " | ".join(line) + " |\n" for line in [header, ["---"] * len(header), *rows])


def missing(results: dict[str, Any], scenarios: dict[str, Scenario]) -> list[str]:
    """Scenarios without results of both, and results of no scenario."""
    lacking = [
        f"{name}: no result of {label}"
        for name in scenarios
        for peer, label in PEERS.items()
        if peer not in results["rows"].get(name, {})
    ]
    return lacking + [f"{name}: no such scenario" for name in results["rows"] if name not in scenarios]


def main() -> int:
    """Status 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--docs", type=Path, default=DOCS)
    arguments = parser.parse_args()
    results = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    wrong = missing(results, SCENARIOS)
    text = "" if wrong else page(results)
    path = arguments.docs / "reliability.md"
    if not arguments.check and not wrong:
        path.write_text(text, encoding="utf-8")
    elif not wrong and (not path.exists() or path.read_text(encoding="utf-8") != text):
        wrong = ["docs/reliability.md is not what the results say"]
    for line in wrong:
        print(f"reliability page: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
