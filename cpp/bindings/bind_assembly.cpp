// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/assemble.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/place.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "device_indices.h"
#include "errors.h"
#include "gil.h"
#include "narrow.h"
#include "numpy_bridge.h"
#include "page_lock_warning.h"
#include "pybind.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

ArrayRef array_from_parts(const std::string& operation, py::handle shape, const std::shared_ptr<Sharding>& sharding,
                          const py::sequence& parts, py::handle dtype, bool is_stack, const std::vector<bool>& ours) {
  Assembly assembly;
  assembly.operation = operation;
  assembly.is_stack = is_stack;
  if (is_stack) assembly.name = "values";
  check_placeable(*sharding, operation);
  assembly.sharding = sharding;
  if (!shape.is_none()) assembly.shape = dims_from_python(shape, operation, "shape");
  if (!dtype.is_none()) assembly.dtype = dtype_from_python(dtype, operation);
  size_t wrong_types = 0;
  for (const py::handle part : parts) {
    Assembly::Part& added = assembly.parts.emplace_back();
    const size_t i = assembly.parts.size() - 1;
    if (py::isinstance<Array>(part)) {
      added.array = part.cast<ArrayRef>();
      added.is_ours_only = i < ours.size() && ours[i];
    } else {
      added.fault = fmt::format("is of type {}; expected an Array", Py_TYPE(part.ptr())->tp_name);
      ++wrong_types;
    }
  }
  if (wrong_types > 0 && wrong_types == assembly.parts.size()) {
    throw_error<TypeMismatch>("{}: arrays has no Array; arrays[0] {}; place each on its device with device_put",
                              operation, assembly.parts[0].fault);
  }
  const ReleaseGil release;  // replicas may have to be compared
  return assemble(std::move(assembly));
}

/// Collects the blocks that do not fit, for one message.
class BlockFaults {
 public:
  void add(const Device& device, const py::tuple& index, const std::string& what) {
    constexpr int kShown = 64;
    if (++count_ > kShown) return;
    text_ += fmt::format("{}the block of {}, index {}, {}", text_.empty() ? "" : "; ", device.to_string(),
                         safe_repr(index), what);
  }
  void raise(const std::string& operation) const {
    if (count_ == 0) return;
    const std::string more = count_ > 64 ? fmt::format("; and {} more", count_ - 64) : "";
    throw_error("{}: {}{}; return the part of the array at `index`", operation, text_, more);
  }
  bool none() const noexcept { return count_ == 0; }

 private:
  int count_ = 0;
  std::string text_;
};

/// Making an Array from blocks is an implicit transfer: from the host for an ndarray, from its devices for an Array
/// unless `device` has it already.
void check_block(const std::string& operation, py::handle block, const HostView& view, const Device* device,
                 const Sharding& sharding, const TransferGuards& guards) {
  std::string source = fmt::format("a {} of the host", Py_TYPE(block.ptr())->tp_name);
  auto direction = TransferDirection::kHostToDevice;
  if (py::isinstance<Array>(block)) {
    const Sharding& from = *block.cast<const Array&>().sharding();
    if (device != nullptr && from.num_devices() == 1 && from.devices()->front() == device) return;
    source = from.to_string();
    direction = TransferDirection::kDeviceToDevice;
  }
  check_transfer(guards, direction, false, [&] {
    return TransferDescription{operation, to_string(view.shape), std::string(name(view.dtype)), source,
                               sharding.to_string()};
  });
}

ArrayRef array_from_callback(const std::string& operation, py::handle shape, const std::shared_ptr<Sharding>& to,
                             const py::function& callback, py::handle dtype) {
  const ShardingRef sharding = to;
  check_placeable(*sharding, operation);
  const Dims dims = dims_from_python(shape, operation, "shape");
  const ShardDomains domains = sharding->domains(dims, operation);
  std::optional<DType> expected;
  if (!dtype.is_none()) {
    expected = dtype_from_python(dtype, operation);
    if (must_narrow(*expected)) expected = narrow_dtype(*expected);
  }
  std::optional<ShardWriter> writer;
  BlockFaults faults;
  // As in JAX: one call for a replicated array, else one for each device of this process, replicas too.
  const DeviceList& devices = *sharding->devices();
  const int64_t count = devices.addressable_count();
  const int64_t calls = sharding->is_fully_replicated() ? std::min<int64_t>(count, 1) : count;
  for (int64_t i = 0; i < calls; ++i) {
    const Position position = devices.addressable_position(i);
    const Device& device = sharding->device(position);
    const TileId tile = sharding->grid().tile(position);
    const py::tuple index = index_of_tile(domains, tile);
    const py::object block = call_python(callback, index);
    std::optional<Leaf> leaf;
    try {
      leaf = leaf_from_python(block, operation);
      if (!py::isinstance<Array>(block) && must_narrow(leaf->view.dtype)) narrow_leaf(*leaf, block, operation, "");
      if (scopes_matter()) {  // once for each block: the callback may enter a scope
        check_block(operation, block, leaf->view, calls == 1 ? nullptr : &device, *sharding, transfer_guards());
      }
    } catch (const Error&) {
      rethrow_with_context("the block of " + device.to_string() + ": ");
    }
    const HostView& view = leaf->view;
    if (!expected) expected = view.dtype;
    if (!writer) writer.emplace(dims, *expected, sharding, operation);
    const Dims expected_shape = domains.domain(tile).shape;
    if (view.shape != expected_shape) {
      faults.add(device, index,
                 fmt::format("has shape {}; expected {}", to_string(view.shape), to_string(expected_shape)));
    }
    if (view.dtype != *expected) {
      faults.add(device, index, fmt::format("has dtype {}; expected {}", name(view.dtype), name(*expected)));
    }
    if (!faults.none()) continue;
    const bool is_same = run_copy(is_brief_copy(view.nbytes(), *sharding), [&] {
      if (calls == count) return writer->write(position, view);
      writer->write_everywhere(view);
      return true;
    });
    if (!is_same) faults.add(device, index, "differs from the part of an earlier device with the same index");
  }
  faults.raise(operation);
  if (!writer) {
    if (!expected) {
      throw_error(
          "{}: no device of {} belongs to this process, so no block determines the dtype; expected at least one; pass "
          "dtype=",
          operation, sharding->to_string());
    }
    writer.emplace(dims, *expected, sharding, operation);
  }
  after_placing(*sharding);
  return writer->finish();
}

}  // namespace

void bind_assembly(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("array_from_parts", &array_from_parts, py::arg("operation"), py::arg("shape"), py::arg("sharding"),
               py::arg("parts"), py::arg("dtype"), py::arg("is_stack") = false, py::arg("ours") = std::vector<bool>{});
  internal.def("array_from_callback", &array_from_callback, py::arg("operation"), py::arg("shape"), py::arg("sharding"),
               py::arg("callback"), py::arg("dtype"));
}

}  // namespace artifex_devices::bindings
