# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
Programs as texts of HLO and StableHLO.
"""

import collections.abc
import typing

__all__: list[str] = ["read_program", "ring_bytes"]

def read_program(text: str | bytes, mesh: collections.abc.Sequence[tuple[str, int]]) -> dict[str, typing.Any]: ...
def ring_bytes(kind: str, bytes: int | None, size: int) -> int | None: ...
