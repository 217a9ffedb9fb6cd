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

/// None (all Auto), one AxisType for all, or a sequence of them.
std::vector<AxisType> axis_types_from_python(py::handle object, std::string_view operation, int64_t axes);
py::tuple axis_types_to_python(const std::vector<AxisType>& types);

/// A PartitionSpec, exactly. Throws TypeMismatch that shows how to write one.
const PartitionSpec& spec_from_python(py::handle object, std::string_view operation);

/// {name: size} in the axes' order, as an OrderedDict.
py::object axis_sizes_by_name(const AbstractMesh& mesh);

}  // namespace artifex_devices::bindings
