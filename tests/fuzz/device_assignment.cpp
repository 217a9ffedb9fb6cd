// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_assignment.h"

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto read = DeviceAssignment::deserialize(fuzz::text_of(data, size));
    fuzz::require(DeviceAssignment::deserialize(read.serialize()) == read);
    const auto [replica, computation] = read.logical_ids_for_device(read.ordinals().back());
    fuzz::require(replica == read.replica_count() - 1 && computation == read.computation_count() - 1);
    fuzz::require(!read.to_string().empty());
  } catch (const InvalidArgument&) {
  }
  return 0;
}
