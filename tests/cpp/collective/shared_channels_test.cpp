// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_channels.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"
#include "channel_ends.h"

namespace artifex_devices {
namespace {

using std::chrono_literals::operator""s;

std::vector<int64_t> numbers(std::initializer_list<int64_t> values) { return values; }

TEST(SharedChannels, DeliversAnyNumberOfMessagesInOrder) {
  const auto channels = ends(3);
  for (int i = 0; i < 100; ++i) channels[0]->post(numbers({1, 2}), "message " + std::to_string(i));
  for (const int64_t reader : {1, 2}) {
    for (int i = 0; i < 100; ++i) {
      while (!channels[static_cast<size_t>(reader)]->wait(numbers({0}), 0s)) channels[0]->wait({}, 0s);
      EXPECT_EQ(channels[static_cast<size_t>(reader)]->take(0), "message " + std::to_string(i));
    }
    EXPECT_FALSE(channels[static_cast<size_t>(reader)]->wait(numbers({0}), 0s));
  }
}

TEST(SharedChannels, DeliversMessagesUpToTheMaximumSize) {
  const auto channels = ends(2);
  for (const int64_t size : {int64_t{0}, int64_t{1}, SharedChannels::kMaxMessageBytes}) {
    const std::string message(static_cast<size_t>(size), 'x');
    channels[1]->post(numbers({0}), message);
    ASSERT_TRUE(channels[0]->wait(numbers({1}), 0s));
    EXPECT_EQ(channels[0]->take(1), message);
  }
  const std::string too_long(static_cast<size_t>(SharedChannels::kMaxMessageBytes) + 1, 'x');
  EXPECT_THROW(channels[1]->post(numbers({0}), too_long), InvalidArgument);
  EXPECT_THROW(channels[0]->take(1), InvalidArgument);
}

TEST(SharedChannels, DropsSkippedMessages) {
  const auto channels = ends(2);
  channels[0]->post(numbers({1}), "first");
  channels[1]->skip(numbers({0}));
  channels[1]->skip(numbers({0}));
  EXPECT_FALSE(channels[1]->wait(numbers({0}), 0s));
  channels[0]->post(numbers({1}), "second");
  channels[0]->post(numbers({1}), "third");
  ASSERT_TRUE(channels[1]->wait(numbers({0}), 0s));
  EXPECT_EQ(channels[1]->take(0), "third");
}

TEST(SharedChannels, EndsAWaitWhenAMessageArrives) {
  const auto channels = ends(2);
  std::thread other([&] {
    channels[1]->wait(numbers({0}), 60s);
    channels[1]->post(numbers({0}), "answer to " + channels[1]->take(0));
  });
  channels[0]->post(numbers({1}), "question");
  EXPECT_TRUE(channels[0]->wait(numbers({1}), 60s));
  EXPECT_EQ(channels[0]->take(1), "answer to question");
  other.join();
}

TEST(SharedChannels, RefusesMessagesThatDoNotFit) {
  const auto channels = ends(2);
  for (const int64_t number : {-1, 0, 2}) EXPECT_THROW(channels[0]->post(numbers({number}), "x"), IndexOutOfRange);
  EXPECT_THROW(channels[0]->stream_to(2), IndexOutOfRange);
  const std::vector<int> of_three{SharedChannels::create(3), SharedChannels::create(3)};
  EXPECT_THROW(SharedChannels(0, of_three), InvalidArgument);
  EXPECT_THROW(SharedChannels(2, of_three), InvalidArgument);
  EXPECT_NE(ftruncate(of_three[0], 0), 0);  // nobody can cut it off
  for (const int file : of_three) close(file);
}

}  // namespace
}  // namespace artifex_devices
