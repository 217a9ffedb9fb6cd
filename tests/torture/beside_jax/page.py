# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reliability.md from results.json and the catalogue.

Example:
    python tests/torture/beside_jax/page.py            # write
    python tests/torture/beside_jax/page.py --check    # status 1 if the page differs from the results
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
SHOWN = 120  # characters of an outcome on the page; results.json has more
SLOW_S = 5.0  # outcomes that took longer show their seconds

HEAD = """# Reliability

This page tells you what you can rely on when a program fails or gets bad input, and how the same programs behave here
and in JAX.

## Promises

1. No input crashes or hangs the process; a failed call changes nothing.
2. Errors have JAX's classes, or the nearest built-in ones, and name the argument, the value and the axis.
3. Arrays never change: placing copies, unless you request aliasing by name; views of Arrays are read-only.
4. A *participant* is the run of a mapped function on one device. If a participant fails, all other participants stop,
   the caller gets the exception, and the next call works.
5. Mismatched collectives are an error that lists where each participant waits.
6. Ctrl-C ends every call that waits.
7. The interpreter can end with copies and programs in flight: its exit status is kept and nothing is printed.
8. After a fork the child may end, or use the library.
9. Prefetching keeps the order, returns all batches before an error, reads no further than `buffer_size`, and ends with
   its reader.
10. Memory of Arrays is counted exactly; the limits of devices, of the cgroup and of the address space are errors that
    state the requested bytes.
11. Sizes are computed in checked 64-bit arithmetic, before anything is allocated.
12. Moves keep each bit; max and min keep NaN; sums have a fixed order.
13. Files are parsed with limits; an unreadable file is an error.
14. No library is loaded from the working directory.
15. The environment is read once; malformed values of our own variables are errors that name them.
16. Signal handlers, locale, affinity, standard output and error are not changed.

`tests/torture/README.md` lists the tests of each promise, and known exceptions. `make test-torture` runs the tests
that need a separate process.

The library uses only public interfaces of CPython, pybind11 and NumPy
([decision 0037](decisions/0037-no-internals-of-others.md)). It cannot promise more than they do:

- **The last bytes of memory.** If CPython, NumPy, pybind11 or greenlet cannot allocate one of its small objects, the
  call usually raises MemoryError, but the process may also hang or end. Limits of devices (`Device.set_bytes_limit`)
  raise ResourceExhaustedError long before, and leave enough memory for Python.
- **Threads without memory.** If the system cannot create a thread, the call raises RuntimeError, as in Python. If a
  new thread has no memory for its first steps, `threading.Thread.start` of CPython may wait forever, and so may the
  call.
- **Calls that no signature fits.** For values of wrong types you get an error of this library. If you call a class or
  method of the extension with a wrong number of arguments, or with an unknown name, you get pybind11's TypeError,
  which lists the signature.

## Comparison with JAX

Each row is one program (`tests/torture/beside_jax`) that runs with both libraries, each time in a new process with 8
simulated CPU devices. A rule judges the outcome, and in most rows further calls must work afterwards. Wrong outcomes
are bold. JAX runs mapped functions under `jit`, which traces a function once for all participants. If only one
participant acts, JAX's program uses `lax.cond` on its number, and Python code runs in `pure_callback`; the program for
this library is plain Python.

JAX has not given all of these promises. Features that JAX lacks (prefetching, memory limits, MPI) are not in the table.
"""


def page(results: dict[str, Any]) -> str:
    """The text of the page."""
    rows = results["rows"]
    parts = [HEAD, _counts(rows), _conditions(results)]
    for group in GROUPS:
        members = [each for each in SCENARIOS.values() if each.group == group]
        parts.append(f"### {group[0].upper()}{group[1:]}\n")
        lines = [[each.title, each.should, *(_cell(rows[each.name].get(peer)) for peer in PEERS)] for each in members]
        parts.append(_markdown(["program", "expected", *PEERS.values()], lines))
        notes = [_wrapped(f"- {each.title}: {each.note}", "  ") for each in members if each.note]
        if notes:
            parts.append("\n".join(notes) + "\n")
    parts.append(TAIL)
    return "\n".join(parts)


TAIL = """## Running the comparison

```bash
make test-torture                                  # this library, with all other torture tests
make torture-beside-jax                            # both libraries, prints each outcome; installs JAX separately
make torture-beside-jax ARGS="-k fork"             # only some programs
make torture-beside-jax ARGS=--update              # rewrites the results and this page
```

A test compares this page with the catalogue and with the results of the run that the page names.
"""


def _counts(rows: dict[str, Any]) -> str:
    counts = []
    for peer, label in PEERS.items():
        found = [row[peer] for row in rows.values() if peer in row]
        counts.append(f"{label}: {sum(each['good'] for each in found)} of {len(found)} as expected")
    return f"{'; '.join(counts)}.\n"


def _conditions(results: dict[str, Any]) -> str:
    machine, versions = results["machine"], results["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    date = machine["date"].replace("T", " ").replace("+00:00", " UTC")
    return (
        _wrapped(
            f"Run {date} on {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
            f"Linux {machine['kernel']}; {listed}. Other programs ran on the machine."
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
    """Scenarios without results of both libraries, and results without a scenario."""
    lacking = [
        f"{name}: no result of {label}"
        for name in scenarios
        for peer, label in PEERS.items()
        if peer not in results["rows"].get(name, {})
    ]
    return lacking + [f"{name}: unknown scenario" for name in results["rows"] if name not in scenarios]


def main() -> int:
    """Returns 1 if --check finds a difference."""
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
        wrong = ["docs/reliability.md differs from the results"]
    for line in wrong:
        print(f"reliability page: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
