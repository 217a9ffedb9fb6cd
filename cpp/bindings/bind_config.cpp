// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "artifex_devices/base/config.h"
#include "bindings.h"

namespace artifex_devices::bindings {
void bind_config(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("config_read", [](const std::string& name) { return config_option(name).load(); }, py::arg("name"));
  internal.def(
      "config_write", [](const std::string& name, int64_t value) { config_option(name).store(value); }, py::arg("name"),
      py::arg("value"));
}

}  // namespace artifex_devices::bindings
