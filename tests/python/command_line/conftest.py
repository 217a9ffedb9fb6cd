# SPDX-License-Identifier: Apache-2.0
"""Output that goes elsewhere is not wrapped: the variable COLUMNS, which pytest-xdist sets, is removed."""

import pytest


@pytest.fixture(autouse=True)
def no_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
