// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "bindings.h"

namespace artifex_devices::bindings {
namespace {

std::atomic<int64_t>& option(const std::string& name) {
  if (name == "cache_bytes") return config().cache_bytes;
  if (name == "parallel_copy_bytes") return config().parallel_copy_bytes;
  if (name == "async_copy_bytes") return config().async_copy_bytes;
  if (name == "trace_allocations") return config().trace_allocations;
  throw_error(
      "config: the core has no option {:?}; expected cache_bytes, parallel_copy_bytes, async_copy_bytes or "
      "trace_allocations; check the name",
      name);
}

}  // namespace

void bind_config(py::module_& module) {
  module.def("_config_read", [](const std::string& name) { return option(name).load(); }, py::arg("name"));
  module.def(
      "_config_write", [](const std::string& name, int64_t value) { option(name).store(value); }, py::arg("name"),
      py::arg("value"));
  module.def("_running_workers", [] { return WorkerPool::process().running_workers(); });
}

}  // namespace artifex_devices::bindings
