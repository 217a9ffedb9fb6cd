// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/device/client.h"
#include "artifex_devices/device/device_list.h"
#include "artifex_devices/sharding/sharding.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The client of the calling context: the innermost simulated world, else the process's base client.
ClientRef current_client();

/// The client of a platform in the calling context, or null: the current client if it matches. For the CPU, it is else
/// the nearest outer world of CPU devices, or the CPU devices of this machine.
ClientRef client_of_platform(const std::string& platform);
/// The current client for a call that names its platform, without a check of jax_platform_name.
ClientRef client_of_named_platform();

/// Shared handle for Python; it keeps the client alive.
std::shared_ptr<Device> handle_of(Device* device);

/// Devices of the current world by id, as pickles name them. Throws InvalidArgument that names every missing device.
std::vector<Device*> find_devices(const std::string& platform, const std::vector<int64_t>& numbers);

/// All devices of a client as a tuple, cached while the client's world is open.
py::tuple devices_of(const ClientRef& client);

/// The SingleDeviceSharding of a device, cached while its world is open.
ShardingRef sharding_of(Device* device);

/// The Python objects of the devices of a list, from the world's tuple if it exists: a cast by pybind11 takes a quarter
/// of a microsecond for each.
class DeviceObjects {
 public:
  explicit DeviceObjects(const DeviceList& devices);
  py::object operator()(Device* device) const {
    if (!all_) return py::cast(handle_of(device));
    return py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(all_.ptr(), device->id().number()));
  }

 private:
  py::object all_;  // null without a tuple
};

/// Whether it is the base client or the client of an open `simulate` block.
bool is_open_world(const Client& client);

/// Statistics of a device's memory as a dict; with a space also statistics of its physical memory.
py::dict memory_stats_dict(const DeviceMemoryStats& stats, const MemorySpace* space);

/// Casts away const for pybind11's holders; no bound function changes the object.
template <class T>
std::shared_ptr<T> unconst(std::shared_ptr<const T> pointer) {
  return std::const_pointer_cast<T>(std::move(pointer));
}

[[gnu::cold]] void bind_world(py::module_& module);

}  // namespace artifex_devices::bindings
