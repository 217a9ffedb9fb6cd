# SPDX-License-Identifier: Apache-2.0
"""Modules that are not attributes of the package until they are imported."""

import subprocess
import sys


def test_modules_that_are_imported_by_their_own_name_are_reported():
    code = "import artifex_devices as ad; ad.testing"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert failed.stderr.splitlines()[-1].endswith("write import artifex_devices.testing")
