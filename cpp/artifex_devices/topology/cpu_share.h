// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Shares a machine's CPUs out to `parts` processes, whole cores and, where there are enough, whole domains: as many
/// parts as domains or fewer get neighbouring domains; more parts are spread over the domains and split the cores of
/// theirs. More parts than cores share cores. Throws InvalidArgument for less than one part.
///
///     share_cpus(*Machine::from_synthetic("numa:2 core:2 pu:1"), 3);  // {0}, {1}, {2-3}
std::vector<CpuSet> share_cpus(const Machine& machine, int parts);

/// The share of part `part` in the CPUs of this process's affinity mask, shared out to `parts` processes that have the
/// same mask. Reads the machine anew, and leaves Machine::live() as it is.
CpuSet share_of_live_cpus(int part, int parts);

/// From now on Machine::live() has only `mine` of its CPUs. `all` are the shares of every process of this machine, mine
/// among them: a cgroup's limits are divided by their number, a node's memory by the number of those that use it.
/// Machines that were handed out stay as they are, so call it before the first device. Throws InvalidArgument when
/// `mine` has no CPU of the affinity mask.
void restrict_live_machine(const CpuSet& mine, const std::vector<CpuSet>& all);

}  // namespace artifex_devices
