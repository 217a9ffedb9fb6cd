# SPDX-License-Identifier: Apache-2.0
"""Tables of text."""

from artifex_devices._base.text import table_lines


def test_columns_are_as_wide_as_their_widest_text():
    rows = [("name", "bytes"), ("a gather", "64"), ("b", "")]
    assert table_lines(rows) == ["name      bytes", "a gather  64", "b"]
    assert table_lines(rows, right=[1]) == ["name      bytes", "a gather     64", "b"]
    assert table_lines([]) == []
