// SPDX-License-Identifier: Apache-2.0
// The modules that users import the classes of the core from: `__module__` names them, and so do pickles.
#include <pybind11/pybind11.h>

#include <initializer_list>
#include <string>

#include "bindings.h"
#include "python_modules.h"

namespace artifex_devices::bindings {

void name_public_modules(py::module_& module) {
  const auto belong_to = [&](const std::string& path, std::initializer_list<const char*> names) {
    for (const char* name : names) module.attr(name).attr("__module__") = path;
  };
  const std::string package = python_modules::kPackage;
  belong_to(package, {"Array", "Client", "Device", "Machine", "Shard"});
  belong_to(package + ".cluster", {"Cluster"});
  belong_to(package + ".sharding",
            {"AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"});
  belong_to(package + ".xla_client",
            {"DeviceAssignment", "DeviceList", "DeviceTopology", "Layout", "Memory", "PjRtLayout"});
  module.attr("internal").attr("Unconstrained").attr("__module__") = python_modules::kUnpickle;
}

}  // namespace artifex_devices::bindings
