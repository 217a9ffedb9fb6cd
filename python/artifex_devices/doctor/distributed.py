# SPDX-License-Identifier: Apache-2.0
"""This process's part in a job of many: who started it, which number it has, what CPUs and memory it shares."""

from __future__ import annotations

from artifex_devices.doctor.facts import Section


def distributed() -> Section:
    """What launchers and distributed.initialize() say; MPI is not initialized."""
    from artifex_devices._base.text import cpu_list
    from artifex_devices.distributed import job
    from artifex_devices.distributed.launcher import find_launcher

    section = Section("Many processes")
    launcher = find_launcher()
    variables = "environment variables of launchers"
    absent = None if launcher else "no launcher of MPI has started this process"
    section.add("launcher", launcher.name if launcher else None, variables, problem=absent)
    if launcher is not None:
        count = launcher.process_count
        problem = None if count is not None else "the launcher does not say it"
        section.add("launched_processes", count, variables, unit="processes", problem=problem)

    joined = job.members()
    source = "distributed.initialize()"
    if joined is None:
        section.add("rank", None, source, problem="it was not called in this process")
        return section
    me, members, near = joined
    section.add("rank", me, source)
    section.add("processes", len(members), source, unit="processes")
    section.add("cpus", cpu_list(members[me].cpus), source)
    shares = [{"process": each.name, "cpus": cpu_list(each.cpus)} for each in members]
    section.add("shares", shares, source)
    section.add("shares_memory_with", list(near), source)
    return section
