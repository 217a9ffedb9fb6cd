// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace artifex_devices {

/// Where the samples at some positions of an Order come from. All spans but `keys` have one element for each position.
struct ResolvedPositions {
  std::span<int32_t> leaf;   // number of the source
  std::span<int64_t> index;  // in the source
  /// For each mark of the order (Order::mark) one row of pairs: epoch and position there. Untouched where the sample
  /// does not pass the mark.
  std::span<uint64_t> keys;
};

/// An order of samples: a function from positions 0 .. size - 1 to samples of sources ("leaves"), without a list of
/// them. Immutable: threads share it.
class Order {
 public:
  using Ptr = std::shared_ptr<const Order>;

  static constexpr int kBlock = 1024;  // most positions of a Block, which stay in the first cache

  virtual ~Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  int64_t size() const noexcept { return size_; }  // of an endless order INT64_MAX
  bool endless() const noexcept { return endless_; }
  int leaves() const noexcept { return leaves_; }
  int marks() const noexcept { return marks_; }

  /// Finds the samples at `positions`. Throws IndexOutOfRange for one outside the order.
  void resolve(std::span<const int64_t> positions, ResolvedPositions found) const;

  /// Finds the indices of the samples at `start` and following positions. Throws IndexOutOfRange.
  void indices(int64_t start, std::span<int64_t> found) const;

  /// A block of positions on its way to the leaves. A node rewrites `position` and `epoch` in place and asks its child.
  struct Block {
    int count;
    int64_t* position;
    uint64_t* epoch;          // how often the order was repeated before, by which random functions differ
    uint64_t* shuffle_epoch;  // by which shuffles differ: 0 below a slice, which has the same samples in every epoch
    int32_t* leaf;
    uint64_t* keys;      // nullptr: not wanted
    int64_t key_stride;  // between rows of `keys`
    const int32_t* row;  // column of each position in `keys`
    int first_leaf;
    int first_mark;
  };
  virtual void find(const Block& block) const = 0;

 protected:
  Order(int64_t size, bool endless, int leaves, int marks) noexcept
      : size_(endless ? INT64_MAX : size), endless_(endless), leaves_(leaves), marks_(marks) {}

 private:
  int64_t size_;
  bool endless_;
  int leaves_;
  int marks_;
};

/// The samples of one source in their order. A size, a count or a number of times without a value is endless.
Order::Ptr range_order(std::optional<int64_t> size);

/// Shuffles whole, or inside consecutive windows of `window` positions for a window above 0. Each epoch has its own
/// order.
Order::Ptr shuffled(Order::Ptr order, uint64_t seed, int64_t window);

/// Puts shards in random order, and the positions inside each. Shards begin at `starts`, which ascend from 0.
Order::Ptr shuffled_shards(Order::Ptr order, uint64_t seed, std::vector<int64_t> starts);

/// Repeats an order that has an end.
Order::Ptr repeated(Order::Ptr order, std::optional<int64_t> times);

/// `count` positions from `start`, each `step` after the other; `step` may be negative. The same samples in every
/// epoch.
Order::Ptr sliced(Order::Ptr order, int64_t start, std::optional<int64_t> count, int64_t step);

/// The positions in `chosen`. The same samples in every epoch.
Order::Ptr selected(Order::Ptr order, std::vector<int64_t> chosen);

/// One order after the other; only the last may be endless. Leaves and marks are numbered through.
Order::Ptr concatenated(std::vector<Order::Ptr> orders);

/// Takes from the orders in the proportion of `parts` (MixSchedule). Ends before the first order with parts has no
/// more, or repeats each one and is endless.
Order::Ptr mixed(std::vector<Order::Ptr> orders, const std::vector<int64_t>& parts, bool repeat);

/// Notes epoch and position at this place, in the last row of ResolvedPositions::keys.
Order::Ptr marked(Order::Ptr order);

}  // namespace artifex_devices
