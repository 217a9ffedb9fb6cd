# SPDX-License-Identifier: Apache-2.0
"""`python -m artifex_devices`: the command line."""

from __future__ import annotations

import sys

from artifex_devices.command_line import main

if __name__ == "__main__":
    sys.exit(main())
