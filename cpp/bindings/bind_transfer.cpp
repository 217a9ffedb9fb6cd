// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <limits>

#include "array_methods.h"
#include "artifex_devices/array/array.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/place.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "errors.h"
#include "gil.h"
#include "narrow.h"
#include "numpy_bridge.h"
#include "page_lock_warning.h"
#include "pybind.h"
#include "python_modules.h"
#include "python_owner.h"
#include "python_text.h"
#include "python_transport.h"
#include "scopes.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

PlacementTarget target_from_python(py::handle object) {
  if (object.is_none()) return {};
  if (py::isinstance<Sharding>(object)) {
    auto sharding = object.cast<std::shared_ptr<Sharding>>();
    check_placeable(*sharding, "device_put");
    return {std::move(sharding), true};
  }
  if (py::isinstance<Device>(object)) return {sharding_of(object.cast<Device*>()), true};
  // A PartitionSpec, a Format or a Memory; Python raises for anything else.
  const auto resolved = call_python(python_modules::kTargets, "placement_for_device_put", object).cast<py::tuple>();
  PlacementTarget target = target_from_python(resolved[0]);
  if (!resolved[1].is_none()) target.layout = std::make_shared<const Layout>(resolved[1].cast<const Layout&>());
  if (!resolved[2].is_none()) {
    target.memory_kind = memory_kind_from_name(resolved[2].cast<std::string>(), "device_put");
    target.committed = true;
  }
  return target;
}

py::object put_array(const py::object& x, const PlacementTarget& target, const PlacementOptions& options) {
  const auto source = x.cast<ArrayRef>();
  const ArrayRef placed = place(source, target, options);
  if (placed == source) return x;
  after_placing(*placed->sharding());
  return py::cast(placed);
}

// No guard: the operation that needs it has checked them already.
ArrayRef move_array(const ArrayRef& array, const std::shared_ptr<Sharding>& sharding, bool committed) {
  return put_array(py::cast(array), {sharding, committed}, {.is_explicit = false, .transport = &python_transport()})
      .cast<ArrayRef>();
}

/// The path of a leaf in its tree; only messages need its text.
struct LeafPath {
  py::handle path_of = nullptr;  // a function of the leaf's index
  size_t index = 0;
  std::string text() const { return path_of ? path_of(index).cast<std::string>() : std::string(); }
};

py::object put_leaf(const py::object& x, PlacementTarget target, PlacementOptions options, const LeafPath& path = {},
                    JointCopies* joint = nullptr) {
  release_dropped_owners();
  if (py::isinstance<Array>(x)) return put_array(x, target, options);
  options.check();
  Leaf leaf = leaf_from_python(x, "device_put");
  if (!target.sharding) {
    target.sharding = sharding_of(default_device());
    if (target.memory_kind) target.sharding = target.sharding->with_memory_kind(*target.memory_kind);
  }
  options.source_type = Py_TYPE(x.ptr())->tp_name;
  if (must_narrow(leaf.view.dtype)) {
    narrow_leaf(leaf, x, "device_put", path.text());
  } else if (options.may_alias.value_or(false) && is_ndarray(leaf.keep)) {  // a narrowed array is not the memory of x
    leaf.view.owner = python_owner(leaf.keep);
  } else if (is_recorded(Recorded::kTransfers)) {
    options.is_shareable = !options.may_alias.has_value() && is_ndarray(leaf.keep);
  }
  // An object may lend the same memory to the next leaf, and a converted array is freed here.
  if (leaf.keep.is(x)) options.joint = joint;
  const ArrayRef placed = place(leaf.view, target, options);
  const bool is_shared = leaf.view.owner && placed->storage()->buffer_count() == 1 &&
                         placed->storage()->device_data(BufferId(0)) == leaf.view.data;
  if (is_shared) leaf.keep.attr("flags").attr("writeable") = false;
  after_placing(*target.sharding);
  return py::cast(placed);
}

// One entry of `values` for leaf i: the list's i-th, or the one value for all.
py::handle entry(py::handle values, size_t i) { return PyList_Check(values.ptr()) ? values[py::int_(i)] : values; }

// A flag of device_put: True or False, NumPy's too.
bool flag(py::handle value, const char* name, const char* expected) {
  py::detail::make_caster<bool> flag;
  if (!flag.load(value, false)) {
    throw_error(
        "device_put: {} is of type {}; expected {}, or a tree of such values that is a prefix of x, got {}; pass a "
        "single value",
        name, Py_TYPE(value.ptr())->tp_name, expected, safe_repr(value));
  }
  return py::detail::cast_op<bool>(flag);
}

std::optional<bool> optional_bool(py::handle value) {
  if (value.is_none()) return std::nullopt;
  return flag(value, "may_alias", "None or bool");
}

py::list put_leaves(const py::list& leaves, py::handle targets, py::handle donate, py::handle may_alias,
                    const py::object& path_of, bool is_explicit) {
  PlacementOptions options{.is_explicit = is_explicit, .guards = transfer_guards(), .transport = &python_transport()};
  py::list placed(leaves.size());
  std::vector<ArrayRef> donated;
  JointCopies joint;
  const bool is_joint = leaves.size() > 1 && !is_recorded(Recorded::kTransfers);  // a record has each copy's seconds
  PlacementTarget target;
  const bool one_target = !PyList_Check(targets.ptr());
  if (one_target) target = target_from_python(targets);
  for (size_t i = 0; i < leaves.size(); ++i) {
    try {
      if (!one_target) target = target_from_python(targets[py::int_(i)]);
      options.donation = entry(donate, i).cast<bool>() ? Donation::kLater : Donation::kNone;
      options.may_alias = optional_bool(entry(may_alias, i));
      placed[i] = put_leaf(leaves[i], target, options, {path_of, i}, is_joint ? &joint : nullptr);
      if (options.donation != Donation::kNone && py::isinstance<Array>(leaves[i])) {
        donated.push_back(leaves[i].cast<ArrayRef>());
      }
    } catch (const Interrupted&) {  // the exception of a signal handler is set: no Python code may run
      throw;
    } catch (const Error&) {
      const std::string path = path_of(i).cast<std::string>();
      rethrow_with_context(path.empty() ? "" : "leaf " + path + ": ");
    }
  }
  if (!joint.empty()) run_blocking([&] { joint.run(); });
  // Only now: an error at a later leaf must not delete the sources of earlier ones.
  for (const ArrayRef& array : donated) array->donate();
  return placed;
}

/// An asynchronous copy of one Array to the host.
struct HostLeaf {
  std::shared_ptr<const HostView> view;

  bool wait(std::optional<double> seconds) const {
    if (is_ready(view->ready)) return true;
    const ReleaseGil release;
    return view->ready->wait_for(seconds.value_or(std::numeric_limits<double>::infinity()));
  }
};

HostLeaf copy_to_host(const ArrayRef& array) {
  release_dropped_owners();
  check_host_read(*array, transfer_guards(), true, "copy_to_host_async");
  return run_copy(is_brief_copy(array->nbytes(), *array->sharding()),
                  [&] { return HostLeaf{device_get_async(array)}; });
}

void bind_host_copy(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<HostLeaf>(internal, "HostLeaf", "An asynchronous copy of one Array to the host.")
      .def("done", [](const HostLeaf& self) { return poll(self.view->ready); })
      .def("wait", &HostLeaf::wait, py::arg("seconds").none(true))
      .def("value", [](const HostLeaf& self) {
        self.wait(std::nullopt);
        wait_for(self.view->ready);  // rethrows the error of the transfer
        return ndarray_from_view(self.view);
      });
  const py::object array = module.attr("Array");
  array.attr("copy_to_host_async") = py::cpp_function(
      [](const py::object& self) -> py::object {
        return call_python(python_modules::kHostCopy, "copy_to_host_async", self);
      },
      py::name("copy_to_host_async"), py::is_method(array),
      "Starts to copy the value to the host, and returns a HostCopy at once, which np.asarray(x) then uses.");
  internal.def("copy_to_host", &copy_to_host, py::arg("array"));
}

}  // namespace

py::object value_of(const ArrayRef& array, std::string_view operation, bool is_explicit, std::string_view repair) {
  release_dropped_owners();
  check_host_read(*array, transfer_guards(), is_explicit, operation, repair);
  return ndarray_from_view(device_get(array));
}

void bind_transfer(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "put_leaf",
      [](const py::object& x, py::handle device, py::handle donate, py::handle may_alias) {
        return put_leaf(x, target_from_python(device),
                        {.donation = flag(donate, "donate", "bool") ? Donation::kNow : Donation::kNone,
                         .may_alias = optional_bool(may_alias),
                         .guards = transfer_guards(),
                         .transport = &python_transport()});
      },
      py::arg("x"), py::arg("device"), py::arg("donate"), py::arg("may_alias"));
  internal.def("put_leaves", &put_leaves, py::arg("leaves"), py::arg("targets"), py::arg("donate"),
               py::arg("may_alias"), py::arg("path_of"), py::arg("explicit") = true);
  internal.def("moved", &move_array, py::arg("array"), py::arg("sharding"), py::arg("committed"),
               "Returns an Array with another sharding of the same world, as device_put does. Shares the buffers "
               "that are already in place.");
  internal.def(
      "check_int", [](const py::int_& x, const std::string& operation) { check_int(x, operation); }, py::arg("x"),
      py::arg("operation"), "Raises OverflowError for an int that neither int64 nor uint64 holds.");
  internal.def("leaf_repair", &leaf_repair, py::arg("value"),
               "Returns what to write in place of a value that is not an array.");
  internal.def("get_leaf", [](const ArrayRef& array) { return value_of(array, "device_get", true); }, py::arg("array"));
  internal.def(
      "host_value",
      [](const ArrayRef& array, const std::string& operation, const std::string& repair) {
        return value_of(array, operation, false, repair);
      },
      py::arg("array"), py::arg("operation"), py::arg("repair"),
      R"(Returns the value of an argument that an operation reads on the host, as a read-only ndarray.

Args:
    array: The Array.
    operation: Name of the function that the user called.
    repair: How to read it explicitly, for the error of a transfer guard.

Raises:
    TransferGuardError: The guards refuse the transfer.
)");
  internal.def(
      "cached_host_value",
      [](const ArrayRef& array) -> py::object {
        const auto value = array->cached_host_value();
        return value ? ndarray_from_view(value) : py::none();
      },
      py::arg("array"), "Returns the value that np.asarray(array) has gathered and cached, or None.");
  internal.def(
      "array_from_pickle",
      [](const py::object& value, const py::object& sharding, bool committed,
         const std::optional<std::string>& layout) {
        PlacementTarget target = target_from_python(sharding);
        target.committed = committed;
        if (layout) target.layout = std::make_shared<const Layout>(Layout::parse(*layout));
        return put_leaf(value, target, {.guards = transfer_guards(), .transport = &python_transport()});
      },
      py::arg("value"), py::arg("sharding"), py::arg("committed"), py::arg("layout") = py::none());
  internal.def(
      "check_transfer",
      [](const std::string& direction, bool is_explicit, const py::object& shape, const py::object& dtype,
         const py::object& source, const py::object& target, const std::string& operation) {
        if (!scopes_matter()) return;
        check_transfer(transfer_guards(), transfer_direction_from_name(direction), is_explicit, [&] {
          return TransferDescription{operation, py::str(shape), py::str(dtype), py::str(source), py::str(target)};
        });
      },
      py::arg("direction"), py::arg("explicit"), py::arg("shape"), py::arg("dtype"), py::arg("source"),
      py::arg("target"), py::arg("operation") = "transfer",
      R"(Raises TransferGuardError or logs, as the guards of this context say. Call it before data moves.

Args:
    direction: "host_to_device", "device_to_device" or "device_to_host".
    explicit: Whether the user asked for the transfer by name (the device_put family).
    shape: Shape of the value, for the message; turned into text only when a message is needed, as the next three.
    dtype: Dtype of the value.
    source: Where the value is.
    target: Where the value is to be placed.
    operation: Name of the function that the user called.

Raises:
    TransferGuardError: The guards refuse the transfer.
)");
  internal.def(
      "transfer_is_guarded",
      [](const std::string& direction, bool is_explicit) {
        return scopes_matter() && guard_verdict(transfer_guards(), transfer_direction_from_name(direction),
                                                is_explicit) != GuardVerdict::kAllow;
      },
      py::arg("direction"), py::arg("explicit"),
      "Returns whether the guards of this context log or refuse a transfer in this direction.");
  bind_host_copy(module);
}

}  // namespace artifex_devices::bindings
