# SPDX-License-Identifier: Apache-2.0
"""One peer, one family, one process: prints one JSON line for each row. Started by run.py."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Measures the rows of one family with one peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("family")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    # Before the library is imported: both read it at first use.
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.devices}"
    os.environ.pop("JAX_NUM_CPU_DEVICES", None)
    os.environ["JAX_PLATFORMS"] = "cpu"

    from measure import time_row

    family = importlib.import_module(f"families.{options.family}")
    peer = importlib.import_module(f"peers.{options.peer}_peer")
    out = os.dup(1)
    os.dup2(2, 1)  # keeps output of libraries out of our lines
    with os.fdopen(out, "w") as lines:
        for row in family.rows(peer, quick=options.quick):
            samples = time_row(row, quick=options.quick)
            line = {"name": row.name, "x": row.x, "bytes": row.bytes, "notes": row.notes, "unit": row.unit}
            line["samples"] = samples
            print(json.dumps(line), file=lines, flush=True)
        print(json.dumps({"version": peer.version()}), file=lines, flush=True)


if __name__ == "__main__":
    main()
