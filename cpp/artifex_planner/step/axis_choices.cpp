// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/axis_choices.h"

#include <bit>
#include <numeric>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

constexpr const char* kSuggestOperation = "suggest";
constexpr size_t kSetsBetweenInterrupts = size_t{1} << 14;

}  // namespace

AxisChoices::AxisChoices(const StepModel& model, const std::vector<int>& shardable)
    : divisors_(model.logical_axes.size(), 0) {
  if (model.logical_axes.size() > 64) {
    throw_error("{}: the model has {} logical axes; expected at most 64; join some", kSuggestOperation,
                model.logical_axes.size());
  }
  std::vector<AxisSet> rivals(divisors_.size(), 0);  // axes that share a tensor with one
  for (const StepTensor& tensor : model.tensors) {
    for (size_t d = 0; d < tensor.axes.size(); ++d) {
      const auto axis = static_cast<size_t>(tensor.axes[d]);
      divisors_[axis] = std::gcd(divisors_[axis], tensor.shape[static_cast<int64_t>(d)]);
      for (size_t other = 0; other < tensor.axes.size(); ++other) {
        if (other != d) rivals[axis] |= AxisSet{1} << tensor.axes[other];
      }
    }
  }
  sets_ = {0};
  for (const int axis : shardable) {
    const AxisSet bit = AxisSet{1} << axis;
    const AxisSet against = rivals[static_cast<size_t>(axis)];
    if ((against & bit) != 0) continue;  // twice in one tensor: it cannot be sharded
    for (size_t i = 0, count = sets_.size(); i < count; ++i) {
      if ((sets_[i] & against) == 0) sets_.push_back(sets_[i] | bit);
    }
    if (sets_.size() > size_t{1} << 20) {
      throw_error(
          "{}: one axis of a mesh may shard more than 2^20 sets of the model's logical axes; expected fewer; name some "
          "by axes=",
          kSuggestOperation);
    }
  }
}

bool AxisChoices::divides(AxisSet set, int64_t parts) const {
  for (; set != 0; set &= set - 1) {
    if (divisors_[static_cast<size_t>(std::countr_zero(set))] % parts != 0) return false;
  }
  return true;
}

template <class Visit>
void AxisChoices::each_for_size(int64_t size, Visit visit) const {
  const size_t count = size == 1 ? 1 : sets_.size();
  for (size_t i = 0; i < count; ++i) {
    if (i % kSetsBetweenInterrupts == 0) check_interrupt();
    if (divides(sets_[i], size)) visit(sets_[i]);
  }
}

std::vector<AxisSet> AxisChoices::for_size(int64_t size) const {
  std::vector<AxisSet> found;
  each_for_size(size, [&](AxisSet set) { found.push_back(set); });
  return found;
}

int64_t AxisChoices::count_for_size(int64_t size) const {
  int64_t count = 0;
  each_for_size(size, [&](AxisSet) { ++count; });
  return count;
}

bool AxisChoices::fit_together(const std::vector<int64_t>& sizes, const std::vector<AxisSet>& sets) const {
  AxisSet shared = 0;
  for (size_t a = 0; a < sets.size(); ++a) {
    for (size_t b = 0; b < a; ++b) shared |= sets[a] & sets[b];
  }
  for (; shared != 0; shared &= shared - 1) {
    const AxisSet bit = shared & (~shared + 1);
    int64_t parts = 1;
    for (size_t a = 0; a < sets.size(); ++a) parts *= (sets[a] & bit) != 0 ? sizes[a] : 1;
    if (divisors_[static_cast<size_t>(std::countr_zero(bit))] % parts != 0) return false;
  }
  return true;
}

}  // namespace artifex_devices::planner
