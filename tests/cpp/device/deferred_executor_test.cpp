// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/deferred_executor.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace artifex_devices {
namespace {

/// A world, and the order in which its copies have run.
class World {
 public:
  explicit World(uint64_t seed) : executor_(seed, std::make_shared<WorkerPoolExecutor>()) {}

  EventRef submit(char name, const EventRef& after = nullptr) {
    auto batch = std::make_shared<CopyBatch>();
    batch->add(CopyBatch::Bulk{kAnyLane, 1, 1, [this, name](int64_t, int64_t) { ran_ += name; }});
    return executor_.submit(std::move(batch), after);
  }
  std::vector<EventRef> submit_all(const std::string& names) {
    std::vector<EventRef> events;
    for (const char name : names) events.push_back(submit(name));
    return events;
  }
  const std::string& ran() const { return ran_; }
  void finish() { executor_.finish(); }

 private:
  DeferredExecutor executor_;
  std::string ran_;
};

std::string order_of(uint64_t seed) {
  World world(seed);
  world.submit_all("abcdef");
  world.finish();
  return world.ran();
}

TEST(DeferredExecutor, RunsCopiesInAnOrderDrawnFromTheSeed) {
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
  EXPECT_EQ(order_of(7).size(), 6U);
}

TEST(DeferredExecutor, RunsThemWhenAThreadWaits) {
  World world(1);
  const std::vector<EventRef> events = world.submit_all("abcdef");
  EXPECT_EQ(world.ran(), "");
  events[3]->wait();
  EXPECT_EQ(world.ran(), order_of(1).substr(0, order_of(1).find('d') + 1));
  world.finish();
  EXPECT_EQ(world.ran(), order_of(1));
}

TEST(DeferredExecutor, RunsOneForAPoll) {
  World world(1);
  const std::vector<EventRef> events = world.submit_all("abcdef");
  const EventRef& last = events[static_cast<size_t>(order_of(1)[2] - 'a')];
  EXPECT_FALSE(poll(last));
  EXPECT_EQ(world.ran().size(), 1U);
  EXPECT_FALSE(poll(last));
  EXPECT_TRUE(poll(last));
  EXPECT_TRUE(poll(nullptr));
}

TEST(DeferredExecutor, DoesNotChangeTheOrderOfAnotherWorld) {
  World world(7), other(7);
  for (const char name : std::string("abcdef")) {
    world.submit(name);
    other.submit(name)->wait();
    EXPECT_EQ(world.ran(), "");
  }
  EXPECT_EQ(other.ran(), "abcdef");
  world.finish();
  EXPECT_EQ(world.ran(), order_of(7));
}

TEST(DeferredExecutor, AWaitRunsNothingOfAWorldThatItsEventDoesNotDependOn) {
  World world(1), other(2);
  const auto of_a_thread = std::make_shared<Event>();
  const EventRef waits = world.submit('a', of_a_thread);
  other.submit_all("bc");
  EXPECT_FALSE(waits->wait_for(0));
  EXPECT_FALSE(poll(waits));
  EXPECT_EQ(other.ran(), "");
  of_a_thread->set();
  waits->wait();
  EXPECT_EQ(world.ran(), "a");
  EXPECT_EQ(other.ran(), "");
}

TEST(DeferredExecutor, AWaitRunsCopiesOfOtherWorldsThatItsEventDependsOn) {
  World first(1), second(2);
  const EventRef source = first.submit('a');
  const EventRef between = host_executor().submit(std::make_shared<CopyBatch>(), source);
  const EventRef target = second.submit('b', between);
  target->wait();
  EXPECT_TRUE(source->is_set());
  EXPECT_EQ(second.ran(), "b");
}

TEST(DeferredExecutor, CopiesNothingAfterAnError) {
  World world(1);
  const auto source = std::make_shared<Event>();
  const EventRef target = world.submit('a', source);
  source->set_error(std::make_exception_ptr(std::runtime_error("lost")));
  EXPECT_THROW(target->wait(), std::runtime_error);
  world.finish();
  EXPECT_EQ(world.ran(), "");
}

TEST(DeferredExecutor, AWaitForAnEventOfNoWorldRunsNothing) {
  World world(1);
  world.submit('a');
  EXPECT_FALSE(std::make_shared<Event>()->wait_for(0));
  EXPECT_FALSE(poll(std::make_shared<Event>()));
  EXPECT_EQ(world.ran(), "");
}

}  // namespace
}  // namespace artifex_devices
