# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the API reference, docs/reference/*.rst: each public name once, on the page of its task."""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "artifex_devices"


@dataclass(frozen=True)
class Page:
    """One page of the reference.

    Attributes:
        name: File name without its suffix.
        title: Heading.
        names: Names of the package itself, separated by spaces.
        modules: Public modules, separated by spaces: all of their names.
    """

    name: str
    title: str
    names: str = ""
    modules: str = ""


PAGES = (
    Page(
        "devices",
        "Devices and worlds",
        "devices local_devices device_count local_device_count default_backend default_device simulate Device Client "
        "Machine process_count process_index process_indices host_count host_id host_ids find_accelerators "
        "AcceleratorReport FoundAccelerator NvLink shutdown clear_caches print_environment_info",
        "device_manager compat",
    ),
    Page("meshes", "Meshes and shardings", "set_mesh", "sharding mesh mesh_utils"),
    Page(
        "placing",
        "Placing and moving data",
        "device_put device_get reshard with_sharding_constraint block_until_ready copy_to_host_async HostCopy "
        "make_array_from_callback make_array_from_single_device_arrays make_array_from_process_local_data "
        "device_put_replicated device_put_sharded transfer_guard transfer_guard_host_to_device "
        "transfer_guard_device_to_device transfer_guard_device_to_host",
        "device_placement layout dlpack",
    ),
    Page("input", "Input", "", "data"),
    Page("batches", "Batches and prefetching", "", "prefetch batch_placement"),
    Page(
        "arrays", "Arrays", "Array Shard ShapeDtypeStruct typeof live_arrays enable_x64 reproducible", "array_api numpy"
    ),
    Page("checkpoints", "Checkpoints", "", "checkpoint checkpoint.rules"),
    Page("trees", "Trees of arrays", "", "tree tree_util"),
    Page("spmd", "SPMD programs and collectives", "shard_map smap pmap jit disable_jit", "lax experimental"),
    Page("processes", "Many processes", "", "distributed multihost_utils"),
    Page("debugging", "Memory, pictures and tests", "", "memory transfers debug render profiler doctor testing"),
    Page(
        "batch_size",
        "Batch sizes and rooflines",
        "get_batch_size_recommendation",
        "batch_measurement roofline accelerators",
    ),
    Page("planning", "Planning on clusters", "", "cluster models planner calibration"),
    Page("audits", "Audits of programs and shardings", "", "audit"),
    Page("configuration", "Settings and errors", "", "config errors"),
    Page("pjrt", "PJRT clients and layouts", "", "xla_client"),
    Page("programs", "Command line and pickles", "", "command_line unpickle"),
)

# Modules whose names programs do not use: only their description is shown.
DESCRIBED = ("unpickle",)


@dataclass(frozen=True)
class Name:
    """A public name: `module` is the path of its module, `value` its object."""

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def directive(self) -> str:
        if isinstance(self.value, type):
            return "autoexception" if issubclass(self.value, BaseException) else "autoclass"
        return "autofunction" if inspect.isroutine(self.value) else "autodata"


def public_names(module: str) -> list[Name]:
    """The names in `__all__` of a public module that are not modules."""
    found = importlib.import_module(module)
    names = [Name(module, name, getattr(found, name)) for name in found.__all__]
    return [name for name in names if not inspect.ismodule(name.value)]


def all_names() -> list[Name]:
    """Every public name of the package and of its public modules."""
    modules = [f"{PACKAGE}.{module}" for page in PAGES for module in page.modules.split() if module not in DESCRIBED]
    return [name for module in (PACKAGE, *modules) for name in public_names(module)]


def home_of(names: list[Name]) -> Name:
    """The one of several names of an object under which it is documented."""
    value = names[0].value
    defined = getattr(value, "__module__", "")
    own = [name for name in names if (name.module, name.name) == (defined, getattr(value, "__name__", ""))]
    inside = [name for name in names if name.module != PACKAGE and f"{defined}.".startswith(f"{name.module}.")]
    return (own or inside or names)[0]


def homes() -> dict[str, Name]:
    """The documented name of each public name, by path."""
    same: dict[Any, list[Name]] = {}
    for name in all_names():
        kind = name.value if isinstance(name.value, type) else type(name.value)
        is_shared = kind is name.value or inspect.isroutine(name.value) or kind.__module__.startswith(PACKAGE)
        same.setdefault(id(name.value) if is_shared else name.path, []).append(name)
    return {name.path: home_of(names) for names in same.values() for name in names}


def is_foreign(name: Name) -> bool:
    """Whether another library documents it, as NumPy does its functions and dtypes."""
    defined = getattr(name.value, "__module__", None) or type(name.value).__module__
    return name.module == f"{PACKAGE}.array_api" and not defined.startswith(PACKAGE)


def heading(text: str, sign: str) -> str:
    return f"{text}\n{sign * len(text)}\n"


def documented(names: Iterable[Name]) -> str:
    """A table of names, followed by their descriptions."""
    names = list(names)
    if not names:
        return ""
    table = "\n".join(f"   {name.name}" for name in names)
    parts = [f".. autosummary::\n   :nosignatures:\n\n{table}\n"]
    for name in names:
        options = ""
        if name.directive == "autoclass":
            options = "   :members:\n"
            bases = [base for base in name.value.__bases__ if not base.__name__.startswith("_")]
            if any(base.__module__.startswith(PACKAGE) for base in bases):
                options += "   :show-inheritance:\n"
            if issubclass(name.value, enum.Enum):
                options += "   :undoc-members:\n"
        elif name.directive == "autodata":
            options = "   :no-value:\n"
        elif name.directive == "autoexception":
            options = "   :show-inheritance:\n"
        parts.append(f".. {name.directive}:: {name.path}\n{options}")
    return "\n".join(parts)


def module_section(module: str, home: dict[str, Name]) -> str:
    """The section of one public module."""
    path = f"{PACKAGE}.{module}"
    parts = [heading(path, "-"), f".. automodule:: {path}\n   :no-members:\n"]
    if module not in DESCRIBED:
        names = public_names(path)
        parts.append(documented(name for name in names if home[name.path].path == name.path and not is_foreign(name)))
        others = [name for name in names if home[name.path].path != name.path]
        if others:
            parts.append("Other names, documented elsewhere:\n")
            parts += [f"* ``{name.name}``: :py:obj:`{home[name.path].path}`" for name in others]
            parts.append("")
        foreign = [f":py:obj:`{name.name} <numpy.{name.name}>`" for name in names if is_foreign(name)]
        if foreign:
            parts.append(f"NumPy's names, which accept Arrays: {', '.join(foreign)}.\n")
    return "\n".join(parts)


def page_text(page: Page, home: dict[str, Name]) -> str:
    """One page in reStructuredText."""
    parts = [heading(page.title, "=")]
    if page.names:
        parts.append(f".. py:{'module' if page is PAGES[0] else 'currentmodule'}:: {PACKAGE}\n")
        package = {name.name: name for name in public_names(PACKAGE)}
        parts.append(documented(package[name] for name in page.names.split()))
    parts += [module_section(module, home) for module in page.modules.split()]
    return "\n".join(parts)


def index_text(home: dict[str, Name]) -> str:
    """The first page of the reference."""
    aliases = [name for name in public_names(PACKAGE) if home[name.path].path != name.path]
    return "\n".join(
        [
            heading("API reference", "="),
            "Every public name, by task. Private modules begin with an underscore; anything in them may change.\n",
            ".. toctree::\n   :maxdepth: 1\n",
            *(f"   {page.name}" for page in PAGES),
            "   types",
            "   File formats </formats/README>",
            "",
            heading("Names of the package", "-"),
            f"These names of ``{PACKAGE}`` are documented with the module that defines them:\n",
            *(f"* ``{name.name}``: :py:obj:`{home[name.path].path}`" for name in aliases),
            "",
        ]
    )


def pages() -> dict[str, str]:
    """The text of each page, by file name.

    Raises:
        ValueError: PAGES lacks a name of the package, or has a name twice, or an unknown name.
    """
    home = homes()
    listed = sorted(name for page in PAGES for name in page.names.split())
    wanted = sorted(name.name for name in public_names(PACKAGE) if home[name.path].path == name.path)
    if listed != wanted:
        missing, unknown = sorted(set(wanted) - set(listed)), sorted(set(listed) - set(wanted))
        raise ValueError(
            f"reference_pages: PAGES differs from the public names; missing {missing}, unknown {unknown}, "
            f"expected each once; edit PAGES in docs/reference_pages.py"
        )
    return {"index.rst": index_text(home), **{f"{page.name}.rst": page_text(page, home) for page in PAGES}}


def write(folder: Path, others: Mapping[str, str]) -> None:
    """Writes the pages and `others`, where they differ, into `folder`, and removes all other pages."""
    folder.mkdir(exist_ok=True)
    texts = {**pages(), **others}
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
