// SPDX-License-Identifier: Apache-2.0
// What operations on Arrays do to shardings (partition/spec_algebra.h), for the Python code that computes the results.
#include <pybind11/stl.h>

#include "artifex_devices/array/array.h"
#include "artifex_devices/partition/spec_algebra.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "bindings.h"
#include "mesh_arguments.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

py::tuple spec_to_python(const ShardedAxes& axes) {
  py::tuple result(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) result[d] = axis_names_to_python(axes[d]);
  return result;
}

const NamedSharding* named_sharding(const Sharding& sharding) { return dynamic_cast<const NamedSharding*>(&sharding); }

SpecOperand operand_of(const Array& array, const NamedSharding& placement) {
  SpecOperand operand{.shape = array.shape(), .spec = {}, .nbytes = array.nbytes()};
  const NamedSharding* own = named_sharding(*array.sharding());
  operand.has_spec = own != nullptr;
  operand.is_on_mesh = own != nullptr && (own == &placement || own->mesh() == placement.mesh());
  if (own != nullptr) operand.spec = own->spec();
  return operand;
}

/// For a sharding without a mesh: no dimension is sharded.
py::tuple unsharded_spec(int64_t rank) { return spec_to_python(ShardedAxes(static_cast<size_t>(rank))); }

py::tuple spec_of_sharding(const Sharding& sharding, int64_t rank) {
  const NamedSharding* own = named_sharding(sharding);
  return own == nullptr ? unsharded_spec(rank) : spec_to_python(sharded_axes(own->spec(), rank));
}

bool is_any_explicit(const Sharding& sharding, const py::tuple& axes) {
  const NamedSharding* own = named_sharding(sharding);
  return own != nullptr && any_explicit(own->abstract_mesh(), axis_names_from_python(axes, "any_explicit"));
}

std::shared_ptr<Sharding> sharding_with(const std::shared_ptr<Sharding>& placement, const py::tuple& spec) {
  const NamedSharding* own = named_sharding(*placement);
  if (own == nullptr) return placement;
  ShardedAxes axes;
  for (const py::handle names : spec) axes.push_back(axis_names_from_python(names, "sharding_with"));
  const PartitionSpec entries = to_partition_spec(axes);
  return std::const_pointer_cast<NamedSharding>(
      own->mesh() ? NamedSharding::make(own->mesh(), entries, own->memory_kind(), own->uneven())
                  : NamedSharding::make_abstract(own->abstract_mesh(), entries, own->memory_kind(), own->uneven()));
}

py::tuple broadcast_arrays(const std::string& operation, const Sharding& placement, const std::vector<int64_t>& shape,
                           const std::vector<ArrayRef>& arrays) {
  const NamedSharding* own = named_sharding(placement);
  if (own == nullptr) return unsharded_spec(static_cast<int64_t>(shape.size()));
  std::vector<SpecOperand> operands;
  for (const ArrayRef& array : arrays) operands.push_back(operand_of(*array, *own));
  return spec_to_python(broadcast_specs(operation, own->abstract_mesh(), Dims(shape), operands));
}

py::tuple contract_arrays(const std::string& operation, const Sharding& placement, const std::vector<ArrayRef>& arrays,
                          const std::vector<std::vector<int64_t>>& labels, const std::vector<int64_t>& sizes,
                          int64_t out_rank) {
  const NamedSharding* own = named_sharding(placement);
  if (own == nullptr) return unsharded_spec(static_cast<int64_t>(sizes.size()));
  std::vector<SpecOperand> operands;
  for (const ArrayRef& array : arrays) operands.push_back(operand_of(*array, *own));
  return spec_to_python(contract_specs(operation, own->abstract_mesh(), operands, labels, Dims(sizes), out_rank));
}

py::tuple reshape_sharded(const Sharding& sharding, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const NamedSharding* own = named_sharding(sharding);
  if (own == nullptr) return unsharded_spec(static_cast<int64_t>(to.size()));
  return spec_to_python(reshape_spec(own->abstract_mesh(), own->uneven(), own->spec(), Dims(from), Dims(to)));
}

}  // namespace

void bind_spec_algebra(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("spec_in", &spec_of_sharding, py::arg("sharding"), py::arg("ndim"),
               "Returns the mesh axes that shard each of `ndim` dimensions, as a tuple of tuples.");
  internal.def("any_explicit", &is_any_explicit, py::arg("sharding"), py::arg("axes"),
               R"(Returns whether one of the axes is Explicit.

An operation changes the sharding over Explicit axes only if the caller asks for it.
)");
  internal.def("sharding_with", &sharding_with, py::arg("placement"), py::arg("spec"),
               "Returns the sharding on the devices of `placement` with a spec in the form that spec_in returns.");
  internal.def("broadcast_specs", &broadcast_arrays, py::arg("operation"), py::arg("placement"), py::arg("shape"),
               py::arg("arrays"),
               "Returns the mesh axes that shard each dimension of an element-wise result of shape `shape`.");
  internal.def("contract_specs", &contract_arrays, py::arg("operation"), py::arg("placement"), py::arg("arrays"),
               py::arg("labels"), py::arg("sizes"), py::arg("out_rank"),
               "Returns the mesh axes of each label of a contraction; the first `out_rank` labels are the "
               "result's dimensions.");
  internal.def("reshape_spec", &reshape_sharded, py::arg("sharding"), py::arg("shape"), py::arg("new_shape"),
               "Returns the mesh axes of each dimension with which an Array takes another shape while each device "
               "keeps its elements.");
}

}  // namespace artifex_devices::bindings
