# SPDX-License-Identifier: Apache-2.0
"""Foreign pybind11 packages that are imported while participants run, each program in a process of its own.

Their C++ frames must end in the order in which they began, else the package ends the process.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import sys, threading
import numpy as np
import artifex_devices as ad
from artifex_devices import P, lax
from artifex_devices.errors import CollectiveError

assert "optree" not in sys.modules

def over(leaves):
    import optree
    return optree.tree_map(lambda leaf: lax.psum(leaf, "i"), leaves)

def outcome(body, **options):
    mesh = ad.Mesh(ad.devices(), "i")
    mapped = ad.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)
    try:
        return [np.asarray(leaf).tolist() for leaf in mapped(np.arange(4.0))]
    except CollectiveError as error:
        return 'use executor="threads"' in str(error)

with ad.simulate(4):
"""


def outputs(body: str) -> list[str]:
    script = PRELUDE + textwrap.indent(textwrap.dedent(body), "    ")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("launch", ["outcome(body)", "outcome(ad.jit(body))"])
def test_a_body_that_imports_the_package_first_gets_the_error_of_an_early_import(launch: str) -> None:
    assert outputs(f"""
        def body(x):
            return over([x, x + 1])

        print({launch})
        print({launch})
        print(outcome(body, executor="threads"))
    """) == ["True", "True", "[[6.0, 6.0, 6.0, 6.0], [10.0, 10.0, 10.0, 10.0]]"]


def test_pmap_gets_it_too() -> None:
    assert outputs("""
        def body(x):
            return over([x, x + 1])

        try:
            ad.pmap(body, axis_name="i")(np.arange(4.0))
        except CollectiveError as error:
            print('use executor="threads"' in str(error))
    """) == ["True"]


def test_an_import_between_two_collectives_is_noticed() -> None:
    assert outputs("""
        def body(x):
            total = lax.psum(x, "i")  # a wait without the package
            total = lax.psum(total, "i")
            return over([x, x + 1])

        print(outcome(body))
    """) == ["True"]


def test_an_import_by_another_thread_is_noticed() -> None:
    assert outputs("""
        def body(x):
            lax.psum(x, "i")
            thread = threading.Thread(target=__import__, args=("optree",))
            thread.start()
            thread.join()
            return sys.modules["optree"].tree_map(lambda leaf: lax.psum(leaf, "i"), [x, x + 1])

        print(outcome(body))
    """) == ["True"]


@pytest.mark.parametrize("which", [0, 2, 3])
def test_an_import_in_one_participant_only_works(which: int) -> None:
    assert outputs(f"""
        def body(x):
            if lax.axis_index("i") == {which}:
                return over([x, x + 1])
            return [lax.psum(x, "i"), lax.psum(x + 1, "i")]

        print(outcome(body))
    """) == ["[[6.0, 6.0, 6.0, 6.0], [10.0, 10.0, 10.0, 10.0]]"]


def test_one_collective_for_each_call_works() -> None:
    assert outputs("""
        def body(x):
            first, between = over([x])[0], lax.psum(x, "i")
            return [first, over([x + 1])[0] + between]

        print(outcome(body))
    """) == ["[[6.0, 6.0, 6.0, 6.0], [16.0, 16.0, 16.0, 16.0]]"]


def test_a_package_that_was_removed_from_the_modules_is_noticed_when_it_is_imported_again() -> None:
    assert outputs("""
        import optree
        def remove():
            for name in [name for name in sys.modules if name.partition(".")[0] == "optree"]:
                del sys.modules[name]

        def body(x):
            remove()
            lax.psum(x, "i")
            sys.modules.update(removed)
            return over([x, x + 1])

        removed = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "optree"}
        print(outcome(body))
    """) == ["True"]
