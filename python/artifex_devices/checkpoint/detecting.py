# SPDX-License-Identifier: Apache-2.0
"""Which formats a path may have, by the contents of a file or the names in a folder."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from artifex_devices._base.text import shortened_list
from artifex_devices.checkpoint import manifest
from artifex_devices.checkpoint.readers.torch_archive import INDEX, model_files
from artifex_devices.checkpoint.readers.zip_members import BoundedFile

FORMATS = ("artifex", "safetensors", "dcp", "orbax", "npz", "torch")
_SHOWN = 8  # entries of a folder in a message
_LEGACY_TORCH = b"\x80\x02\x8a\x0a"  # before PyTorch 1.6: a pickle of a large integer
_ITEMS = ("default", "items")  # names that Orbax gives to the arrays of a step
_FILES = (".safetensors", ".json", ".distcp", ".bin")  # files of other formats, of which there may be many
_ORBAX = ("_METADATA", "manifest.ocdbt", "_sharding")


class Candidate(NamedTuple):
    """A family of formats that a path may have.

    Attributes:
        family: "stored" (artifex, safetensors or dcp, which their headers distinguish), "distcp", "torch", "npz" or
            "orbax".
        formats: The formats that it may be.
        path: Path that is opened: the given one, or an item in its folder.
        reason: What shows the family, as the end of a sentence.
        files: Files whose links are checked, by their paths below the given folder; empty for a file.
    """

    family: str
    formats: tuple[str, ...]
    path: str
    reason: str
    files: tuple[str, ...] = ()


def candidates(path: str) -> list[Candidate]:
    """Returns the families that a path may have; nothing for one that cannot be read: the core raises its error."""
    try:
        if os.path.isfile(path):
            return list(_of_file(path))
        names = _listed(path)
        return [found for find in _FOLDERS if (found := find(path, names)) is not None]
    except OSError:
        return []


def _listed(path: str) -> list[str]:
    """Returns the names in a folder, sorted; again if a save has replaced the folder meanwhile."""
    while True:
        folder = os.stat(path)
        names = sorted(os.listdir(path))
        if os.path.samestat(folder, os.stat(path)):
            return names


def seen_in(path: str) -> str:
    """Returns what a message lists about a path of no known format."""
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        return f"the folder has {shortened_list(list(map(ascii, names)), _SHOWN)}" if names else "the folder is empty"
    with open(path, "rb") as file:
        return f"the file begins with {file.read(8)!r}"


def _of_file(path: str) -> Iterator[Candidate]:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    if len(head) == 9 and head[8:] == b"{" and length <= size - 8:
        yield Candidate("stored", ("safetensors", "dcp"), path, "the file begins with a header of safetensors")
    if head.startswith(b"\x93NUMPY"):
        yield Candidate("npy", ("npz",), path, "the file begins as numpy.save writes it")
    if head.startswith(_LEGACY_TORCH):
        yield Candidate("torch", ("torch",), path, "the file begins as torch.save wrote it before PyTorch 1.6")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        yield from _of_zip(path)
    if path.endswith(INDEX):
        yield Candidate("torch", ("torch",), path, f"the name ends with {INDEX}", _beside(path, ".bin"))
    elif path.endswith(".safetensors.index.json"):
        reason = "the name ends with .safetensors.index.json"
        yield Candidate("stored", ("safetensors",), path, reason, _beside(path, ".safetensors"))


def _beside(path: str, suffix: str) -> tuple[str, ...]:
    """Returns the files that an index may name."""
    return tuple(name for name in os.listdir(os.path.dirname(path)) if name.endswith(suffix))


def _of_zip(path: str) -> Iterator[Candidate]:
    try:
        with BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return
    if any(name.endswith("data.pkl") for name in names):
        yield Candidate("torch", ("torch",), path, "the file is an archive with data.pkl, as torch.save writes it")
    elif all(name.endswith(".npy") for name in names):
        yield Candidate("npz", ("npz",), path, "the file is an archive of .npy files")


def _stored(path: str, names: list[str]) -> Candidate | None:
    files = tuple(name for name in names if name.endswith((".safetensors", ".safetensors.index.json")))
    if manifest.FILE in names:
        return Candidate("stored", ("artifex",), path, f"the folder has {manifest.FILE}", (manifest.FILE, *files))
    if not files:
        return None
    return Candidate("stored", ("safetensors", "dcp"), path, f"the folder has {files[0]}", files)


def _distcp(path: str, names: list[str]) -> Candidate | None:
    files = tuple(name for name in names if name.endswith(".distcp"))
    if not files and ".metadata" not in names:
        return None
    reason = f"the folder has {files[0] if files else '.metadata'}"
    return Candidate("distcp", ("dcp",), path, reason, (*files, ".metadata"))


def _torch(path: str, names: list[str]) -> Candidate | None:
    files = (*model_files(names), *(name for name in names if name.endswith(INDEX)))
    return Candidate("torch", ("torch",), path, f"the folder has {files[0]}", files) if files else None


def _npz(path: str, names: list[str]) -> Candidate | None:
    files = [name for name in names if name.endswith((".npz", ".npy"))]
    if len(files) != 1 or len(names) != 1:
        return None
    file = os.path.join(path, files[0])
    family = "npz" if files[0].endswith(".npz") else "npy"
    return Candidate(family, ("npz",), file, f"the only file of the folder is {files[0]}", tuple(files))


def _orbax(path: str, names: list[str]) -> Candidate | None:
    found = _orbax_item(path, "", names)
    for item in _ITEMS:
        if found is None and item in names and os.path.isdir(os.path.join(path, item)):
            found = _orbax_item(path, item, _listed(os.path.join(path, item)))
    return found


def _orbax_item(path: str, item: str, names: list[str]) -> Candidate | None:
    folder = os.path.join(path, item) if item else path
    known = [name for name in _ORBAX if name in names] or [
        f"{name}/{header}"
        for name in names
        for header in (".zarray", "zarr.json")
        if not name.endswith(_FILES) and os.path.isfile(os.path.join(folder, name, header))
    ]
    if not known:
        return None
    files = [
        os.path.relpath(os.path.join(at, name), path) for at, dirs, below in os.walk(folder) for name in dirs + below
    ]
    reason = f"the folder has {os.path.join(item, known[0])}"
    return Candidate("orbax", ("orbax",), folder, reason, (item, *files) if item else tuple(files))


_ABSENT = {
    "stored": "artifex, safetensors: it has no checkpoint.json and no .safetensors file",
    "distcp": "dcp in .distcp files: it has none",
    "torch": "torch: it has no .bin, .pt or .pth file of a model",
    "npz": "npz: it is not one .npz or .npy file",
    "orbax": "orbax: it has no _METADATA, _sharding or manifest.ocdbt",
}


def why_not_others(chosen: Candidate, found: list[Candidate]) -> tuple[str, ...]:
    """Returns sentences on the formats that were not chosen."""
    others = tuple(f"It also has {each.formats[0]}: {each.reason}." for each in found if each.family != chosen.family)
    if not chosen.files:
        return (*others, "It is not another format: files of other formats begin with other bytes.")
    absent = [
        text for family, text in _ABSENT.items() if family not in {chosen.family, *(each.family for each in found)}
    ]
    return (*others, f"It is not {'; not '.join(absent)}.")


_FOLDERS: tuple[Callable[[str, list[str]], Candidate | None], ...] = (_stored, _distcp, _torch, _npz, _orbax)
