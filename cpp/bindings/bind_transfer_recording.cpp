// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/transfer_recording.h"
#include "bindings.h"
#include "class_members.h"
#include "numpy_bridge.h"
#include "scopes.h"

namespace artifex_devices::bindings {
namespace {

py::list routes_of(const TransferRecording& self) {
  py::list rows;
  for (const auto& [route, count] : self.routes()) {
    rows.append(py::make_tuple(to_string(route.direction), route.from.name, route.from.device_kind, route.to.name,
                               route.to.device_kind, count.calls, count.bytes));
  }
  return rows;
}

py::list lines_of(const TransferRecording& self) {
  py::list rows;
  for (const auto& [key, count] : self.lines()) {
    rows.append(py::make_tuple(to_string(key.direction), key.line.file, key.line.line, count.calls, count.bytes,
                               count.shareable_bytes));
  }
  return rows;
}

/// An operand of a computation on devices that is an ndarray. Memory of the host is read in place by devices that share
/// it, and copied to others.
void host_operand(const py::object& shape, const py::object& dtype, const std::shared_ptr<Sharding>& sharding,
                  const std::string& operation) {
  if (scopes_matter()) {
    check_transfer(transfer_guards(), TransferDirection::kHostToDevice, false, [&] {
      return TransferDescription{operation, py::str(shape), py::str(dtype), "host", sharding->to_string()};
    });
  }
  if (!is_recorded(Recorded::kTransfers)) return;
  record_host_operand(*sharding, dims_from_python(shape, operation, "shape"), dtype_from_python(dtype, operation));
}

/// A result of a computation on devices that is written to an ndarray.
void host_result(const std::shared_ptr<Sharding>& sharding, const py::object& shape, const py::object& dtype,
                 const std::string& operation, const std::string& repair) {
  if (sharding->devices()->client()->is_host_readable(sharding->memory_kind())) return;
  if (scopes_matter()) {
    check_transfer(transfer_guards(), TransferDirection::kDeviceToHost, false, [&] {
      return TransferDescription{operation, py::str(shape), py::str(dtype), sharding->to_string(), "the host", repair};
    });
  }
  if (!is_recorded(Recorded::kTransfers)) return;
  record_get(*sharding, dims_from_python(shape, operation, "shape"), dtype_from_python(dtype, operation));
}

/// One element that is read from the memory of a device.
void host_element(const ArrayRef& array, const std::string& operation) {
  check_host_read(*array, transfer_guards(), false, operation);
  if (!is_recorded(Recorded::kTransfers) || array->is_host_readable() || array->cached_host_value()) return;
  const Sharding& sharding = *array->sharding();
  const Device& device = sharding.device(sharding.devices()->addressable_position(0));
  const Client& client = *sharding.devices()->client();
  RecordedTransfer transfer{TransferDirection::kDeviceToHost, client.process_index()};
  transfer.add(RouteEnd::of(device, sharding.memory_kind()), RouteEnd::host(), itemsize(array->dtype()));
  transfer.commit();
}

}  // namespace

void bind_transfer_recording(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<TransferRecording>(internal, "TransferRecording",
                                "Records the transfers of this process from now to stop().")
      .def(py::init([] { return std::make_unique<TransferRecording>(); }))
      .def("stop", by_reference(&TransferRecording::stop))
      .def("routes", &routes_of,
           "Returns rows of (direction, source, its device kind, destination, its device kind, calls, bytes).")
      .def("lines", &lines_of,
           "Returns rows of (direction, file, line, calls, bytes, bytes that device_put could share).");
  internal.def("host_result", &host_result, py::arg("sharding"), py::arg("shape"), py::arg("dtype"),
               py::arg("operation"), py::arg("repair") = "",
               R"(Checks the transfer guards for a result that is written to an ndarray, and records its transfer.

Args:
    sharding: Sharding with which the result is computed.
    shape: Shape of the result.
    dtype: Dtype of the ndarray.
    operation: Name of the function that the user called.
    repair: How to read explicitly, for the error of a guard; empty for the usual way.

Raises:
    TransferGuardError: The guards refuse the transfer.
)");
  internal.def("host_element", &host_element, py::arg("array"), py::arg("operation"),
               "Checks the transfer guards for one element that is read from an Array, and records its transfer.");
  internal.def(
      "host_operand", &host_operand, py::arg("shape"), py::arg("dtype"), py::arg("sharding"), py::arg("operation"),
      R"(Checks the transfer guards for an ndarray that a computation on devices reads, and records its transfer.

Args:
    shape: Shape of the ndarray.
    dtype: Its dtype.
    sharding: Sharding whose devices read it, each its part.
    operation: Name of the function that the user called.

Raises:
    TransferGuardError: The guards refuse the transfer.
)");
}

}  // namespace artifex_devices::bindings
