# SPDX-License-Identifier: Apache-2.0
"""On PYTHONPATH, this gives a Python and those that it starts the extension of SANITIZED_CORE and the planner
beside it, and no other ones.

The rest of the package is the one that is installed; see tools/test_sanitized.sh.
"""

import importlib.machinery
import importlib.util
import os
import sys


class Sanitized:
    """Finds one module; stands before the finders of installed modules."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("artifex_devices._core", "artifex_devices._planner"):
            return None
        file = os.environ["SANITIZED_CORE"].replace("_core", name.rpartition(".")[2])
        return importlib.util.spec_from_file_location(
            name, file, loader=importlib.machinery.ExtensionFileLoader(name, file)
        )


sys.meta_path.insert(0, Sanitized)
