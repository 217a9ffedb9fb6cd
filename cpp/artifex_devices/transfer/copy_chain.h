// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/device/copy_batch.h"

namespace artifex_devices {

/// The common properties of copies of some boxes.
struct BoxForm {
  Dims shape;
  Dims to_strides;
  Dims from_strides;
  int64_t itemsize = 1;
  int64_t transfer_bytes = 0;  // as StridedCopy has it
  LaneId lane = kAnyLane;      // of the device that the memory is written for

  StridedCopy copy(std::byte* to, const std::byte* from) const {
    return {to, to_strides, from, from_strides, shape, itemsize, transfer_bytes};
  }
  friend bool operator==(const BoxForm&, const BoxForm&) = default;
};

/// Boxes of one form at equal distances from each other, in the source and in the destination.
struct BoxRun {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  int64_t count = 0;
  int64_t to_step = 0;
  int64_t from_step = 0;

  /// Appends the box to the run. Returns false, without a change, if it is not at these distances.
  bool take(std::byte* next_to, const std::byte* next_from);
};

/// The boxes of a run as one box of another dimension.
BoxForm joined(const BoxForm& form, const BoxRun& run);

/// Adds each box to a batch as a separate copy.
class CopyLister {
 public:
  explicit CopyLister(CopyBatch* batch) : batch_(batch) {}
  void begin(BoxForm form) { form_ = std::move(form); }
  void add(std::byte* to, const std::byte* from) { batch_->add(form_.copy(to, from), form_.lane); }
  void add(const BoxRun& run) {
    for (int64_t i = 0; i < run.count; ++i) add(run.to + i * run.to_step, run.from + i * run.from_step);
  }

 private:
  CopyBatch* batch_;
  BoxForm form_;
};

/// Copies boxes on the calling thread, as few strided copies. Boxes at a constant distance in the source and in the
/// destination become one copy with another dimension, and so do such copies at constant distances. So the columns of a
/// block of destinations are one transpose. The destinations of all boxes must not overlap. Use: begin, add each box of
/// that form, begin with another form, ..., flush.
class CopyChain {
 public:
  /// The form of the boxes that follow.
  void begin(BoxForm form);
  void add(std::byte* to, const std::byte* from) {
    if (run_.take(to, from)) return;
    end_run();
    run_ = {to, from, 1};
  }
  void add(const BoxRun& run) {
    end_run();
    run_ = run;
  }
  /// Runs the copies that were added and not run yet.
  void flush();

 private:
  /// A run of joined copies, not copied yet.
  struct Pending {
    BoxForm form;
    BoxRun run;
  };
  void end_run();
  void join(const BoxForm& form, std::byte* to, const std::byte* from);
  void copy_one(std::byte* to, const std::byte* from);

  BoxForm form_;
  int64_t dense_bytes_ = 0;  // of a short box that is dense on both sides; 0: it is not
  BoxRun run_;
  std::optional<StridedCopy> one_;  // of one box, where it was used last
  std::byte* one_to_ = nullptr;
  const std::byte* one_from_ = nullptr;
  std::vector<Pending> pending_;
  size_t oldest_ = 0;
};

inline bool BoxRun::take(std::byte* next_to, const std::byte* next_from) {
  const auto distance = [](const std::byte* a, const std::byte* b) {  // they may be in two blocks of memory
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(b) - reinterpret_cast<uintptr_t>(a));
  };
  if (count == 0) return false;
  if (count == 1) {
    to_step = distance(to, next_to);
    from_step = distance(from, next_from);
  } else if (distance(to, next_to) != count * to_step || distance(from, next_from) != count * from_step) {
    return false;
  }
  ++count;
  return true;
}

}  // namespace artifex_devices
