// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace artifex_devices {

/// Bytes on each directed link of a torus or mesh, when every message goes the shortest way along x, then y, then z.
/// Where both ways round a ring are equally short, half goes each way.
/// Example: in a line of 3, a message of 8 bytes from 0 to 2 puts 8 bytes on the links 0->1 and 1->2.
class LinkLoads {
 public:
  /// Chips along each axis, x first, and whether its ends are joined; rings of 2 are lines. Throws InvalidArgument for
  /// sizes below 1, lists of unequal length, and more than 2^24 chips.
  LinkLoads(const std::vector<int>& dims, const std::vector<bool>& wraps);

  int64_t chips() const noexcept { return chips_; }
  /// Chips are numbered with x fastest.
  void add(int64_t from, int64_t to, double bytes);

  /// Of the busiest link.
  double most_bytes() const noexcept;
  /// Over all links: each message counts once a link that it goes over.
  double total_bytes() const noexcept;
  /// Links that the longest message so far went over.
  int64_t longest_path() const noexcept { return longest_path_; }

 private:
  double& load(size_t axis, int64_t chip, bool forward) {
    return loads_[(axis * static_cast<size_t>(chips_) + static_cast<size_t>(chip)) * 2 + (forward ? 1 : 0)];
  }
  std::vector<int> dims_;
  std::vector<bool> wraps_;
  int64_t chips_ = 1;
  int64_t longest_path_ = 0;
  std::vector<double> loads_;  // axis, chip that the link leaves, backward and forward
};

}  // namespace artifex_devices
