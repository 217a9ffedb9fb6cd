// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/machine.h"
#include "fuzz.h"
#include "hwloc_leaks.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto machine = Machine::from_synthetic(std::string(fuzz::text_of(data, size)));
    fuzz::require(!machine->cpu_domains().empty() && machine->counts().pus <= 4096);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
