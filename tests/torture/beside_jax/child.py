# SPDX-License-Identifier: Apache-2.0
"""child.py LIBRARY SCENARIO REPORT: runs one scenario and writes its outcome to the file REPORT, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def outcome_of(error: BaseException) -> str:
    """Class and first line of an error."""
    from scenario import WrongValueError

    words = str(error).strip().splitlines() or [""]
    if isinstance(error, WrongValueError):
        return f"wrong: {words[0]}"
    return f"{type(error).__name__}: {words[0]}"


def main(library: str, name: str, report: str) -> None:
    """Writes the outcome before the process ends, because some processes die at the end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes inherit an ignored SIGINT
    from binding import bind
    from catalogue import SCENARIOS
    from scenario import good_calls

    scenario = SCENARIOS[name]
    b = bind(library, scenario.devices)
    if scenario.interrupt:
        scenario.body(b)  # ends by an uncaught exception
    process = os.getpid()
    found: dict[str, object] = {"code": 0}
    begin = time.monotonic()
    try:
        value = scenario.body(b)
        found["outcome"] = "ok" if value is None else f"ok: {value}"
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: they are outcomes
        if os.getpid() != process:
            raise  # an exception of a forked child ends that child
        found["outcome"] = outcome_of(error)
        del error
    found["seconds"] = time.monotonic() - begin
    if scenario.then:
        try:
            good_calls(b)
        except BaseException as error:
            found["afterwards"] = outcome_of(error)
    temporary = f"{report}.part"
    Path(temporary).write_text(json.dumps(found), encoding="utf-8")
    os.replace(temporary, report)
    if scenario.leave:
        os._exit(scenario.code)
    sys.exit(scenario.code)


if __name__ == "__main__":
    main(*sys.argv[1:])
