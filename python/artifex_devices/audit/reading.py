# SPDX-License-Identifier: Apache-2.0
"""audit.program: reads a program from a text, a file, a folder of dumps or an object."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.regular_file import decompressed, read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import hlo
from artifex_devices.audit.finding_text import COMPILER_NOTES, TEXTS
from artifex_devices.audit.mesh_argument import mesh_of_object, mesh_sizes
from artifex_devices.audit.profiles import program_of_profile
from artifex_devices.audit.program import Program, axes_text
from artifex_devices.audit.torch_programs import is_graph_text, program_of_counts, program_of_graph
from artifex_devices.audit.values import Collective, Finding
from artifex_devices.planner.profile import Profile

_OPERATION = "audit.program"
_EXPECTED = (
    "HLO or StableHLO text, a path, a compiled or lowered function of JAX, the text of an FX graph, the counts of "
    "CommDebugMode, or a profile"
)
_MOST_BYTES = 1 << 30
_HEAD = 1 << 16  # characters in which an FX graph shows itself


def program(x: object, mesh: object = None) -> Program:
    """Reads a program: its collectives with bytes, groups and source lines, and what is suspicious about it.

    Args:
        x: HLO text (before or after partitioning) or StableHLO text; a file with such text, also compressed by gzip; a
            folder that XLA_FLAGS=--xla_dump_to wrote; `jax.jit(f).lower(...)` or its `.compile()`; the text of an FX
            graph of torch; torch's CommDebugMode, or the counts that it returns; a result of
            `planner.read_profile`.
        mesh: Names of axes for the groups of devices: a `Mesh` of this package or of JAX, or a dict such as
            {"data": 4, "model": 2}. None takes them from the program, or finds axes in the groups.

    Raises:
        ValueError: The text is something else or empty, or the mesh has another number of devices than the program.
        TypeError: `x` or `mesh` has the wrong type.
        OSError: The file cannot be read.

    Example:
        >>> from artifex_devices import audit
        >>> text = '''HloModule step, is_scheduled=true, num_partitions=8
        ...
        ... ENTRY %main (x: f32[16,4]) -> f32[64,4] {
        ...   %x = f32[16,4]{1,0} parameter(0)
        ...   ROOT %g = f32[64,4] all-gather(%x), replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true
        ... }
        ... '''
        >>> gather, = audit.program(text, mesh={"data": 4, "model": 2}).collectives
        >>> gather.kind, gather.axes, gather.bytes  # 3 blocks of 16 x 4 float32
        ('all_gather', ('data',), 768)
    """
    axes = mesh_sizes(_OPERATION, mesh)
    if isinstance(x, str) and ("\n" in x or not x.strip()):
        return _program_of_text(x, axes)
    if isinstance(x, (str, os.PathLike)):
        return _program_of_path(Path(x), axes)
    counts = getattr(x, "get_comm_counts", None)
    if callable(counts) and not isinstance(x, type):
        x = counts()
    if isinstance(x, Mapping):
        return program_of_counts(x)
    if isinstance(x, Profile):
        return program_of_profile(x)
    as_text = getattr(x, "as_text", None)
    if callable(as_text) and not isinstance(x, type):
        text = as_text()
        if not isinstance(text, str):
            raise failure(ValueError, _OPERATION, f"{safe_repr(x)} has no text", expected="as_text() to return a str")
        return _program_of_text(text, axes or mesh_of_object(x))
    raise wrong_type(_OPERATION, "x", x, _EXPECTED, "write audit.program(jax.jit(f).lower(x).compile())")


def _program_of_path(path: Path, axes: tuple[tuple[str, int], ...]) -> Program:
    if path.is_dir():
        path = _dumped_program(path)
    try:
        content = decompressed(read_regular_file(path, _MOST_BYTES), _MOST_BYTES)
    except (ValueError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise failure(
            ValueError, _OPERATION, f"{safe_repr(str(path))} {error}", expected=f"a file of at most {_MOST_BYTES} bytes"
        ) from None
    except OSError as error:
        problem = f"{safe_repr(str(path))} cannot be read ({error.strerror})"
        raise failure(type(error), _OPERATION, problem, expected="a file of HLO or StableHLO text") from None
    return _program_of_text(content, axes)


def _dumped_program(folder: Path) -> Path:
    """Returns the largest program after all passes in a folder of dumps: a step is larger than what initializes it."""
    files = sorted(folder.glob("*after_optimizations.txt*"), key=lambda each: (-each.stat().st_size, each.name))
    if not files:
        raise failure(
            ValueError,
            _OPERATION,
            f"the folder {safe_repr(str(folder))} has no program",
            expected="files *after_optimizations.txt of XLA",
            fix="set XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_text' and compile the program",
        )
    return files[0]


def _program_of_text(text: str | bytes, axes: tuple[tuple[str, int], ...]) -> Program:
    if not text.strip():
        raise failure(ValueError, _OPERATION, "the text is empty", expected="HLO or StableHLO text")
    head = text[:_HEAD] if isinstance(text, str) else text[:_HEAD].decode(errors="replace")
    if is_graph_text(head):
        return program_of_graph(text if isinstance(text, str) else text.decode(errors="replace"))
    found: dict[str, Any] = hlo.read_program(text, list(axes))
    collectives = tuple(Collective(**each) for each in found.pop("collectives"))
    given = found.pop("findings")
    by_compiler = Counter(each["kind"] for each in given if each["is_of_compiler"])
    notes = [COMPILER_NOTES[kind].format(count=count) for kind, count in sorted(by_compiler.items())]
    return Program(
        **{**found, "notes": (*found["notes"], *notes)},
        collectives=collectives,
        all_findings=tuple(_finding(each, collectives) for each in given if not each["is_of_compiler"]),
    )


def _finding(given: Mapping[str, Any], collectives: tuple[Collective, ...]) -> Finding:
    collective = collectives[given["collective"]]
    axes = axes_text(collective)
    words = {
        "kind": collective.kind,
        "axes": "the devices" if axes in ("", "unknown") else axes,
        "dtypes": " and ".join(dict.fromkeys(collective.dtypes)),
        "other": given["other"],
    }
    text, repair = TEXTS[given["kind"]]
    return Finding(
        kind=given["kind"],
        collective=collective,
        name=collective.name,
        op_name=collective.op_name,
        file=collective.file,
        line=collective.line,
        bytes=given["bytes"],
        runs=collective.runs,
        text=text.format(**words),
        repair=repair.format(**words),
    )
