// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace artifex_devices {

/// Which of several sources each position of a mix takes, and how often that source was taken before.
///
/// Source i has the share parts[i] / sum(parts). After any number k of positions it was taken within 1 of k times its
/// share: use j of it (from 1) falls into the positions (j - 1) / share .. j / share, by the rule of the earliest
/// deadline. Source: R. Tijdeman, The chairman assignment problem, Discrete Mathematics 32 (1980). The schedule repeats
/// after sum(parts) positions; a table of one period is kept.
class MixSchedule {
 public:
  static constexpr int64_t kMostParts = int64_t{1} << 20;

  /// Throws InvalidArgument unless `parts` are at least 0, not all 0, and their sum is at most kMostParts.
  explicit MixSchedule(std::span<const int64_t> parts);

  struct Use {
    int source;
    int64_t occurrence;  // from 0
  };

  Use operator()(int64_t position) const noexcept {
    const auto period = static_cast<int64_t>(slots_.size());
    const Slot slot = slots_[static_cast<size_t>(position % period)];
    return {slot.source, position / period * parts_[static_cast<size_t>(slot.source)] + slot.rank};
  }

  /// The position of use number `occurrence` (from 0) of a source with at least one part; nothing if it does not fit 63
  /// bits.
  std::optional<int64_t> position_of(int source, int64_t occurrence) const noexcept;

  const std::vector<int64_t>& parts() const noexcept { return parts_; }

 private:
  struct Slot {
    int32_t source;
    int32_t rank;  // uses of the source before, in this period
  };

  std::vector<int64_t> parts_;
  std::vector<Slot> slots_;
};

}  // namespace artifex_devices
