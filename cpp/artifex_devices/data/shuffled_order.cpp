// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/data/order.h"
#include "artifex_devices/data/permutation.h"

namespace artifex_devices {
namespace {

/// Calls `work(begin, end)` for each run of positions with the same value of `of(i)`, which decides the permutation.
template <typename Value, typename Work>
void for_each_run(int count, Value of, Work work) {
  for (int begin = 0; begin < count;) {
    const auto value = of(begin);
    int end = begin + 1;
    while (end < count && of(end) == value) ++end;
    work(begin, end);
    begin = end;
  }
}

class Shuffled final : public Order {
 public:
  Shuffled(Ptr order, uint64_t seed, int64_t window)
      : Order(order->size(), order->endless(), order->leaves(), order->marks()),
        order_(std::move(order)),
        seed_(seed),
        window_(window) {}

  void find(const Block& block) const override {
    for_each_run(
        block.count, [&](int i) { return std::pair(block.shuffle_epoch[i], block.position[i] / window_); },
        [&](int begin, int end) {
          const int64_t start = block.position[begin] / window_ * window_;
          const int64_t length = std::min(window_, size() - start);
          const uint64_t number = static_cast<uint64_t>(block.position[begin] / window_);
          const Permutation permutation(static_cast<uint64_t>(length),
                                        mixed_bits(mixed_bits(seed_, block.shuffle_epoch[begin]), number));
          for (int i = begin; i < end; ++i) {
            const auto inside = static_cast<uint64_t>(block.position[i] - start);
            block.position[i] = start + static_cast<int64_t>(permutation(inside));
          }
        });
    order_->find(block);
  }

 private:
  Ptr order_;
  uint64_t seed_;
  int64_t window_;
};

class ShuffledShards final : public Order {
 public:
  ShuffledShards(Ptr order, uint64_t seed, std::vector<int64_t> starts)
      : Order(order->size(), order->endless(), order->leaves(), order->marks()),
        order_(std::move(order)),
        seed_(seed),
        starts_(std::move(starts)) {}

  void find(const Block& block) const override {
    for_each_run(
        block.count, [&](int i) { return block.shuffle_epoch[i]; },
        [&](int begin, int end) {
          const std::shared_ptr<const Epoch> epoch = epoch_of(block.shuffle_epoch[begin]);
          std::optional<Permutation> inside;
          int64_t first = 0;  // position where the shard of the last sample begins in this order
          int64_t last = 0;   // and ends
          int64_t start = 0;  // where the shard begins below
          for (int i = begin; i < end; ++i) {
            if (block.position[i] < first || block.position[i] >= last) {
              const auto place = std::upper_bound(epoch->ends.begin(), epoch->ends.end(), block.position[i]);
              const size_t shard = epoch->order(static_cast<size_t>(place - epoch->ends.begin()));
              last = *place;
              first = last - length_of(shard);
              start = starts_[shard];
              inside.emplace(static_cast<uint64_t>(last - first),
                             mixed_bits(mixed_bits(seed_, epoch->number), shard + 1));
            }
            const auto offset = static_cast<uint64_t>(block.position[i] - first);
            block.position[i] = start + static_cast<int64_t>((*inside)(offset));
          }
        });
    order_->find(block);
  }

 private:
  /// The shards in the order of an epoch, and where each ends there.
  struct Epoch {
    uint64_t number;
    Permutation order;
    std::vector<int64_t> ends;
  };

  /// Returns the shards of an epoch; those of the last one that was asked for are kept.
  std::shared_ptr<const Epoch> epoch_of(uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    if (last_ && last_->number == number) return last_;
    const auto made =
        std::make_shared<Epoch>(Epoch{number, Permutation(starts_.size(), mixed_bits(seed_, number)), {}});
    int64_t total = 0;
    for (size_t k = 0; k < starts_.size(); ++k) made->ends.push_back(total += length_of(made->order(k)));
    return last_ = made;
  }

  int64_t length_of(size_t shard) const noexcept {
    return (shard + 1 < starts_.size() ? starts_[shard + 1] : size()) - starts_[shard];
  }

  Ptr order_;
  uint64_t seed_;
  std::vector<int64_t> starts_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Epoch> last_;
};

void check_has_end(const Order& order) {
  if (order.endless()) {
    throw_error(
        "shuffle: the stream is endless; expected one with a length; shuffle before repeat(), or shuffle(window=10_000)");
  }
}

}  // namespace

Order::Ptr shuffled(Order::Ptr order, uint64_t seed, int64_t window) {
  if (window < 0) throw_error("shuffle: window is {}; expected 1 or more; write window=10_000", window);
  if (window == 0) check_has_end(*order);
  if (order->size() == 0) return order;
  const int64_t length = window == 0 ? order->size() : window;
  return std::make_shared<Shuffled>(std::move(order), seed, length);
}

Order::Ptr shuffled_shards(Order::Ptr order, uint64_t seed, std::vector<int64_t> starts) {
  check_has_end(*order);
  const bool ascending = std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  if (order->size() == 0 && starts.size() <= 1) return order;
  if (starts.empty() || starts.front() != 0 || !ascending || starts.back() >= order->size()) {
    throw_error(
        "shuffle: shards must begin at 0, ascend and end before the length {}; expected starts such as [0, 1000, 2000]; "
        "give the first position of each shard",
        order->size());
  }
  return std::make_shared<ShuffledShards>(std::move(order), seed, std::move(starts));
}

}  // namespace artifex_devices
