// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/machine.h"
#include "fuzz.h"
#include "hwloc_leaks.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto machine = Machine::from_xml_text(fuzz::text_of(data, size));
    fuzz::require(!machine->cpu_domains().empty() && machine->usable_cpus() >= 1);
    for (const CpuDomain& domain : machine->cpu_domains()) fuzz::require(!domain.cpus.cpus.empty());
  } catch (const InvalidArgument&) {
  }
  return 0;
}
