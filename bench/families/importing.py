# SPDX-License-Identifier: Apache-2.0
"""Import over NumPy: seconds and resident memory, each in a fresh process; and the size of an installation on disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from measure import Row

CODE = """
import json, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
import numpy
before = resident()
begin = time.perf_counter()
{work}
print(json.dumps([time.perf_counter() - begin, resident() - before]))
"""


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Import alone, then with the first use of the devices."""
    if not peer.IMPORT:
        return
    library = peer.IMPORT.split()[-1]
    for what, work in (
        ("import over NumPy", peer.IMPORT),
        ("import and devices() over NumPy", f"{peer.IMPORT}\n{library}.devices()"),
    ):
        with (
            tempfile.TemporaryDirectory() as bytecode
        ):  # compiled files as in an installation, whatever the settings of this process
            answers = [_run(work, bytecode) for _ in range(4 if quick else 12)][1:]
        yield Row(what, samples=[seconds for seconds, _ in answers])
        yield Row(f"{what}, resident memory", samples=[float(size) for _, size in answers], unit="bytes")

    sizes = _installed(library)
    yield Row(
        "installed size with dependencies, without NumPy",
        samples=[float(sum(sizes.values()))],
        unit="bytes",
        notes=", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items()),
    )


def _installed(library: str) -> dict[str, int]:
    """Bytes of the package and of all that it requires, without NumPy, extras and compiled files."""
    sizes: dict[str, int] = {}
    wanted = [library]
    for name in wanted:
        try:
            known = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name == library:  # run from a checkout: its packages are those of pyproject.toml
                sizes[name] = _bytes_of(name, [])
                wanted += [each for each in _OUR_DEPENDENCIES if each not in wanted]
            continue
        sizes[name] = _bytes_of(name, known.files or [])
        for requirement in known.requires or []:
            required = re.match(r"[\w.-]+", requirement)
            assert required is not None
            is_extra = "extra ==" in requirement
            if not is_extra and required[0] != "numpy" and required[0] not in wanted:
                wanted.append(required[0])
    return sizes


_OUR_DEPENDENCIES = ("greenlet", "ml_dtypes", "threadpoolctl")


def _bytes_of(name: str, installed: Iterable[importlib.metadata.PackagePath]) -> int:
    """Bytes of the installed files and of the package's folder, which an editable installation has elsewhere."""
    files = {Path(str(file.locate())).resolve() for file in installed}
    found = importlib.util.find_spec(name)
    if found is not None and found.origin is not None and found.origin.endswith("__init__.py"):
        files.update(file.resolve() for file in Path(found.origin).parent.rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


def _run(work: str, bytecode: str) -> tuple[float, int]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(work=work)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=120,
        env={**environment, "PYTHONPYCACHEPREFIX": bytecode},
    )
    seconds, size = json.loads(done.stdout)
    return seconds, size
