# SPDX-License-Identifier: Apache-2.0
"""Stands in for pytest in the processes that run one function of a test module, until that function uses pytest.

The import of pytest and the end of what it holds take a third of the time of a short process.
"""

import importlib
import sys
import types


class Marks:
    """`pytest.mark` where no tests are collected."""

    def __getattr__(self, name):
        return unchanged


def unchanged(*arguments, **options):
    """A mark or a fixture: gives its function back, and itself where its own arguments come first."""
    return arguments[0] if arguments and isinstance(arguments[0], types.FunctionType) else unchanged


class PytestWhenUsed(types.ModuleType):
    """All but marks and fixtures is pytest's own, which is imported then."""

    mark, fixture = Marks(), staticmethod(unchanged)

    def __getattr__(self, name):
        if name.startswith("__"):  # inspect and pickle ask every module for such names
            raise AttributeError(name)
        if sys.modules["pytest"] is self:
            del sys.modules["pytest"]
        return getattr(importlib.import_module("pytest"), name)
