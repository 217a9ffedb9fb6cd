// SPDX-License-Identifier: Apache-2.0
// Threads that place, reshard, read, share and delete the same arrays while others list, count, limit and trim.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "../transfer/host_arrays.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/device/memory_window.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "stress.h"

namespace artifex_devices {
namespace {

using test::Deadline;
using test::in_threads;
using test::pick;
using test::Random;

uint32_t element(uint32_t tag, int64_t i) { return tag * 2654435761U + static_cast<uint32_t>(i); }

HostView tagged(const Dims& shape, uint32_t tag) {
  int64_t size = 1;
  for (const int64_t each : shape) size *= each;
  auto memory = std::make_shared<std::vector<uint32_t>>(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) (*memory)[static_cast<size_t>(i)] = element(tag, i);
  HostView view;
  view.data = memory->data();
  view.dtype = DType::kUInt32;
  view.shape = shape;
  view.byte_strides = row_major_strides(shape, 4);
  view.owner = std::move(memory);
  return view;
}

/// Whether a dense row-major view holds the values of a tag.
bool holds(const HostView& view, uint32_t tag) {
  int64_t size = 1;
  for (const int64_t each : view.shape) size *= each;
  const auto* data = static_cast<const uint32_t*>(view.data);
  for (int64_t i = 0; i < size; ++i) {
    if (data[i] != element(tag, i)) return false;
  }
  return true;
}

struct Held {
  ArrayRef array;
  uint32_t tag = 0;
};

/// Arrays that all threads use.
class Shelf {
 public:
  Held look(Random& random) {
    const std::lock_guard lock(mutex_);
    return places_[random() % places_.size()];
  }
  void put(Random& random, Held held) {
    const std::lock_guard lock(mutex_);
    std::swap(places_[random() % places_.size()], held);  // the old one goes after the lock
  }

 private:
  std::mutex mutex_;
  std::array<Held, 24> places_;
};

Dims shape_of(Random& random) {
  if (pick(random, 0, 19) == 0) return {12, 12, pick(random, 1, 3) * 768};  // blocks of their own, copies by workers
  return {12 / pick(random, 1, 3), 12, pick(random, 1, 40)};
}

MemoryKind kind_of(Random& random) {
  return kMemoryKinds[pick(random, 0, 4) == 0 ? random() % kMemoryKinds.size() : 0];
}

ShardingRef sharding_of(Random& random, const ClientRef& world, const Dims& shape) {
  const ShardingRef found = test::random_layout(random, world, shape, true).sharding;
  const auto named = std::dynamic_pointer_cast<const NamedSharding>(found);
  return named ? NamedSharding::make(named->mesh(), named->spec(), kind_of(random), Uneven::kLastShort) : found;
}

/// Something that another thread's delete, donation or limit may make impossible.
template <class Call>
void unless_refused(const ArrayRef& array, const Call& call) {
  try {
    call();
  } catch (const DeletedArray&) {
    EXPECT_TRUE(array && array->is_deleted());
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("RESOURCE_EXHAUSTED"), std::string::npos);
  }
}

class ArraysStress : public testing::Test {
 protected:
  void SetUp() override {
    config().parallel_copy_bytes = 16 << 10;  // much goes to the workers, and on after the calls
    config().async_copy_bytes = 64 << 10;
    config().cache_bytes = 8 << 20;  // blocks leave the cache too
    set_caller_line_source([] { return std::optional(CallerLine{"stress", 1}); });
    world_ = test::make_world(3, 8);
  }
  void TearDown() override {
    config().trace_allocations = 0;
    shelf_ = std::make_unique<Shelf>();
    WorkerPool::process().shutdown();  // after all copies
    EXPECT_EQ(live_arrays(world_.get()).size(), 0U);
    EXPECT_EQ(test::bytes_in_use(world_), test::everywhere(world_, 0));
    EXPECT_EQ(test::bytes_reserved(world_), test::everywhere(world_, 0));
  }

  void place(Random& random) {
    const Dims shape = shape_of(random);
    const uint32_t tag = next_tag_.fetch_add(1);
    const ShardingRef sharding = sharding_of(random, world_, shape);
    unless_refused(nullptr, [&] { shelf_->put(random, {device_put(tagged(shape, tag), sharding, true), tag}); });
  }

  void move(Random& random, bool donate) {
    const Held held = shelf_->look(random);
    if (!held.array) return;
    ReshardOptions options;
    options.donate = donate;
    options.force_copy = pick(random, 0, 3) == 0;
    const ShardingRef to = sharding_of(random, world_, held.array->shape());
    unless_refused(held.array, [&] { shelf_->put(random, {reshard(held.array, to, options), held.tag}); });
  }

  void read(Random& random, std::deque<std::pair<std::shared_ptr<const HostView>, uint32_t>>* kept) {
    const Held held = shelf_->look(random);
    if (!held.array) return;
    unless_refused(held.array, [&] {
      const bool later = pick(random, 0, 1) == 0;
      const auto view = later ? device_get_async(held.array) : device_get(held.array);
      if (pick(random, 0, 3) == 0) held.array->delete_();  // what was exported stays
      wait_for(view->ready);
      EXPECT_TRUE(holds(*view, held.tag));
      kept->emplace_back(view, held.tag);
    });
    if (kept->size() < 4) return;
    EXPECT_TRUE(holds(*kept->front().first, kept->front().second));
    kept->pop_front();
  }

  void read_shard(Random& random) {
    const Held held = shelf_->look(random);
    if (!held.array) return;
    unless_refused(held.array, [&] {
      const Position position(pick(random, 0, held.array->sharding()->num_devices() - 1));
      const ArrayRef part = held.array->shard_data(position);
      const IndexDomain domain = test::box_at(*held.array, position);
      const auto view = device_get(part);
      const auto* data = static_cast<const uint32_t*>(view->data);
      const Dims whole = row_major_strides(held.array->shape(), 1);
      int64_t wrong = 0;
      test::for_each_index(domain.shape, [&](const Dims& index) {
        int64_t at = 0;
        for (int64_t d = 0; d < index.size(); ++d) at += (domain.origin[d] + index[d]) * whole[d];
        wrong += *data++ == element(held.tag, at) ? 0 : 1;
      });
      EXPECT_EQ(wrong, 0);
    });
  }

  void list(Random& random) {
    for (const ArrayRef& array : live_arrays(pick(random, 0, 1) == 0 ? world_.get() : nullptr)) {
      EXPECT_GT(array->on_device_size_in_bytes(), 0);
      const CallerLine* const line = array->creation_line();
      EXPECT_TRUE(line == nullptr || line->file == "stress");
    }
    EXPECT_FALSE(biggest_live_arrays(*world_, 3).empty());
    EXPECT_GE(Mesh::live_count(), 0);
  }

  void count(Random& random) {
    MemoryWindow window(world_);
    place(random);
    for (const MemoryUse& use : window.use()) {
      EXPECT_GE(use.peak, use.at_start);
      EXPECT_GE(use.peak, use.in_use);
      EXPECT_GE(use.allocated, 0);
    }
    for (const Device* device : test::devices_of(world_)) {
      const DeviceMemoryStats stats = device->memory_stats();
      EXPECT_GE(stats.bytes_in_use, 0);
      EXPECT_GE(stats.peak_bytes_in_use, stats.bytes_in_use);
    }
    for (const ArenaIndex a : IdRange<ArenaIndex>(world_->arenas())) {
      EXPECT_GE(world_->arena(a).stats().bytes_in_use, 0);
    }
  }

  void disturb(Random& random) {
    Device* const device = world_->device(DeviceId(7));
    switch (pick(random, 0, 4)) {
      case 0: {
        device->set_bytes_limit(pick(random, 0, 1) == 0 ? std::optional<int64_t>(16 << 10) : std::nullopt);
        break;
      }
      case 1: {
        EXPECT_GE(Arena::trim_all(), 0);
        break;
      }
      case 2: {
        config().trace_allocations = pick(random, 0, 1);
        break;
      }
      case 3: {
        WorkerPool::process().shutdown();
        break;
      }
      default: {
        const ClientRef other = test::make_world(static_cast<int>(pick(random, 1, 3)), pick(random, 1, 4));
        const ArrayRef array = device_put(tagged({8}, 5), SingleDeviceSharding::make(other->device(DeviceId(0))), true);
        EXPECT_TRUE(holds(*device_get(array), 5));
        const ClientRef cluster = make_cluster_client(tpu_cluster("v4", {2, 2, 1}, 1));
        EXPECT_EQ(cluster->device_count(), 4);
      }
    }
  }

  ClientRef world_;
  std::unique_ptr<Shelf> shelf_ = std::make_unique<Shelf>();
  std::atomic<uint32_t> next_tag_{1};
};

TEST_F(ArraysStress, SharesArraysBetweenThreads) {
  const Deadline deadline;
  std::array<std::deque<std::pair<std::shared_ptr<const HostView>, uint32_t>>, 6> kept;
  in_threads(6, deadline, [&](int thread, Random& random) {
    switch (pick(random, 0, 11)) {
      case 0:
      case 1:
      case 2:
        return place(random);
      case 3:
      case 4:
        return move(random, false);
      case 5:
        return move(random, true);
      case 6:
      case 7:
        return read(random, &kept[static_cast<size_t>(thread)]);
      case 8:
        return read_shard(random);
      case 9:
        return list(random);
      case 10:
        return count(random);
      default:
        return thread == 0 ? disturb(random) : place(random);
    }
  });
  world_->device(DeviceId(7))->set_bytes_limit(std::nullopt);
}

// As a prefetcher does: a producer places and moves ahead, a consumer reads, and now and then goes away early.
TEST_F(ArraysStress, PassesBatchesThroughAQueue) {
  const Deadline deadline;
  in_threads(3, deadline, [&](int, Random& random) {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Held> ready;
    bool stopped = false;
    const int64_t drop_after = pick(random, 0, 3) == 0 ? pick(random, 0, 5) : 100;
    const uint64_t seed = random();
    std::thread producer([&] {
      Random own(seed);
      for (uint32_t batch = 0; batch < 12; ++batch) {
        const Dims shape{12, 12, pick(own, 1, 300)};
        const ArrayRef placed = device_put(tagged(shape, batch), sharding_of(own, world_, shape), true);
        const ArrayRef moved = reshard(placed, sharding_of(own, world_, shape), {.donate = true});
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ready.size() < 2 || stopped; });
        if (stopped) return;
        ready.push_back({moved, batch});
        changed.notify_all();
      }
    });
    for (uint32_t batch = 0; batch < 12 && batch < drop_after; ++batch) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !ready.empty(); });
      const Held held = ready.front();
      ready.pop_front();
      changed.notify_all();
      lock.unlock();
      EXPECT_EQ(held.tag, batch);
      EXPECT_TRUE(holds(*device_get(held.array), batch));
    }
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    changed.notify_all();
    producer.join();
  });
}

}  // namespace
}  // namespace artifex_devices
