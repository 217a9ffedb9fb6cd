// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace artifex_devices {

/// Bytes on each directed link of a torus or mesh, when every message takes the shortest path along x, then y, then z.
/// If both directions of a ring are equally short, half goes each way. Adding a message takes time per axis, not per
/// link: only the ends of its row of links are recorded, and running sums give the loads. Example: in a line of 3, a
/// message of 8 bytes from 0 to 2 puts 8 bytes on the links 0->1 and 1->2.
class LinkLoads {
 public:
  /// Chips along each axis, x first, and whether its ends are joined; rings of 2 are lines. Throws InvalidArgument for
  /// sizes below 1, lists of unequal length, and more than 2^24 chips.
  LinkLoads(std::vector<int64_t> dims, std::vector<bool> wraps);

  int64_t chips() const noexcept { return chips_; }
  /// Chips are numbered with x fastest. Returns the links that the message goes over.
  int64_t add(int64_t from, int64_t to, double bytes);

  /// Of the busiest link.
  double most_bytes() const noexcept;
  /// Sum over all links; a message counts once for each link on its path.
  double total_bytes() const noexcept;
  /// Links that the longest message so far went over.
  int64_t longest_path() const noexcept { return longest_path_; }

 private:
  /// Adds to the links that leave the chips `first` to `last` of the row along the axis that has chip `base` at 0.
  void add_range(size_t axis, bool forward, int64_t base, int64_t first, int64_t last, double bytes);
  double& change(size_t axis, bool forward, int64_t chip) noexcept {
    return changes_[(axis * 2 + (forward ? 1 : 0)) * static_cast<size_t>(chips_) + static_cast<size_t>(chip)];
  }
  /// Calls visit(load) for each link.
  template <class Visit>
  void for_each_link(Visit&& visit) const;

  std::vector<int64_t> dims_;
  std::vector<int64_t> strides_;
  std::vector<bool> wraps_;
  int64_t chips_ = 1;
  int64_t longest_path_ = 0;
  // Axis, backward and forward, chip that the link leaves: difference between the link's load and the load of the
  // previous chip's link on the axis.
  std::vector<double> changes_;
};

}  // namespace artifex_devices
