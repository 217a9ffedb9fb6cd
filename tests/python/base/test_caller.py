# SPDX-License-Identifier: Apache-2.0
"""Warnings and records name the user's line."""

from __future__ import annotations

import sys
import types
import warnings

from artifex_devices._base import caller
from artifex_devices.distributed.flight_records import FlightRecords, read_job


def test_frames_of_the_package_are_skipped():
    package = types.ModuleType("inside")
    code = "def inner(warn): warn('text', RuntimeWarning)\ndef outer(warn): inner(warn)\n"
    exec(compile(code, caller.__file__, "exec"), package.__dict__)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        package.outer(caller.warn_user)
        line = sys._getframe().f_lineno - 1
    assert [(entry.filename, entry.lineno) for entry in caught] == [(__file__, line)]


def test_the_frame_of_a_user_is_itself():
    frame = sys._getframe()
    assert caller.user_frame(frame) is frame


def test_each_call_is_recorded_with_its_own_line_also_when_it_is_repeated(tmp_path):
    group = FlightRecords(str(tmp_path), 0, 1, "host").group((0,))

    def call():
        group.meet("first", bytes(32))
        group.meet("second", bytes(32))

    package = {"__name__": "artifex_devices.part"}
    exec("def through(function):\n    function('third', bytes(32))", package)
    for _ in range(2):
        call()
        package["through"](group.meet)
    first = call.__code__.co_firstlineno
    lines = [first + 1, first + 2, first + 8] * 2
    (record,) = read_job(str(tmp_path))
    assert [(event.operation, event.line) for event in record.events] == list(
        zip(["first", "second", "third"] * 2, lines, strict=True)
    )
    assert {event.file for event in record.events} == {shown_path(__file__)}


def shown_path(path):
    return path if len(path) <= 64 else f"...{path[-61:]}"
