# SPDX-License-Identifier: Apache-2.0
"""Digests by which processes compare their operations and values."""

from __future__ import annotations

import hashlib


def digest_of(identity: str | bytes) -> bytes:
    """Returns 32 bytes that are equal where the identities are."""
    data = identity.encode() if isinstance(identity, str) else identity
    return hashlib.blake2b(data, digest_size=32).digest()
