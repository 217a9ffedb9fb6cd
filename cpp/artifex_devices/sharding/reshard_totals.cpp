// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/reshard_totals.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

std::vector<int64_t> ids_of(const DeviceList& devices) {
  std::vector<int64_t> ids;
  ids.reserve(devices.size());
  for (const Device* device : devices.devices()) ids.push_back(device->id().number());
  return ids;
}

}  // namespace

IngressTotals reshard_totals(const Sharding& source, const Sharding& destination, const Dims& shape, int64_t itemsize,
                             std::string_view operation) {
  check_has_devices(source, operation);
  check_has_devices(destination, operation);
  const DeviceList& from_devices = *source.devices();
  const DeviceList& to_devices = *destination.devices();
  if (from_devices.client() != to_devices.client()) {
    throw_error(
        "{}: source and destination are of different worlds; expected devices of one world, got {} and {}; make both "
        "meshes in one simulate block",
        operation, source.to_string(), destination.to_string());
  }
  const ShardDomains from = source.domains(shape, operation);
  const ShardDomains to = destination.domains(shape, operation);
  if (from_devices == to_devices) return ingress_totals(from, to, itemsize, operation);
  return ingress_totals(from, ids_of(from_devices), to, ids_of(to_devices), itemsize, operation);
}

}  // namespace artifex_devices
