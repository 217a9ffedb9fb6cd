// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
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
/// process. Each process gets an equal share of cgroup limits, and of the memory of a node that it uses. Machines
/// returned earlier do not change, so call it before the first device is created. Throws InvalidArgument if `mine` has
/// no CPU of the affinity mask.
void restrict_live_machine(const CpuSet& mine, const std::vector<CpuSet>& all);

/// Where a process was started: its machine, and the CPUs that its affinity mask allows.
struct ProcessPlace {
  std::string machine;
  CpuSet cpus;
  friend bool operator==(const ProcessPlace&, const ProcessPlace&) = default;
};

/// Share of an affinity mask that a process uses: part `part` of the mask, which `processes` split into equal parts.
struct CpuShare {
  int part = 0;
  std::vector<int> processes;  // ascending
  int parts() const noexcept { return static_cast<int>(processes.size()); }
  friend bool operator==(const CpuShare&, const CpuShare&) = default;
};

/// Returns the share of each process. Processes with the same mask split it in order of their numbers; processes with
/// disjoint masks keep them. Throws InvalidArgument if masks overlap without being equal, and names all such pairs; the
/// message contains `bind_flag`, the launcher's flag that binds processes.
///
///     plan_cpu_shares({{"a", {{0, 1}}}, {"a", {{0, 1}}}, {"b", {{0, 1}}}}, "-bind-to core");  // of 1: 1 of {0, 1}
std::vector<CpuShare> plan_cpu_shares(const std::vector<ProcessPlace>& places, std::string_view bind_flag);

/// Restricts this process, number `process`, to its share of the live machine. Returns its CPUs.
CpuSet take_cpu_share(const std::vector<ProcessPlace>& places, const std::vector<CpuShare>& shares, int process);

}  // namespace artifex_devices
