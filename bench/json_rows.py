# SPDX-License-Identifier: Apache-2.0
"""JSON with one row a line, so that a change of one number is a change of one line."""

from __future__ import annotations

import json
from typing import Any


def json_rows(record: dict[str, Any]) -> str:
    """The record as JSON: a line for each value, and for each row of a list or dict of dicts.

    Example:
        >>> print(json_rows({"unit": "s", "rows": [{"x": 1}, {"x": 2}]}), end="")
        {
        "unit": "s",
        "rows": [
        {"x": 1},
        {"x": 2}
        ]
        }
    """
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in record.items()) + "\n}\n"


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in value) + "\n]"
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        rows = (f"{json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in value.items())
        return "{\n" + ",\n".join(rows) + "\n}"
    return json.dumps(value, ensure_ascii=False)
