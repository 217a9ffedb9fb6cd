# SPDX-License-Identifier: Apache-2.0
"""Measures the best batch size for the training step of examples/digits_train.py on this machine.

    python examples/digits_batch_size.py                     over all devices, about 10 seconds
    python examples/digits_batch_size.py --seconds 30        with more time; --json prints the full result

The step computes gradients on each device and averages them by `lax.pmean`. Batches larger than the 1,472
images repeat them.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import artifex_devices as ad
import numpy as np
from artifex_devices import P, lax
from artifex_devices.sharding import NamedSharding
from digits_train import first_parameters, gradients, load_digits


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="for the measurement (default: 10)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    images, labels, _, _ = load_digits()
    mesh = ad.make_mesh((ad.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))
    params = ad.device_put(first_parameters(), NamedSharding(mesh, P()))

    def make_batch(size: int) -> dict[str, Any]:
        chosen = np.arange(size) % len(labels)
        return {"images": ad.device_put(images[chosen], rows), "labels": ad.device_put(labels[chosen], rows)}

    def average_gradients(params: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
        loss, slope = gradients(params, batch, lambda scores: scores)
        mean: dict[str, Any] = lax.pmean({"loss": np.float64(loss), **slope}, "data")
        return mean

    mapped = ad.shard_map(average_gradients, mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
    found = ad.measure_batch_size(
        lambda batch: mapped(params, batch),
        make_batch,
        multiple_of=ad.device_count(),  # all devices have equally many rows
        max_seconds=options.seconds,
    )
    print(json.dumps(found.to_dict(), indent=2) if options.json else found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
