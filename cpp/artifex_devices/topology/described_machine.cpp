// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/described_machine.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

MachineDescription MachineDescription::of(const Machine& machine, std::string platform_version) {
  return {.source = machine.source(),
          .platform_version = std::move(platform_version),
          .counts = machine.counts(),
          .numa_nodes = machine.numa_nodes(),
          .cpu_domains = machine.cpu_domains(),
          .usable_cpus = machine.usable_cpus(),
          .usable_memory_bytes = machine.usable_memory_bytes()};
}

std::string DescribedMachine::to_xml() const {
  throw_error<Unavailable>(
      "to_xml: this machine is known from a DeviceTopology only, which has no caches or distances; expected a machine "
      "that hwloc loaded; write the XML where the machine is");
}

}  // namespace artifex_devices
