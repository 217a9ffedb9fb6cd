# SPDX-License-Identifier: Apache-2.0
"""python -m soak, in tests/: random programs against NumPy, and JAX with --jax, for some time.

Hypothesis makes the programs of seed, seed + 1, ..., and prints the smallest one that fails as Python. The same seed
makes the same programs. A program that hangs ends the process with the stacks of all threads.
"""

import argparse
import faulthandler
import os
import sys
import time
import traceback

HANG_S = 600
ENVIRONMENT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


def main() -> int:
    """Runs batches of programs until the time is over; returns 1 if one failed."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=20, help="programs for each seed")
    parser.add_argument("--steps", type=int, default=25, help="most steps of a program")
    parser.add_argument("--jax", action="store_true")
    options = parser.parse_args()
    from hypothesis import HealthCheck, seed, settings
    from hypothesis.stateful import run_state_machine_as_test

    from soak.machine import Programs

    if options.jax:
        import jax

        jax.config.update("jax_enable_x64", True)
        Programs.jax = jax
    chosen = settings(
        max_examples=options.programs,
        stateful_step_count=options.steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    begin, number, failed = time.monotonic(), options.seed, []
    while number == options.seed or time.monotonic() - begin < options.seconds:
        print(f"seed {number}, {time.monotonic() - begin:.0f} s", flush=True)
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        try:
            run_state_machine_as_test(seed(number)(type("Programs", (Programs,), {})), settings=chosen)
        except Exception:
            traceback.print_exc()
            failed.append(number)
        number += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{number - options.seed} seeds of {options.programs} programs; failed: {failed or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)
    sys.exit(main())
