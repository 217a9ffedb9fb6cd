// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Called once, at import, before the other functions.
void create_axis_name_table();

/// A mesh axis name is any hashable Python object except None. Equal objects are one AxisName; names are never freed.
AxisName axis_name_from_python(py::handle object, std::string_view operation);
py::object axis_name_to_python(AxisName name);

/// A name, or a sequence of names.
std::vector<AxisName> axis_names_from_python(py::handle object, std::string_view operation);
py::tuple axis_names_to_python(const std::vector<AxisName>& names);

/// Accepts None (all Auto), one AxisType for all axes, or a sequence of AxisTypes.
std::vector<AxisType> axis_types_from_python(py::handle object, std::string_view operation, int64_t axes);
py::tuple axis_types_to_python(const std::vector<AxisType>& types);

/// Throws TypeMismatch for anything but a PartitionSpec.
const PartitionSpec& spec_from_python(py::handle object, std::string_view operation);

/// OrderedDict of {name: size} in the axes' order.
py::object axis_sizes_by_name(const AbstractMesh& mesh);

}  // namespace artifex_devices::bindings
