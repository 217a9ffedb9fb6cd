# SPDX-License-Identifier: Apache-2.0
"""Profiles of planner.read_profile as programs: which kinds of messages ran."""

from __future__ import annotations

from artifex_devices.audit.program import Program
from artifex_devices.audit.values import Collective
from artifex_devices.planner.profile import Profile

# Kinds of a profile, and of collectives.
_KINDS = {
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "all_to_all": "all_to_all",
    "send": "collective_permute",
}


def program_of_profile(profile: Profile) -> Program:
    """Returns a collective for each kind that has time in the profile. A profile has no sizes and no groups."""
    found = [_KINDS[kind] for kind, seconds in profile.busy.items() if kind in _KINDS and seconds > 0]
    return Program(
        source="profile",
        name=profile.source,
        devices=len(profile.devices),
        backend=None,
        is_partitioned=True,
        mesh=(),
        collectives=tuple(Collective(name="", kind=kind, runs=None) for kind in found),
        notes=(
            "a profile has the seconds of each kind of message: numbers, bytes and axes are unknown",
            *profile.notes,
        ),
    )
