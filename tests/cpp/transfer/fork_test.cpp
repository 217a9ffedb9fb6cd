// SPDX-License-Identifier: Apache-2.0
// Arrays and transfers in a child that was forked while other threads were using them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "host_arrays.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "sanitizers do not support a fork of a process with threads"
#else
#define SKIP_UNDER_SANITIZERS() static_cast<void>(0)
#endif

namespace artifex_devices {
namespace {

using test::make_world;
using test::named;
using test::Random;
using test::values;

/// Exit status of a child that runs `body`; a child that hangs is ended by its alarm.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(status);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int move_around(const ClientRef& world, const ArrayRef& kept, const test::ByteArray& expected) {
  Random random(5);
  if (values(*device_get(kept)) != expected) return 1;
  for (const int64_t columns : {4, 20000}) {
    const HostView source = test::dense(random, {64, columns}, DType::kFloat32);
    const ArrayRef array = device_put(source, named(world, {4}, {"a"}), true);
    const ArrayRef moved = reshard(array, named(world, {4}, {"", "a"}), {});
    array->delete_();
    if (values(*device_get(moved)) != values(source)) return 2;
  }
  if (live_arrays(nullptr).empty()) return 3;
  return 0;
}

TEST(Fork, LeavesTheChildUsableWhenThreadsWereBusy) {
  SKIP_UNDER_SANITIZERS();
  Random random(1);
  const auto world = make_world(2, 4);
  const HostView source = test::dense(random, {64, 8}, DType::kFloat32);
  const ArrayRef kept = device_put(source, named(world, {4}, {"", "a"}), true);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Random own(t);
      const HostView data = test::dense(own, {64, t == 0 ? 5000 : 8}, DType::kFloat32);
      while (!stop) {
        const ArrayRef array = device_put(data, named(world, {4}, {"a"}), true);
        const ArrayRef shard = array->shard_data(Position(1));
        reshard(array, named(world, {4}, {"", "a"}), {})->block_until_ready();
        array->delete_();
      }
    });
  }
  const auto expected = values(source);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(in_child([&] { return move_around(world, kept, expected); }), 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, ReportsUnfinishedArraysInTheChild) {
  SKIP_UNDER_SANITIZERS();
  const auto world = make_world(1, 2);
  const auto sharding = named(world, {2}, {"a"});
  auto ready = std::make_shared<Event>();
  auto storage = Storage::allocate(sharding, sharding->domains({8}, "test"), DType::kInt8, "test");
  const ArrayRef source = Array::make({8}, DType::kInt8, sharding, storage, ready, true);
  const ArrayRef result = reshard(source, named(world, {2}, {}), {});
  EXPECT_EQ(in_child([&] {
              try {
                device_get(result);
                return 1;
              } catch (const Unavailable&) {
              }
              const ArrayRef late = reshard(source, named(world, {2}, {}), {});
              try {
                late->block_until_ready();
                return 2;
              } catch (const Unavailable&) {
              }
              return 0;
            }),
            0);
  ready->set();
  result->block_until_ready();
}

}  // namespace
}  // namespace artifex_devices
