// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_lanes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"
#include "lane_ends.h"

namespace artifex_devices {
namespace {

using std::chrono_literals::operator""s;

std::vector<int64_t> numbers(std::initializer_list<int64_t> values) { return values; }

TEST(SharedLanes, DeliversAnyNumberOfMessagesInOrder) {
  const auto lanes = ends(3);
  for (int i = 0; i < 100; ++i) lanes[0]->post(numbers({1, 2}), "message " + std::to_string(i));
  for (const int64_t reader : {1, 2}) {
    for (int i = 0; i < 100; ++i) {
      while (!lanes[static_cast<size_t>(reader)]->wait(numbers({0}), 0s)) lanes[0]->wait({}, 0s);
      EXPECT_EQ(lanes[static_cast<size_t>(reader)]->take(0), "message " + std::to_string(i));
    }
    EXPECT_FALSE(lanes[static_cast<size_t>(reader)]->wait(numbers({0}), 0s));
  }
}

TEST(SharedLanes, DeliversMessagesUpToTheMaximumSize) {
  const auto lanes = ends(2);
  for (const int64_t size : {int64_t{0}, int64_t{1}, SharedLanes::kMaxMessageBytes}) {
    const std::string message(static_cast<size_t>(size), 'x');
    lanes[1]->post(numbers({0}), message);
    ASSERT_TRUE(lanes[0]->wait(numbers({1}), 0s));
    EXPECT_EQ(lanes[0]->take(1), message);
  }
  const std::string too_long(static_cast<size_t>(SharedLanes::kMaxMessageBytes) + 1, 'x');
  EXPECT_THROW(lanes[1]->post(numbers({0}), too_long), InvalidArgument);
  EXPECT_THROW(lanes[0]->take(1), InvalidArgument);
}

TEST(SharedLanes, DropsSkippedMessages) {
  const auto lanes = ends(2);
  lanes[0]->post(numbers({1}), "first");
  lanes[1]->skip(numbers({0}));
  lanes[1]->skip(numbers({0}));
  EXPECT_FALSE(lanes[1]->wait(numbers({0}), 0s));
  lanes[0]->post(numbers({1}), "second");
  lanes[0]->post(numbers({1}), "third");
  ASSERT_TRUE(lanes[1]->wait(numbers({0}), 0s));
  EXPECT_EQ(lanes[1]->take(0), "third");
}

TEST(SharedLanes, EndsAWaitWhenAMessageArrives) {
  const auto lanes = ends(2);
  std::thread other([&] {
    lanes[1]->wait(numbers({0}), 60s);
    lanes[1]->post(numbers({0}), "answer to " + lanes[1]->take(0));
  });
  lanes[0]->post(numbers({1}), "question");
  EXPECT_TRUE(lanes[0]->wait(numbers({1}), 60s));
  EXPECT_EQ(lanes[0]->take(1), "answer to question");
  other.join();
}

TEST(SharedLanes, RefusesMessagesThatDoNotFit) {
  const auto lanes = ends(2);
  for (const int64_t number : {-1, 0, 2}) EXPECT_THROW(lanes[0]->post(numbers({number}), "x"), IndexOutOfRange);
  EXPECT_THROW(lanes[0]->stream_to(2), IndexOutOfRange);
  const std::vector<int> of_three{SharedLanes::create(3), SharedLanes::create(3)};
  EXPECT_THROW(SharedLanes(0, of_three), InvalidArgument);
  EXPECT_THROW(SharedLanes(2, of_three), InvalidArgument);
  EXPECT_NE(ftruncate(of_three[0], 0), 0);  // nobody can cut it off
  for (const int file : of_three) close(file);
}

}  // namespace
}  // namespace artifex_devices
