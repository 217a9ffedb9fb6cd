# SPDX-License-Identifier: Apache-2.0
"""Whole texts that the library writes, compared with the files of `recorded/`.

After an intended change of a text, `UPDATE_RECORDED_TEXTS=1 pytest -n 0 tests/python -k recorded` writes the files
again; read the difference before it is committed.
"""

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"


def check_recorded(name, sections):
    """Compares the sections, a dict of title and text, with the file of that name."""
    text = "".join(f"=== {title}\n{body.rstrip()}\n\n" for title, body in sections.items())
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_RECORDED_TEXTS") == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    if text != expected:
        lines = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"recorded/{path.name}", "now", lineterm=""
        )
        raise AssertionError("\n".join([*lines, "", __doc__]))
