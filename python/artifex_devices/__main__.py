# SPDX-License-Identifier: Apache-2.0
"""`python -m artifex_devices`: what builds need to know about the installed package."""

from __future__ import annotations

import argparse
from importlib import resources


def main() -> None:
    """Prints what the options ask for."""
    import artifex_devices

    parser = argparse.ArgumentParser(prog="python -m artifex_devices", description=artifex_devices.__doc__)
    parser.add_argument("--version", action="version", version=artifex_devices.__version__)
    parser.add_argument(
        "--cmake-dir",
        action="store_true",
        required=True,
        help="print the folder for CMake's artifex_devices_DIR, to use the C++ library",
    )
    parser.parse_args()
    print(resources.files("artifex_devices") / "cmake")


if __name__ == "__main__":
    main()
