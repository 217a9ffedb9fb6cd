// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/work.h"

#include <algorithm>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/step/elementwise.h"

namespace artifex_devices::planner {
namespace {

void check_model(const StepModel& model, size_t mesh_axes, const StepRules& rules, std::string_view operation) {
  const auto tensors = static_cast<int>(model.tensors.size());
  const auto is_sound = [&](const StepOp& op, size_t place, int tensor) {
    if (tensor < 0 || tensor >= tensors) return false;
    const StepTensor& own = model.tensors[static_cast<size_t>(tensor)];
    return op.indices[place].size() == own.axes.size() &&
           std::ranges::all_of(op.indices[place], [](int index) { return index >= 0 && index < 32; });
  };
  for (const StepOp& op : model.ops) {
    const bool has_two = op.kind == StepOpKind::kMatmul || op.kind == StepOpKind::kElementwise;
    if (!is_sound(op, 0, op.inputs[0]) || (has_two && !is_sound(op, 1, op.inputs[1])) || !is_sound(op, 2, op.output)) {
      throw_error("{}: operation {} names no tensor, or another number of indices than it has dimensions; correct it",
                  operation, op.name);
    }
  }
  if (mesh_axes > kStepMeshAxes) {
    throw_error("{}: the mesh has {} axes; expected at most {}; join some", operation, mesh_axes, kStepMeshAxes);
  }
  if (rules.size() != model.logical_axes.size()) {
    throw_error("{}: there are {} rules; expected one for each of {} logical axes", operation, rules.size(),
                model.logical_axes.size());
  }
}

/// Walks over operations and records the work of each.
class Walk {
 public:
  Walk(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules)
      : model_(model), mesh_(mesh_sizes), rules_(rules), first_of_tensor_(model.tensors.size(), -1) {
    std::ranges::copy(mesh_, sizes_.begin());
  }

  StepWork work() {
    for (const StepTensor& tensor : model_.tensors) keep(tensor);
    work_.elementwise_bytes = elementwise_bytes(model_, mesh_, rules_);
    work_.is_training = model_.is_training;
    for (const StepOp& op : model_.ops) work_.layer_passes = std::max(work_.layer_passes, op.count);
    if (model_.is_training) work_.layer_passes *= 2;
    for (size_t i = 0; i < model_.ops.size(); ++i) forward(static_cast<int>(i), StepPass::kForward);
    if (!model_.is_training) return std::move(work_);
    for (size_t i = model_.ops.size(); i-- > 0;) {
      const auto op = static_cast<int>(i);
      if (model_.ops[i].is_recomputed) forward(op, StepPass::kBackward);
      backward(op);
    }
    return std::move(work_);
  }

 private:
  static constexpr int kBetweenInterrupts = 256;  // operations

  /// Dimensions that each mesh axis shards before and after an all-to-all; 0 and 0 for axes that it does not use.
  using Exchange = std::array<std::array<int8_t, 2>, kStepMeshAxes>;
  static constexpr Exchange kNoExchange{};

  /// One array of an einsum, with its origin.
  struct Part {
    EinsumArray array;
    const std::vector<int>* indices = nullptr;
    int tensor = -1;  // -1: built on the device, without bytes
    bool is_gradient = false;
  };

  const StepTensor& tensor(int number) const { return model_.tensors[static_cast<size_t>(number)]; }
  bool is_stored(const StepTensor& each) const {
    return each.role != StepRole::kActivation || (model_.is_training && each.is_kept && !each.is_on_chip);
  }
  double itemsize(const Part& part) const {
    const StepTensor& own = tensor(part.tensor);
    const bool is_own = !part.is_gradient || own.role != StepRole::kParameter || model_.gradient_itemsize == 0;
    return is_own ? own.itemsize : model_.gradient_itemsize;
  }
  double parts(MeshAxes axes) const {
    double result = 1;
    for (size_t axis = 0; axis < mesh_.size(); ++axis) {
      if ((axes >> axis & 1) != 0) result *= static_cast<double>(mesh_[axis]);
    }
    return result;
  }
  MeshAxes sharding_axes(const StepTensor& each) const {
    MeshAxes axes = 0;
    for (const int axis : each.axes) axes |= rules_[static_cast<size_t>(axis)];
    return axes;
  }
  static double elements(const StepTensor& each) {
    double result = 1;
    for (const int64_t size : each.shape) result *= static_cast<double>(size);
    return result;
  }
  static BatchAmount amount(double value, bool scales) {
    return scales ? BatchAmount{0, value} : BatchAmount{value, 0};
  }
  /// Bytes of a device's shard, or of a larger part where the axes in `without` do not shard.
  BatchAmount shard(const Part& part, MeshAxes without = 0) const {
    if (part.tensor < 0) return {};
    const StepTensor& own = tensor(part.tensor);
    return amount(elements(own) * itemsize(part) / parts(sharding_axes(own) & ~without), own.scales);
  }

  Part part(const std::vector<int>& indices, int number, bool is_gradient) const {
    const StepTensor& own = tensor(number);
    Part result{{}, &indices, number, is_gradient};
    for (size_t d = 0; d < indices.size(); ++d) {
      result.array.indices |= EinsumIndices{1} << indices[d];
      const MeshAxes axes = rules_[static_cast<size_t>(own.axes[d])];
      for (size_t axis = 0; axis < mesh_.size(); ++axis) {
        // An axis of one device shards nothing.
        if ((axes >> axis & 1) != 0 && mesh_[axis] > 1) result.array.sharded[axis] = static_cast<int8_t>(indices[d]);
      }
    }
    const BatchAmount mine = shard(result);
    result.array.bytes = mine.at(1);
    return result;
  }

  void keep(const StepTensor& each) {
    const double count = static_cast<double>(each.count);
    const double mine = elements(each) * count / parts(sharding_axes(each));
    const BatchAmount bytes = amount(mine * each.itemsize, each.scales);
    if (each.role == StepRole::kGiven) work_.memory.given += bytes;
    if (each.role == StepRole::kActivation && is_stored(each)) work_.memory.activations += bytes;
    if (each.role != StepRole::kParameter) return;
    work_.memory.parameters += bytes;
    if (!model_.is_training) return;
    const double size = model_.gradient_itemsize == 0 ? each.itemsize : model_.gradient_itemsize;
    const BatchAmount gradient = amount(mine * size, each.scales);
    const BatchAmount state = amount(mine * model_.optimizer_bytes, each.scales);
    if (model_.holds_gradients) work_.memory.gradients += gradient;
    work_.memory.optimizer += state;
    work_.update_bytes += gradient;  // read; the rest is read and written
    work_.update_bytes += state * 2;
    work_.update_bytes += bytes * 2;
  }

  static int8_t dimension_of(const Part& part, int index) {
    const auto found = std::ranges::find(*part.indices, index);
    return static_cast<int8_t>(found == part.indices->end() ? -1 : found - part.indices->begin());
  }

  static Exchange exchange(const Part& before, const IndexByAxis& before_axes, const Part& after,
                           const IndexByAxis& after_axes, MeshAxes axes) {
    Exchange result = kNoExchange;
    for (size_t axis = 0; axis < kStepMeshAxes; ++axis) {
      if ((axes >> axis & 1) == 0) continue;
      result[axis] = {dimension_of(before, before_axes[axis]), dimension_of(after, after_axes[axis])};
    }
    return result;
  }

  /// Records a collective, once for all operations that need an equal one. All-to-alls are equal if their exchanges are
  /// equal.
  void collective(const Part& part, int op, StepPass pass, CollectiveOp kind, MeshAxes axes, const BatchAmount& bytes,
                  const Exchange& exchange = kNoExchange) {
    if (axes == 0) return;
    const int64_t count = model_.ops[static_cast<size_t>(op)].count;
    int& first = first_of_tensor_[static_cast<size_t>(part.tensor)];
    for (int i = first; i >= 0; i = links_[static_cast<size_t>(i)].next) {
      StepCollective& each = work_.collectives[static_cast<size_t>(i)];
      if (each.is_gradient != part.is_gradient || each.pass != pass || each.kind != kind || each.axes != axes ||
          links_[static_cast<size_t>(i)].exchange != exchange) {
        continue;
      }
      each.count = std::max(each.count, count);
      each.bytes = {std::max(each.bytes.fixed, bytes.fixed), std::max(each.bytes.scaled, bytes.scaled)};
      return;
    }
    links_.push_back({exchange, first});
    first = static_cast<int>(work_.collectives.size());
    work_.collectives.push_back({op, part.tensor, part.is_gradient, pass, kind, axes,
                                 tensor(part.tensor).role == StepRole::kParameter, static_cast<int64_t>(parts(axes)),
                                 count, bytes});
  }

  /// Records the collectives after a product. Each device holds `local` bytes of its result.
  void finish(const Part& result, const EinsumMoves& moves, int op, StepPass pass, BatchAmount local) {
    collective(result, op, pass, CollectiveOp::kReduceScatter, moves.reduce_scatter, local);
    local = local * (1 / parts(moves.reduce_scatter));
    collective(result, op, pass, CollectiveOp::kAllReduce, moves.all_reduce, local);
    collective(result, op, pass, CollectiveOp::kAllToAll, moves.exchange_result, local * parts(moves.exchange_result),
               exchange(result, moves.product, result, result.array.sharded, moves.exchange_result));
    collective(result, op, pass, CollectiveOp::kAllGather, moves.gather_result, local * parts(moves.gather_result));
  }

  /// Number of parts of an array in the product.
  double product_parts(const EinsumMoves& moves, EinsumIndices indices) const {
    double result = 1;
    for (size_t axis = 0; axis < mesh_.size(); ++axis) {
      if (moves.product[axis] >= 0 && (indices >> moves.product[axis] & 1) != 0) {
        result *= static_cast<double>(mesh_[axis]);
      }
    }
    return result;
  }
  /// Bytes of an operand or result that the product of one device works on.
  BatchAmount in_product(const Part& part, const EinsumMoves& moves) const {
    if (part.tensor < 0) return {};
    const StepTensor& own = tensor(part.tensor);
    const double whole = elements(own) * itemsize(part);
    return amount(whole / product_parts(moves, part.array.indices), own.scales);
  }

  void product(const std::array<Part, 2>& operands, const Part& result, int number, StepPass pass,
               StepProductKind kind) {
    const StepOp& op = model_.ops[static_cast<size_t>(number)];
    const EinsumMoves moves = einsum_moves(operands[0].array, operands[1].array, result.array, sizes_);
    BatchAmount working;
    BatchAmount traffic;
    for (size_t i = 0; i < 2; ++i) {
      if (operands[i].tensor < 0) continue;
      const StepTensor& own = tensor(operands[i].tensor);
      collective(operands[i], number, pass, CollectiveOp::kAllToAll, moves.exchange[i],
                 shard(operands[i], moves.exchange[i]),
                 exchange(operands[i], operands[i].array.sharded, operands[i], moves.product, moves.exchange[i]));
      collective(operands[i], number, pass, CollectiveOp::kAllGather, moves.gather[i],
                 shard(operands[i], moves.gather[i]));
      const BatchAmount used = in_product(operands[i], moves);
      if ((moves.gather[i] | moves.exchange[i]) != 0) working += shard(operands[i], moves.gather[i]);
      if (own.is_on_chip) continue;
      if (operands[i].is_gradient || !is_stored(own)) working += shard(operands[i]);
      traffic += used;
    }
    const BatchAmount local = in_product(result, moves);
    finish(result, moves, number, pass, local);
    if (!tensor(result.tensor).is_on_chip) {
      working += local;
      traffic += local;
    }
    work_.memory.working.push_back(working);
    if (op.kind != StepOpKind::kMatmul) return;
    const double count = static_cast<double>(op.count);
    const EinsumIndices first = operands[0].array.indices;
    const EinsumIndices second = operands[1].array.indices;
    const EinsumIndices kept = result.array.indices;
    const auto is_on_chip = [&](const Part& each) { return each.tensor >= 0 && tensor(each.tensor).is_on_chip; };
    work_.products.push_back({number, kind, op.format, flops_of(op, moves) * count, traffic * count,
                              local_size(op, moves, first & ~second & kept),
                              local_size(op, moves, second & ~first & kept),
                              local_size(op, moves, first & second & kept),
                              is_on_chip(operands[0]) || is_on_chip(operands[1]) || is_on_chip(result)});
  }

  /// Sizes of the indices of an operation; 0 for indices that it does not have.
  std::array<double, 32> sizes_of(const StepOp& op) const {
    std::array<double, 32> sizes{};
    const std::array<int, 3> tensors = {op.inputs[0], op.inputs[1], op.output};
    for (size_t place = 0; place < tensors.size(); ++place) {
      const StepTensor& own = tensor(tensors[place]);
      for (size_t d = 0; d < op.indices[place].size(); ++d) {
        sizes[static_cast<size_t>(op.indices[place][d])] = static_cast<double>(own.shape[static_cast<int64_t>(d)]);
      }
    }
    return sizes;
  }
  /// Product of the sizes of some indices in the product of one device.
  double local_size(const StepOp& op, const EinsumMoves& moves, EinsumIndices indices) const {
    const std::array<double, 32> sizes = sizes_of(op);
    double result = 1;
    for (size_t index = 0; index < sizes.size(); ++index) {
      if ((indices >> index & 1) != 0) result *= sizes[index];
    }
    return result / product_parts(moves, indices);
  }

  /// 2 for each combination of indices; half of them under a causal mask.
  BatchAmount flops_of(const StepOp& op, const EinsumMoves& moves) const {
    const bool scales = tensor(op.inputs[0]).scales || tensor(op.inputs[1]).scales || tensor(op.output).scales;
    const std::array<double, 32> sizes = sizes_of(op);
    EinsumIndices all = 0;
    for (size_t index = 0; index < sizes.size(); ++index) {
      if (sizes[index] > 0) all |= EinsumIndices{1} << index;
    }
    return amount((op.is_causal ? 1 : 2) * local_size(op, moves, all), scales);
  }

  /// The one-hot operand of a lookup: each device builds its part, sharded like the table, or like the rows where it
  /// cannot be both and the table is cheaper to move.
  static Part one_hot(const Part& table, const Part& rows) {
    Part made;
    for (size_t axis = 0; axis < kStepMeshAxes; ++axis) {
      const int in_table = rows.array.has(table.array.sharded[axis]) ? -1 : table.array.sharded[axis];
      const int in_rows = table.array.has(rows.array.sharded[axis]) ? -1 : rows.array.sharded[axis];
      const bool as_rows = in_table < 0 || (in_rows >= 0 && table.array.bytes <= rows.array.bytes);
      made.array.sharded[axis] = static_cast<int8_t>(as_rows ? in_rows : in_table);
    }
    made.array.indices = table.array.indices ^ rows.array.indices;
    return made;
  }

  void route(const Part& from, const Part& to, int op, StepPass pass) {
    const StepTensor& before = tensor(from.tensor);
    const StepTensor& after = tensor(to.tensor);
    MeshAxes crossing = 0;
    MeshAxes gather = 0;
    for (size_t axis = 0; axis < kStepMeshAxes; ++axis) {
      const int in_from = from.array.sharded[axis];
      const int in_to = to.array.sharded[axis];
      if (in_from < 0 || in_from == in_to) continue;
      (in_to < 0 ? gather : crossing) |= MeshAxes{1} << axis;
    }
    // Tokens that are routed to several experts are sent several times: the larger array counts.
    const Part& larger = elements(before) > elements(after) ? from : to;
    collective(to, op, pass, CollectiveOp::kAllToAll, crossing, shard(larger, crossing),
               exchange(from, from.array.sharded, to, to.array.sharded, crossing));
    collective(to, op, pass, CollectiveOp::kAllGather, gather, shard(to));
    BatchAmount working = shard(to);
    if (!is_stored(before)) working += shard(from);
    work_.memory.working.push_back(working);
  }

  void forward(int number, StepPass pass) {
    if (number % kBetweenInterrupts == 0) check_interrupt();
    const StepOp& op = model_.ops[static_cast<size_t>(number)];
    const Part first = part(op.indices[0], op.inputs[0], false);
    const Part result = part(op.indices[2], op.output, false);
    if (op.kind == StepOpKind::kRoute) return route(first, result, number, pass);
    const Part second =
        op.kind == StepOpKind::kLookup ? one_hot(first, result) : part(op.indices[1], op.inputs[1], false);
    product({first, second}, result, number, pass,
            pass == StepPass::kForward ? StepProductKind::kForward : StepProductKind::kRecomputed);
  }

  void backward(int number) {
    if (number % kBetweenInterrupts == 0) check_interrupt();
    const StepOp& op = model_.ops[static_cast<size_t>(number)];
    if (tensor(op.output).role == StepRole::kGiven) return;
    const Part first = part(op.indices[0], op.inputs[0], false);
    const Part gradient = part(op.indices[2], op.output, true);
    const auto of = [&](size_t i) { return part(op.indices[i], op.inputs[i], true); };
    const auto wants = [&](size_t i) { return tensor(op.inputs[i]).role != StepRole::kGiven; };
    if (op.kind == StepOpKind::kRoute) {
      if (wants(0)) route(gradient, of(0), number, StepPass::kBackward);
      return;
    }
    if (op.kind == StepOpKind::kLookup) {
      const Part own = of(0);
      if (wants(0)) {
        product({gradient, one_hot(own, gradient)}, own, number, StepPass::kBackward, StepProductKind::kFirstGradient);
      }
      return;
    }
    const Part second = part(op.indices[1], op.inputs[1], false);
    if (wants(0)) product({gradient, second}, of(0), number, StepPass::kBackward, StepProductKind::kFirstGradient);
    if (wants(1)) product({first, gradient}, of(1), number, StepPass::kBackward, StepProductKind::kSecondGradient);
  }

  const StepModel& model_;
  const std::vector<int64_t>& mesh_;
  MeshSizes sizes_{};
  const StepRules& rules_;
  StepWork work_;
  /// One for each of the work's collectives. The collectives of one tensor form a list, which makes the search for an
  /// equal one short.
  struct Link {
    Exchange exchange;
    int next = -1;
  };
  std::vector<Link> links_;
  std::vector<int> first_of_tensor_;
};

}  // namespace

BatchAmount StepMemory::kept() const noexcept {
  BatchAmount sum = parameters;
  for (const BatchAmount* each : {&gradients, &optimizer, &activations, &given}) sum += *each;
  return sum;
}

double StepMemory::working_at(double scale) const noexcept {
  double most = 0;
  for (const BatchAmount& each : working) most = std::max(most, each.at(scale));
  return most;
}

StepWork step_work(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules,
                   std::string_view operation) {
  check_model(model, mesh_sizes.size(), rules, operation);
  if (!step_fits_mesh(model, mesh_sizes, rules)) {
    throw_error(
        "{}: the rules do not fit the model's tensors; expected dimensions that divide, each axis of the mesh once a "
        "tensor; step_mismatches lists them",
        operation);
  }
  return Walk(model, mesh_sizes, rules).work();
}

}  // namespace artifex_devices::planner
