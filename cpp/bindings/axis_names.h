// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>
#include <vector>

#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Mesh axis names are any hashable Python object but None; equal objects are one AxisName. Names live for good.
AxisName axis_name_from_python(py::handle object, std::string_view operation);
py::object axis_name_to_python(AxisName name);

/// A name, or a sequence of them.
std::vector<AxisName> axis_names_from_python(py::handle object, std::string_view operation);
py::tuple axis_names_to_python(const std::vector<AxisName>& names);

}  // namespace artifex_devices::bindings
