# SPDX-License-Identifier: Apache-2.0
"""The user's line that called into the package, for warnings and tables of errors."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_frame(frame: FrameType) -> FrameType:
    """Returns the first frame outside of the package, from the current frame outwards, or else the outermost."""
    while frame.f_code.co_filename.startswith(PACKAGE_FOLDER) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def user_stacklevel() -> int:
    """Returns the `stacklevel` with which the calling function warns or logs at the user's line."""
    level = 1
    frame = sys._getframe(1)
    user = user_frame(frame)
    while frame is not user and frame.f_back is not None:
        frame = frame.f_back
        level += 1
    return level


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line, through any number of frames of the package; `skip_file_prefixes` is Python 3.12."""
    warnings.warn(message, category, stacklevel=user_stacklevel())
