# SPDX-License-Identifier: Apache-2.0
"""The rooms of the Python package, in their one-way order, and the checks of imports that keep them so.

tools/check_layers.py runs these checks. Decision 0027 says why the rooms are as they are.
"""

from __future__ import annotations

import ast
import pickletools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "artifex_devices"
FOLDER = f"python/{PACKAGE}"
EXTENSIONS = ("_core", "_planner")
PLANNER_ROOMS = ("_hardware", "roofline", "planner")  # that use the second one

# A room imports itself and rooms on earlier lines. A name with an underscore is private, the others are public.
ORDER = (
    ("_base",),
    ("errors", "config", "_tree", "render"),
    ("tree_util",),
    ("tree", "_runtime"),
    ("layout", "memory", "transfers"),
    ("_placement",),
    ("sharding", "dlpack", "debug", "xla_client"),
    ("_array_ops", "_hardware"),
    ("accelerators", "array_api", "_array", "mesh", "batch_placement"),
    ("prefetch", "distributed", "numpy"),
    ("device_placement", "multihost_utils", "device_manager", "batch_measurement", "checkpoint"),
    ("_spmd", "roofline", "mesh_utils", "data"),
    ("lax", "profiler", "planner", "doctor"),
    ("audit",),
    ("models", "cluster", "calibration", "experimental", "compat"),
    ("command_line", "testing", "unpickle"),
    ("__main__",),
)

# Rooms whose functions may import: a command loads only its own modules, a report survives a broken one.
LAZY_ROOMS = ("command_line", "doctor")
# Modules that other functions may import: rarely needed ones, and those that slow down the first import.
LAZY = (
    "_array.html",
    "_array_ops",
    "_base.absent_names",
    "_base.argument_hints",
    "_base.nearest_name",
    "_hardware.batch_size",
    "_placement.construct",
    "_placement.target",
    "_runtime.devices",
    "_spmd",
    "array_api",
    "batch_measurement.report",
    "calibration.processes",
    "checkpoint",
    "distributed",
    "roofline.chart",
    "tree_util",
)
LAZY_LIBRARIES = (
    "array_record", "colorsys", "difflib", "importlib", "itertools", "logging", "matplotlib", "ml_dtypes", "mpi4py",
    "numpy", "pyarrow", "rich", "tensorstore", "threadpoolctl", "torch",
)  # fmt: skip

# Third-party libraries and the only files that import them.
LIBRARIES = {
    "array_record": ("data/array_record_files.py",),
    "greenlet": ("_spmd/cooperative.py",),
    "matplotlib": ("_base/charts.py",),
    "mpi4py": ("calibration/processes.py", "distributed/mpi_runtime.py", "doctor/libraries.py"),
    "pyarrow": ("data/arrow_files.py",),
    "rich": (
        "_base/progress.py",
        "_base/rich_console.py",
        "batch_measurement/report.py",
        "calibration/run.py",
        "command_line/doctor.py",
        "debug.py",
    ),
    "tensorstore": ("checkpoint/readers/orbax_reader.py",),
    "torch": ("checkpoint/readers/torch_library.py", "data/torch_loading.py"),
    "threadpoolctl": ("_base/blas_threads.py", "doctor/libraries.py", "roofline/measurement.py"),
}

# The one file of the bindings that names Python modules.
BINDING_IMPORTS = "cpp/bindings/python_modules.h"

_TIER = {name: number for number, names in enumerate(ORDER) for name in names}
_PUBLIC = re.compile(rf"\b{PACKAGE}((?:\.\w+)+)")


@dataclass(frozen=True)
class Import:
    """One imported module, as a dotted name below the package, or a library's name."""

    line: int
    target: str
    is_ours: bool
    is_in_function: bool
    is_by_name: bool  # by import_module


def read_imports(tree: ast.AST, modules: set[str]) -> Iterator[Import]:
    """Yields the imports of a module in the order of its lines."""

    def named_in(call: ast.Call) -> list[str]:
        """Modules of the package that import_module() may import: any text may stand for a part of an f-string."""
        if "import_module" not in ast.dump(call.func) or not call.args:
            return []
        parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else [call.args[0]]
        texts = [str(part.value) if isinstance(part, ast.Constant) else None for part in parts]
        pattern = re.compile("".join(r"[\w.]+" if text is None else re.escape(text) for text in texts))
        starts_with_package = texts[0] is not None and texts[0].startswith(f"{PACKAGE}.")
        return [
            f"{PACKAGE}.{name}" for name in modules if starts_with_package and pattern.fullmatch(f"{PACKAGE}.{name}")
        ]

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            names: list[str] = []
            line = getattr(child, "lineno", 0)
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom) and child.module:
                names = [f"{child.module}.{alias.name}" for alias in child.names]
            elif isinstance(child, ast.Call):
                for name in named_in(child):
                    yield Import(line, name.removeprefix(f"{PACKAGE}."), True, in_function, True)
            for name in names:
                top, _, rest = name.partition(".")
                if top != PACKAGE:
                    yield Import(line, top, False, in_function, False)
                    continue
                while rest and rest not in modules and rest.partition(".")[0] not in EXTENSIONS:
                    rest = rest.rpartition(".")[0]
                yield Import(line, rest, True, in_function, False)
            yield from visit(child, in_function or is_function)

    return visit(tree, False)


def check_imports(root: Path) -> Iterator[str]:
    """Yields violations of the order, circles, imports in functions and misplaced libraries.

    Imports for type checkers, inside functions and by import_module() count for circles too: modules in a circle cannot
    be understood, tested or moved one by one.
    """
    package = root / FOLDER
    files = {_module_name(path.relative_to(package)): path for path in sorted(package.rglob("*.py"))}
    modules = set(files) - {""}
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        shown = path.relative_to(root).as_posix()
        room = name.partition(".")[0]
        if room and room not in _TIER:
            yield f"{shown}:1: {room} is in no line of ORDER in tools/python_rooms.py"
            continue
        for found in read_imports(ast.parse(path.read_text(encoding="utf-8")), modules):
            place = f"{shown}:{found.line}"
            if not found.is_ours:
                allowed = LIBRARIES.get(found.target)
                if allowed is not None and path.relative_to(package).as_posix() not in allowed:
                    yield f"{place}: imports {found.target}; only {', '.join(allowed)} may"
                if found.is_in_function and room not in LAZY_ROOMS and found.target not in LAZY_LIBRARIES:
                    yield f"{place}: imports {found.target} inside a function; import it at the top of the file"
                continue
            target = found.target
            if target not in ("", name):
                graph[name].add(target)
            if found.is_by_name:
                continue
            if target.partition(".")[0] == "_planner" and room not in PLANNER_ROOMS:
                yield f"{place}: imports _planner; only {', '.join(PLANNER_ROOMS)} may"
            if target.partition(".")[0] in EXTENSIONS or not room:
                continue
            if not target:
                if room not in (*LAZY_ROOMS, "testing"):  # the last rooms use the package as its users do
                    yield f"{place}: imports the package itself; import the module that defines the name"
                continue
            if found.is_in_function and room not in LAZY_ROOMS and not target.startswith(LAZY):
                yield f"{place}: imports {target} inside a function; it is not in LAZY of tools/python_rooms.py"
            other = target.partition(".")[0]
            is_lazy = found.is_in_function and target.startswith(LAZY)
            if other != room and _TIER[other] >= _TIER[room] and not is_lazy:
                yield f"{place}: {room} imports {target}, but {other} does not stand before {room}"
    for circle in _circles(graph):
        yield f"{FOLDER}: import circle: {' -> '.join(circle)}"


def _module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix("__init__").rstrip(".")


def _circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    finished: set[str] = set()

    def visit(name: str, stack: list[str]) -> Iterator[list[str]]:
        if name in stack:
            yield [*stack[stack.index(name) :], name]
        elif name not in finished:
            for target in sorted(graph.get(name, ())):
                yield from visit(target, [*stack, name])
            finished.add(name)

    for name in sorted(graph):
        yield from visit(name, [])


def check_public_paths(root: Path) -> Iterator[str]:
    """Yields places in docs, examples and pickles that name a private module."""
    package = root / FOLDER
    public = {name for names in ORDER for name in names if not name.startswith("_")}
    inner = {
        f"{path.parent.name}.{path.stem}"
        for name in public
        for path in (
            *(package / name).glob("*.py"),
            *(found.parent for found in (package / name).glob("*/__init__.py")),
        )
        if path.stem != "__init__"
    }
    inner -= {"checkpoint.rules", "compat.artifex", "experimental.shard_map"}

    def is_private(path: str) -> bool:
        parts = path.strip(".").split(".")
        return (parts[0].startswith("_") and not parts[0].startswith("__")) or ".".join(parts[:2]) in inner

    texts = [
        root / "README.md",
        *(page for page in sorted((root / "docs").rglob("*.md")) if page.parent.name != "decisions"),
        *sorted((root / "examples").rglob("*")),
    ]
    for path in texts:
        if path.suffix not in (".md", ".py", ".ipynb") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in _PUBLIC.finditer(line):
                if is_private(match[1]):
                    yield f"{path.relative_to(root).as_posix()}:{number}: names {match[0]}, which is private"
    for path in sorted((root / "tests" / "data" / "pickles").rglob("*.pickle")):
        for name in sorted(_globals_of(path)):
            if name.startswith(f"{PACKAGE}.") and is_private(name.removeprefix(f"{PACKAGE}.")):
                yield f"{path.relative_to(root).as_posix()}:1: names {name}, which is private"


def _globals_of(path: Path) -> set[str]:
    """Modules that the pickles of a file import."""
    found: set[str] = set()
    with path.open("rb") as file:
        while file.peek(1):
            texts: list[str] = []
            memo: dict[int, str] = {}
            last = ""
            for opcode, argument, _ in pickletools.genops(file):
                if opcode.name == "GLOBAL":
                    found.add(str(argument).partition(" ")[0])
                elif opcode.name == "STACK_GLOBAL":
                    found.add(texts[-2])
                elif opcode.name == "MEMOIZE":
                    memo[len(memo)] = last
                elif opcode.name in ("BINGET", "LONG_BINGET") and memo.get(int(str(argument))):
                    texts.append(memo[int(str(argument))])
                last = argument if isinstance(argument, str) else ""
                if last:
                    texts.append(last)
    return found


def check_binding_imports(root: Path) -> Iterator[str]:
    """Yields places in the bindings that import a Python module of the package by its name."""
    names = re.compile(rf'import\("{PACKAGE}\.(?!_core")')
    for path in sorted((root / "cpp" / "bindings").glob("*")):
        shown = path.relative_to(root).as_posix()
        if path.suffix not in (".h", ".cpp") or shown.startswith(BINDING_IMPORTS.removesuffix(".h")):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if names.search(line):
                yield f"{shown}:{number}: imports a Python module by name; {BINDING_IMPORTS} lists them"


def check_python(root: Path) -> list[str]:
    """Returns every violation of the Python rooms below `root`."""
    if not (root / FOLDER).is_dir():
        return []
    return [*check_imports(root), *check_public_paths(root), *check_binding_imports(root)]
