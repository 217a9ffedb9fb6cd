# SPDX-License-Identifier: Apache-2.0
"""Warnings name the user's line."""

from __future__ import annotations

import sys
import types
import warnings

from artifex_devices._base import caller


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
