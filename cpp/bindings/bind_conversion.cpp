// SPDX-License-Identifier: Apache-2.0
// Rules and plans of conversions, for artifex_devices.checkpoint.
#include <pybind11/stl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/conversion/conversion_part.h"
#include "artifex_devices/conversion/conversion_plan.h"
#include "artifex_devices/conversion/name_pattern.h"
#include "artifex_devices/conversion/rule.h"
#include "artifex_devices/conversion/tile_shape.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

void read_rule_field(py::handle from, RuleKind& into) {
  const auto kind = from.cast<std::string>();
  for (size_t i = 0; i < kRuleKindNames.size(); ++i) {
    if (kRuleKindNames[i] == kind) {
      into = static_cast<RuleKind>(i);
      return;
    }
  }
  throw_error(
      "checkpoint.rules: {:?} is not a kind of rule; expected \"rename\" or another function of the module; "
      "correct it",
      kind);
}
void read_rule_field(py::handle from, Dims& into) { into = dims_from_python(from, "checkpoint.rules", "sizes"); }
void read_rule_field(py::handle from, std::optional<DType>& into) {
  if (!from.is_none()) into = dtype_from_python(from, "checkpoint.rules");
}
template <class Value>
void read_rule_field(py::handle from, Value& into) {
  into = from.cast<Value>();
}

Rule rule_from_python(const py::dict& fields) {
  Rule rule;
  visit_fields(rule, [&](const char* name, auto& field) { read_rule_field(fields[name], field); });
  return rule;
}

py::object written_rule_field(RuleKind kind) { return py::str(std::string(name(kind))); }
py::object written_rule_field(const Dims& dims) { return tuple_from_dims(dims); }
py::object written_rule_field(const std::optional<DType>& dtype) {
  return dtype ? numpy_dtype(*dtype) : py::object(py::none());
}
py::object written_rule_field(const std::vector<std::string>& patterns) { return py::tuple(py::cast(patterns)); }
template <class Value>
py::object written_rule_field(const Value& value) {
  return py::cast(value);
}

py::dict rule_to_python(Rule rule) {
  py::dict fields;
  visit_fields(rule, [&](const char* name, auto& field) { fields[name] = written_rule_field(field); });
  fields["value"] = py::bytes(rule.value);  // which may be any bytes
  return fields;
}

std::vector<Rule> rules_from_python(const py::list& rules) {
  std::vector<Rule> read;
  for (const py::handle each : rules) read.push_back(rule_from_python(each.cast<py::dict>()));
  return read;
}

std::vector<NamedType> types_from_python(const py::list& rows, const std::string& operation) {
  std::vector<NamedType> types;
  for (const py::handle row : rows) {
    const auto [name, shape, dtype] = row.cast<std::tuple<std::string, py::object, py::object>>();
    types.push_back({name, dims_from_python(shape, operation, "the shape"), dtype_from_python(dtype, operation)});
  }
  return types;
}

using HeldPlan = std::shared_ptr<ConversionPlan>;

HeldPlan plan_from_python(std::string operation, const py::list& sources, const py::list& rules,
                          const py::object& floats, const std::optional<py::list>& like,
                          std::vector<std::string> allow_missing, std::vector<std::string> allow_extra) {
  PlanArguments arguments;
  arguments.sources = types_from_python(sources, operation);
  arguments.rules = rules_from_python(rules);
  if (!floats.is_none()) arguments.floats = dtype_from_python(floats, operation);
  if (like) arguments.like = types_from_python(*like, operation);
  arguments.operation = std::move(operation);
  arguments.allow_missing = std::move(allow_missing);
  arguments.allow_extra = std::move(allow_extra);
  const ReleaseGil release;
  return std::make_shared<ConversionPlan>(plan_conversion(arguments));
}

py::list targets_of(const ConversionPlan& plan) {
  py::list rows;
  for (const PlannedArray& target : plan.targets) {
    rows.append(py::make_tuple(target.type.name, tuple_from_dims(target.type.shape), numpy_dtype(target.type.dtype)));
  }
  return rows;
}

// Throws unless `origin` and `shape` are a box of a target array.
IndexDomain box_from_python(const PlannedArray& array, const py::object& origin, const py::object& shape) {
  const std::string operation = "ConversionPlan";
  IndexDomain box{dims_from_python(origin, operation, "the origin"), dims_from_python(shape, operation, "the shape")};
  const IndexDomain whole{Dims(array.type.shape.size(), 0), array.type.shape};
  if (box.origin.size() != whole.rank() || box.rank() != whole.rank() ||
      (box.volume() > 0 && intersect(box, whole) != box)) {
    throw_error("{}: the box from {} of shape {} is not in {}{}; expected a box of the array; correct it", operation,
                to_string(box.origin), to_string(box.shape), array.type.name, to_string(array.type.shape));
  }
  return box;
}

py::list parts_from_box(const ConversionPlan& plan, size_t target, const py::object& origin, const py::object& shape) {
  const PlannedArray& array = plan.targets.at(target);
  const IndexDomain box = box_from_python(array, origin, shape);
  py::list parts;
  if (box.volume() == 0) return parts;
  for (ConversionPart& part : parts_of(plan, array, box)) {
    py::object source = py::none();
    if (part.source != Region::kConstant) source = py::str(plan.sources[static_cast<size_t>(part.source)].name);
    parts.append(py::make_tuple(source, tuple_from_dims(part.source_box.origin), tuple_from_dims(part.source_box.shape),
                                std::move(part)));
  }
  return parts;
}

py::object tile_shape_of_box(const ConversionPlan& plan, size_t target, const py::object& origin,
                             const py::object& shape, const py::object& slab) {
  const PlannedArray& array = plan.targets.at(target);
  const IndexDomain box = box_from_python(array, origin, shape);
  const IndexDomain first = box_from_python(array, origin, slab);
  if (first.volume() == 0) return py::none();
  const std::optional<Dims> tile = tile_shape(array, box, first.shape);
  return tile ? py::object(tuple_from_dims(*tile)) : py::none();
}

// A change that float32 is too narrow for, by NumPy, which drops the GIL too.
py::object changed_by_numpy(const py::object& values, const ValueChange& change) {
  const py::object dtype = values.attr("dtype");
  if (change.cast) return values.attr("astype")(numpy_dtype(*change.cast));
  const bool is_wide = dtype.is(numpy_dtype(DType::kFloat64));
  const py::object wide = numpy_dtype(is_wide ? DType::kFloat64 : DType::kFloat32);
  return (values.attr("astype")(wide) * wide.attr("type")(change.factor)).attr("astype")(dtype);
}

// Throws unless the leaf is a dense ndarray of a shape and dtype.
void check_leaf(const HostView& view, const Dims& shape, DType dtype, const char* name) {
  if (view.shape == shape && view.dtype == dtype && is_dense(shape, view.byte_strides, itemsize(dtype))) return;
  throw_error("ConversionPart.copy: {} is {}{}; expected a dense {}{}; correct it", name,
              artifex_devices::name(view.dtype), to_string(view.shape), artifex_devices::name(dtype), to_string(shape));
}

void copy_from_python(const ConversionPart& self, const py::object& source, const py::object& target) {
  const Leaf to = leaf_from_python(target, "ConversionPart.copy");
  check_leaf(to.view, self.target_box.shape, self.target_dtype, "the target");
  if (!to.view.writable) throw_error("ConversionPart.copy: the target is read-only; expected memory to write to");
  ConversionPart part = self;
  const bool by_numpy = !part.changes.empty() && !can_change_values(part.source_dtype, part.changes);
  py::object values = source;
  Leaf from;
  if (part.source == Region::kConstant) {
    from.view.data = part.constant.data();
    if (by_numpy) {
      values =
          py::module_::import("numpy").attr("frombuffer")(py::bytes(part.constant), numpy_dtype(part.source_dtype));
    }
  } else {
    from = leaf_from_python(values, "ConversionPart.copy");
    check_leaf(from.view, part.source_box.shape, part.source_dtype, "the source");
  }
  if (by_numpy) {
    for (const ValueChange& change : part.changes) values = changed_by_numpy(values, change);
    from = leaf_from_python(values, "ConversionPart.copy");
    part.changes.clear();
    part.source_dtype = part.target_dtype;
  }
  const ReleaseGil release;
  copy_part(part, static_cast<const std::byte*>(from.view.data), static_cast<std::byte*>(to.view.data));
}

}  // namespace

void bind_conversion(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "rule_text",
      [](const py::dict& fields) {
        const Rule rule = rule_from_python(fields);
        check_rule(rule);
        return to_string(rule);
      },
      py::arg("fields"), "Returns the call that creates a rule; ValueError for members that cannot be right.");
  internal.def(
      "rule_dtype",
      [](const py::object& dtype, const std::string& operation) {
        std::optional<DType> named;  // NumPy knows names of ml_dtypes only after its import
        if (py::isinstance<py::str>(dtype)) named = dtype_from_name(dtype.cast<std::string>());
        return numpy_dtype(named ? *named : dtype_from_python(dtype, operation));
      },
      py::arg("dtype"), py::arg("operation"),
      "Returns the dtype of any argument of np.dtype(), also for \"bfloat16\".");
  internal.def(
      "inverse_rules",
      [](const py::list& rules) {
        py::list inverse;
        for (const Rule& rule : inverse_of(rules_from_python(rules))) inverse.append(rule_to_python(rule));
        return inverse;
      },
      py::arg("rules"), "Returns the fields of the rules that undo rules.");
  internal.def(
      "matching_names",
      [](const std::vector<std::string>& patterns, const std::vector<std::string>& names,
         const std::string& operation) {
        std::vector<std::string> matching;
        for (const std::string& pattern : patterns) {
          const NamePattern each(pattern, operation);
          for (const std::string& name : names) {
            if (each.match(name)) matching.push_back(name);
          }
        }
        return matching;
      },
      py::arg("patterns"), py::arg("names"), py::arg("operation"), "Returns the names that a pattern matches.");
  py::class_<ConversionPart>(internal, "ConversionPart", "What a box of a source contributes to a box of a target.")
      .def_property_readonly("is_identity", &is_identity,
                             "Whether both boxes have the same bytes, so that the target is the source, reshaped.")
      .def("copy", &copy_from_python, py::arg("source"), py::arg("target"),
           R"(Copies elements between dense row-major ndarrays of both boxes, permutes axes and changes values.

Drops the GIL. `source` is None for a constant. Bits are kept where no rule changes values.
)");
  py::class_<ConversionPlan, HeldPlan>(internal, "ConversionPlan",
                                       "A conversion before a byte is read: each target array as boxes of sources.")
      .def(py::init(&plan_from_python), py::arg("operation"), py::arg("sources"), py::arg("rules"), py::arg("floats"),
           py::arg("like"), py::arg("allow_missing"), py::arg("allow_extra"),
           R"(Applies the fields of rules to rows (name, shape, dtype) and compares the result with rows `like`.

Arrays of floating-point numbers are then cast to `floats`, unless it is None.
)")
      .def("targets", &targets_of, "Returns a row (name, shape, dtype) for each target array.")
      .def(
          "itemsize",
          [](const ConversionPlan& self, size_t target) { return self.itemsize_of(self.targets.at(target)); },
          py::arg("target"), "Returns the largest number of bytes of an element of a target array and its sources.")
      .def("parts", &parts_from_box, py::arg("target"), py::arg("origin"), py::arg("shape"),
           R"(Returns what to read and copy for a box of a target array, by the array's number.

Each is (name of the source or None for a constant, origin and shape of a box of the source, ConversionPart). Together they
write each element of the box once.
)")
      .def("tile_shape", &tile_shape_of_box, py::arg("target"), py::arg("origin"), py::arg("shape"), py::arg("slab"),
           R"(Returns the shape of tiles of a box, none larger than a slab; None where slabs are as good.

Slabs divide the box in row-major order, and `slab` is the shape of the first. Tiles are better where slabs would read the
sources several times.
)")
      .def(
          "text",
          [](const ConversionPlan& self, int64_t workers, int64_t scratch_bytes) {
            return to_string(self, workers, scratch_bytes);
          },
          py::arg("workers"), py::arg("scratch_bytes"), "Returns the table of a dry run.")
      .def("memory_bytes", &ConversionPlan::memory_bytes, py::arg("workers"),
           "Returns the largest number of bytes that the pieces of so many workers take.")
      .def_readonly("missing", &ConversionPlan::missing, "Names in `like` without a source.")
      .def_readonly("extra", &ConversionPlan::extra, "Names that `like` lacks.")
      .def_readonly("unread", &ConversionPlan::unread, "Names of sources that no target reads.")
      .def_readonly("bytes_read", &ConversionPlan::bytes_read, "Bytes of all boxes in the sources.")
      .def_readonly("bytes_written", &ConversionPlan::bytes_written, "Bytes of all target arrays.");
}

}  // namespace artifex_devices::bindings
