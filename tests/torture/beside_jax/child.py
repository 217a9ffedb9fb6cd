# SPDX-License-Identifier: Apache-2.0
"""child.py LIBRARY SCENARIO REPORT: runs one scenario and writes what came of it to the file REPORT, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def told(error: BaseException) -> str:
    """Class and first line; notes and the rest are for people."""
    from scenario import WrongValueError

    words = str(error).strip().splitlines() or [""]
    if isinstance(error, WrongValueError):
        return f"wrong: {words[0]}"
    return f"{type(error).__name__}: {words[0]}"


def main(library: str, name: str, report: str) -> None:
    """The outcome is written before the process ends, for some do not survive that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts this in the background ignores it
    from binding import bind
    from catalogue import SCENARIOS
    from scenario import good_calls

    scenario = SCENARIOS[name]
    b = bind(library, scenario.devices)
    if scenario.interrupt:
        scenario.body(b)  # ends by an exception that nobody catches
    process = os.getpid()
    found: dict[str, object] = {"code": 0}
    begin = time.monotonic()
    try:
        value = scenario.body(b)
        found["outcome"] = "ok" if value is None else f"ok: {value}"
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: they are outcomes
        if os.getpid() != process:
            raise  # a forked child ends as it wants to
        found["outcome"] = told(error)
        del error
    found["seconds"] = time.monotonic() - begin
    if scenario.then:
        try:
            good_calls(b)
        except BaseException as error:
            found["afterwards"] = told(error)
    temporary = f"{report}.part"
    Path(temporary).write_text(json.dumps(found), encoding="utf-8")
    os.replace(temporary, report)
    if scenario.leave:
        os._exit(scenario.code)
    sys.exit(scenario.code)


if __name__ == "__main__":
    main(*sys.argv[1:])
