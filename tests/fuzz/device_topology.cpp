// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_topology.h"

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto read = DeviceTopology::deserialize(fuzz::text_of(data, size));
    const auto again = DeviceTopology::deserialize(read.serialize());
    fuzz::require(again == read && again.devices() == read.devices());
    if (read.device_count() > 4096) return 0;
    const ClientRef client = read.make_compile_only_client();
    fuzz::require(client->device_count() == read.device_count());
    const auto described = DeviceTopology::of(*client, "");
    fuzz::require(described.platform_version() == read.platform_version());
    fuzz::require(described.device_count() == read.device_count());
  } catch (const InvalidArgument&) {
  } catch (const Unavailable&) {  // devices of another platform
  }
  return 0;
}
