// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "artifex_devices/array/array.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Binds the interfaces by which other libraries read an Array: buffer protocol, DLPack, copies and pickles.
[[gnu::cold]] void bind_array_interop(py::class_<Array, std::shared_ptr<Array>>& array);

/// `Array.__dlpack__` with the arguments of the Python call.
py::capsule dlpack_of(const ArrayRef& array, py::handle stream, py::handle max_version, py::handle dl_device,
                      py::handle copy);
/// `Array.__dlpack_device__`.
py::tuple dlpack_device_of(const Array& array);

/// The value as a read-only ndarray (transfer/device_get.h); waits without the GIL. `operation` is what the user
/// called, for transfer guards; `is_explicit` if its name says that it reads.
py::object value_of(const ArrayRef& array, std::string_view operation, bool is_explicit = false,
                    std::string_view repair = {});

/// Binds repr, str, describe and _repr_html_.
[[gnu::cold]] void bind_array_repr(py::class_<Array, std::shared_ptr<Array>>& array);

}  // namespace artifex_devices::bindings
