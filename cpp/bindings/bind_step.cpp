// SPDX-License-Identifier: Apache-2.0
#include "bind_step.h"

#include <fmt/ranges.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/planner/step_cost.h"
#include "artifex_devices/sharding/mesh.h"
#include "gil.h"
#include "step_arguments.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

template <class T>
T at(const py::dict& from, const char* key) {
  return from[key].cast<T>();
}

StepRole role_of(const std::string& name) {
  if (name == "parameter") return StepRole::kParameter;
  return name == "given" ? StepRole::kGiven : StepRole::kActivation;
}

StepOpKind kind_of(const std::string& name) {
  if (name == "elementwise") return StepOpKind::kElementwise;
  if (name == "lookup") return StepOpKind::kLookup;
  return name == "route" ? StepOpKind::kRoute : StepOpKind::kMatmul;
}

const char* name_of(StepProductKind kind) {
  switch (kind) {
    case StepProductKind::kForward:
      return "forward";
    case StepProductKind::kRecomputed:
      return "recomputed";
    case StepProductKind::kFirstGradient:
      return "gradient of the first input";
    case StepProductKind::kSecondGradient:
      return "gradient of the second input";
  }
  return "";
}

py::dict memory_dict(const StepMemory& memory) {
  py::dict result;
  result["parameters"] = memory.parameters.at(1);
  result["gradients"] = memory.gradients.at(1);
  result["optimizer"] = memory.optimizer.at(1);
  result["activations"] = memory.activations.at(1);
  result["given"] = memory.given.at(1);
  result["working"] = memory.working_at(1);
  return result;
}

py::list regimes_list(const std::vector<StepRegime>& regimes) {
  py::list result;
  for (const StepRegime& each : regimes) {
    result.append(py::make_tuple(std::string(to_string(each.bound)), each.begin, each.end));
  }
  return result;
}

py::dict collective_dict(const StepCollective& each, const CollectiveCost& cost) {
  py::dict entry;
  entry["op"] = each.op;
  entry["tensor"] = each.tensor;
  entry["is_gradient"] = each.is_gradient;
  entry["pass"] = each.pass == StepPass::kForward ? "forward" : "backward";
  entry["kind"] = std::string(to_string(each.kind));
  entry["axes"] = each.axes;
  entry["group"] = each.group;
  entry["count"] = each.count;
  entry["bytes"] = each.bytes.at(1);
  entry["received"] = received_bytes(each.kind, each.bytes.at(1), each.group);
  entry["algorithm"] = std::string(cost.algorithm);
  entry["limit"] = std::string(cost.limit);
  entry["latency"] = cost.latency;
  entry["transfer"] = cost.transfer;
  return entry;
}

py::dict product_dict(const StepProduct& each, const StepHardware& hardware) {
  py::dict entry;
  entry["op"] = each.op;
  entry["kind"] = name_of(each.kind);
  entry["format"] = std::string(to_string(each.format));
  entry["flops"] = each.flops.at(1);
  entry["bytes"] = each.bytes.at(1);
  entry["seconds"] = each.flops.at(1) / hardware.peak_flops[static_cast<size_t>(each.format)].value();
  return entry;
}

py::dict seconds_dict(const StepSeconds& seconds) {
  py::dict result;
  result["compute"] = seconds.compute;
  result["memory"] = seconds.memory;
  result["network"] = seconds.network;
  result["device"] = seconds.device;
  result["overlapped"] = seconds.overlapped();
  result["serial"] = seconds.serial();
  result["overlapped_bound"] = std::string(to_string(seconds.overlapped_bound()));
  result["serial_bound"] = std::string(to_string(seconds.serial_bound()));
  return result;
}

/// All of a plan, before anything of it is a Python object.
struct PlannedStep {
  StepFlow flow;
  StepHardware hardware;
  StepSeconds seconds;
  std::vector<StepRegime> regimes;
  std::vector<StepRegime> serial_regimes;
  std::vector<CollectiveCost> costs;  // of the flow's collectives
};

PlannedStep planned_step(const StepModel& model, const Cluster& cluster, const Mesh& mesh,
                         const std::vector<std::string>& names, const StepRules& rules) {
  const Dims& axis_sizes = mesh.abstract_mesh().axis_sizes();
  const std::vector<int64_t> sizes(axis_sizes.begin(), axis_sizes.end());
  const std::vector<std::string> wrong = step_mismatches(model, sizes, names, rules);
  if (!wrong.empty()) {
    throw_error(
        "{}: the rules do not fit the model: {}; expected dimensions that divide evenly, and each axis of the mesh in "
        "one dimension of a tensor; change the rules, the mesh or the shapes",
        kPlanStep, fmt::join(wrong, "; "));
  }
  PlannedStep planned;
  planned.flow = step_flow(model, sizes, rules);
  std::vector<MeshAxes> wanted;
  for (const StepCollective& each : planned.flow.collectives) {
    if (std::ranges::find(wanted, each.axes) == wanted.end()) wanted.push_back(each.axes);
  }
  planned.hardware = step_hardware(cluster);
  std::vector<int64_t> devices;
  for (int64_t i = 0; i < mesh.size(); ++i) devices.push_back((*mesh.devices())[i]->id());
  const StepNetwork network = step_network(cluster, sizes, devices, wanted);
  planned.seconds = step_seconds(planned.flow, planned.hardware, network);
  planned.regimes = step_regimes(planned.flow, planned.hardware, network, true);
  planned.serial_regimes = step_regimes(planned.flow, planned.hardware, network, false);
  for (const StepCollective& each : planned.flow.collectives) {
    planned.costs.push_back(step_collective_cost(each, network));
  }
  return planned;
}

py::dict plan_step(const py::dict& described, const std::shared_ptr<Cluster>& cluster, const Mesh& mesh,
                   const std::vector<std::string>& names, const StepRules& rules) {
  const StepModel model = step_model_from_python(described, kPlanStep);
  const PlannedStep planned = [&] {
    const ReleaseGil release;
    return planned_step(model, *cluster, mesh, names, rules);
  }();
  const StepFlow& flow = planned.flow;
  py::dict result;
  result["memory"] = memory_dict(flow.memory);
  result["memory_bytes"] = planned.hardware.memory_bytes;
  result["largest_scale"] = largest_step_scale(flow.memory, planned.hardware.memory_bytes);
  result["update_bytes"] = flow.update_bytes.at(1);
  result["seconds"] = seconds_dict(planned.seconds);
  result["regimes"] = regimes_list(planned.regimes);
  result["serial_regimes"] = regimes_list(planned.serial_regimes);
  py::list products;
  for (const StepProduct& each : flow.products) products.append(product_dict(each, planned.hardware));
  result["products"] = std::move(products);
  py::list collectives;
  for (size_t i = 0; i < flow.collectives.size(); ++i) {
    collectives.append(collective_dict(flow.collectives[i], planned.costs[i]));
  }
  result["collectives"] = std::move(collectives);
  return result;
}

}  // namespace

StepModel step_model_from_python(const py::dict& model, std::string_view operation) {
  StepModel made;
  made.logical_axes = at<std::vector<std::string>>(model, "logical_axes");
  made.tokens = at<int64_t>(model, "tokens");
  made.is_training = at<bool>(model, "is_training");
  made.optimizer_bytes = at<double>(model, "optimizer_bytes");
  made.gradient_itemsize = at<double>(model, "gradient_itemsize");
  made.holds_gradients = at<bool>(model, "holds_gradients");
  for (const py::handle each : model["tensors"].cast<py::list>()) {
    const auto from = each.cast<py::dict>();
    StepTensor tensor;
    tensor.name = at<std::string>(from, "name");
    tensor.shape = Dims(at<std::vector<int64_t>>(from, "shape"));
    tensor.axes = at<std::vector<int>>(from, "axes");
    tensor.itemsize = at<double>(from, "itemsize");
    tensor.role = role_of(at<std::string>(from, "role"));
    tensor.count = at<int64_t>(from, "count");
    tensor.is_kept = at<bool>(from, "is_kept");
    tensor.is_on_chip = at<bool>(from, "is_on_chip");
    tensor.scales = at<bool>(from, "scales");
    made.tensors.push_back(std::move(tensor));
  }
  for (const py::handle each : model["ops"].cast<py::list>()) {
    const auto from = each.cast<py::dict>();
    StepOp op;
    op.name = at<std::string>(from, "name");
    op.kind = kind_of(at<std::string>(from, "kind"));
    op.inputs = at<std::array<int, 2>>(from, "inputs");
    op.output = at<int>(from, "output");
    op.indices = at<std::array<std::vector<int>, 3>>(from, "indices");
    op.count = at<int64_t>(from, "count");
    const auto format = at<std::string>(from, "format");
    const auto found = matmul_format_from_name(format);
    if (!found && op.kind == StepOpKind::kMatmul) {
      throw_error<Unavailable>(
          "{}: nobody publishes FLOP/s for products of {} ({}); expected a format of artifex_devices.roofline; give "
          "the operation a dtype",
          operation, format, op.name);
    }
    op.format = found.value_or(MatmulFormat::kBFloat16);
    op.is_recomputed = at<bool>(from, "is_recomputed");
    made.ops.push_back(std::move(op));
  }
  return made;
}

void bind_step(py::module_& module) {
  module.def("_plan_step", &plan_step, py::arg("model"), py::arg("cluster"), py::arg("mesh"), py::arg("mesh_names"),
             py::arg("rules"),
             "What a step comes to on each device of a mesh, as a dict. `rules`: axes of the mesh as bits, one number "
             "a logical axis.");
}

}  // namespace artifex_devices::bindings
