// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Divides a machine's CPUs among `parts` processes. Up to as many parts as domains get adjacent whole domains; more
/// parts are spread over the domains and divide the cores of each domain. More parts than cores share cores. Throws
/// InvalidArgument if `parts` is below 1.
///
///     share_cpus(*Machine::from_synthetic("numa:2 core:2 pu:1"), 3);  // {0}, {1}, {2-3}
std::vector<CpuSet> share_cpus(const Machine& machine, int parts);

/// Returns the CPUs of part `part` when the CPUs of this process's affinity mask are divided among `parts` processes
/// with the same mask. Loads the machine again and does not change Machine::live().
CpuSet share_of_live_cpus(int part, int parts);

/// Restricts Machine::live() to the CPUs in `mine`. `all` has the CPUs of every process on this machine, including this
/// one: cgroup limits are divided by their number, a node's memory by the number of processes that use it. Machines
/// returned earlier do not change, so call it before the first device is created. Throws InvalidArgument if `mine` has
/// no CPU of the affinity mask.
void restrict_live_machine(const CpuSet& mine, const std::vector<CpuSet>& all);

}  // namespace artifex_devices
