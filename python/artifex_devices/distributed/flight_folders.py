# SPDX-License-Identifier: Apache-2.0
"""Folders of flight records, one for each job on each host, and their removal when 20 later ones exist."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import stat
import time
from collections.abc import Iterator

from artifex_devices._core import internal

SUFFIX = ".flight"
_JOBS_KEPT = 20  # folders of failed jobs; a process that exits normally deletes its file
_JOB = re.compile(r"\d{8}-\d{6}-\d+(-\d+)?")
_RECORD = re.compile(rf"process_\d+{re.escape(SUFFIX)}")
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_RECORD = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # for writing, as locks on NFS need it


@contextlib.contextmanager
def opened_folder(directory: str) -> Iterator[tuple[str, int]]:
    """Opens the folder of all jobs, and creates it if it is missing; yields its full path and a descriptor.

    PermissionError if the folder is a link or belongs to another user.
    """
    path = os.path.join(os.getcwd(), directory.rstrip("/") or directory)
    _make_folders(path)
    if os.path.islink(path):
        raise PermissionError(f"{path} is a link; expected a folder of this user; give the folder {os.readlink(path)}")
    opened = os.open(path, _OPEN_FOLDER)
    try:
        owner = os.fstat(opened).st_uid
        if owner != os.getuid():
            raise PermissionError(f"{directory} belongs to user {owner}; expected a folder of this user")
        yield path, opened
    finally:
        os.close(opened)


def remove_old_jobs(directory: int, own: str) -> None:
    """Removes the folders of all jobs except the last ones, which include `own`.

    A folder is removed only if records of this host and user are all that it contains, and no process has locked one.
    """
    jobs = sorted(name for name in os.listdir(directory) if name != own and _JOB.fullmatch(name))
    for name in jobs[: -(_JOBS_KEPT - 1)]:
        _remove_if_ended(directory, name)


def _make_folders(path: str) -> None:
    """Creates a folder and its missing parents, for this user only.

    PermissionError where the path leads through a name that another user has put in a folder open to everyone, such as
    a link in /tmp.
    """
    parent = os.path.dirname(path)
    if parent == path:
        return
    _make_folders(parent)
    if not os.path.lexists(path):
        with contextlib.suppress(FileExistsError):  # another process of this user was faster
            os.mkdir(path, mode=0o700)
    owner = os.lstat(path).st_uid
    if os.stat(parent).st_mode & stat.S_IWOTH and owner not in (0, os.getuid()):
        raise PermissionError(f"{path} belongs to user {owner}; expected a folder of this user")


def new_job(directory: int) -> str:
    """Creates the folder of a new job in the folder of all jobs; returns its name."""
    name = first = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    for number in range(1, 100):
        try:
            os.mkdir(name, mode=0o700, dir_fd=directory)
        except FileExistsError:  # a process of another PID namespace has the same number
            name = f"{first}-{number}"
        else:
            return name
    raise FileExistsError(f"{first} and {number} similar names exist already")


def _remove_if_ended(directory: int, name: str) -> None:
    """Removes the folder of a job of this host and user that has ended; does not touch other folders."""
    with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as opened:
        folder = os.open(name, _OPEN_FOLDER, dir_fd=directory)
        opened.callback(os.close, folder)
        records = os.listdir(folder)
        if not records or os.fstat(folder).st_uid != os.getuid():
            return
        for record in records:
            if not _RECORD.fullmatch(record):
                return
            file = os.open(record, _OPEN_RECORD, dir_fd=folder)
            opened.callback(os.close, file)
            if not _is_ours(file):
                return
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while its process runs
        for record in records:
            os.unlink(record, dir_fd=folder)
        os.rmdir(name, dir_fd=directory)


def _is_ours(file: int) -> bool:
    """Returns whether an open file is a flight record of this user and host; locks may not reach other hosts."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        return False
    return is_host_here(internal.read_flight_record(f"/proc/self/fd/{file}").host)


def is_host_here(host: str) -> bool:
    """Returns whether a record with this name of a host, which may be cut, comes from this host."""
    return host != "" and host == socket.gethostname()[: len(host)]
