// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Arrival = Rendezvous::Arrival;
using Failure = Rendezvous::Failure;
using State = Rendezvous::State;

std::vector<int64_t> all(int64_t count) {
  std::vector<int64_t> members(static_cast<size_t>(count));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

TEST(Rendezvous, CompletesAtTheLastArrival) {
  Rendezvous meeting(3);
  const int64_t everybody = meeting.group(all(3));
  EXPECT_EQ(meeting.arrive(2, everybody, 7), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(0, everybody, 7), Arrival::kWait);
  EXPECT_FALSE(meeting.may_go(0));
  EXPECT_EQ(meeting.arrive(1, everybody, 7), Arrival::kComplete);
  EXPECT_FALSE(meeting.may_go(0));
  meeting.delivered(1);
  EXPECT_TRUE(meeting.may_go(0));
  EXPECT_TRUE(meeting.wait(2, std::nullopt));
  EXPECT_EQ(meeting.failure(), Failure::kNone);
}

TEST(Rendezvous, RestartsWithItsGroups) {
  Rendezvous meeting(2);
  const int64_t both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(0, both, 7), Arrival::kWait);
  meeting.raised(1);
  EXPECT_EQ(meeting.failure(), Failure::kBody);
  meeting.begin_anew();
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  for (const auto& standing : meeting.standings()) {
    EXPECT_EQ(standing.state, State::kRunning);
    EXPECT_EQ(standing.group, -1);
    EXPECT_EQ(standing.signature, -1);
    EXPECT_EQ(standing.collectives, 0);
  }
  EXPECT_EQ(meeting.group(all(2)), both);
  EXPECT_EQ(meeting.arrive(1, both, 8), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(0, both, 8), Arrival::kComplete);
  meeting.delivered(0);
  meeting.finished(0);
  meeting.finished(1);
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  meeting.begin_anew();
  meeting.finished(1);
  EXPECT_EQ(meeting.arrive(0, both, 8), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
}

TEST(Rendezvous, TreatsEqualMembersAsOneGroup) {
  Rendezvous meeting(4);
  EXPECT_EQ(meeting.group({0, 1}), meeting.group({0, 1}));
  EXPECT_NE(meeting.group({0, 1}), meeting.group({1, 0}));
  EXPECT_THROW(meeting.group({}), InvalidArgument);
  EXPECT_THROW(meeting.group({0, 4}), InvalidArgument);
  EXPECT_THROW(meeting.group({1, 1}), InvalidArgument);
}

TEST(Rendezvous, RunsGroupsIndependently) {
  Rendezvous meeting(4);
  const int64_t low = meeting.group({0, 1});
  const int64_t high = meeting.group({2, 3});
  EXPECT_EQ(meeting.arrive(0, low, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(2, high, 2), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(3, high, 2), Arrival::kComplete);
  meeting.delivered(3);
  EXPECT_TRUE(meeting.may_go(2));
  EXPECT_FALSE(meeting.may_go(0));
}

TEST(Rendezvous, AllowsTheNextMeetingBeforeOthersWake) {
  Rendezvous meeting(2);
  const int64_t both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(0, both, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(1, both, 1), Arrival::kComplete);
  meeting.delivered(1);
  EXPECT_EQ(meeting.arrive(1, both, 2), Arrival::kWait);
  EXPECT_TRUE(meeting.may_go(0));
  EXPECT_FALSE(meeting.may_go(1));
  EXPECT_EQ(meeting.arrive(0, both, 2), Arrival::kComplete);
}

TEST(Rendezvous, ReportsADifferentSignature) {
  Rendezvous meeting(2);
  const int64_t both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(0, both, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(1, both, 2), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kMismatch);
  EXPECT_TRUE(meeting.may_go(0));
  EXPECT_FALSE(meeting.wait(0, std::nullopt));
  EXPECT_EQ(meeting.standings()[0].signature, 1);
  EXPECT_EQ(meeting.standings()[1].signature, 2);
}

TEST(Rendezvous, ReportsAMemberThatFinishesEarly) {
  Rendezvous meeting(3);
  const int64_t everybody = meeting.group(all(3));
  EXPECT_EQ(meeting.arrive(0, everybody, 1), Arrival::kWait);
  meeting.finished(1);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
  EXPECT_EQ(meeting.standings()[0].state, State::kWaiting);
  EXPECT_EQ(meeting.standings()[1].state, State::kFinished);
  EXPECT_EQ(meeting.arrive(2, everybody, 1), Arrival::kFailed);
}

TEST(Rendezvous, ReportsArrivalAfterAMemberFinished) {
  Rendezvous meeting(2);
  const int64_t both = meeting.group(all(2));
  meeting.finished(0);
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  EXPECT_EQ(meeting.arrive(1, both, 1), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
}

TEST(Rendezvous, ReportsACycleOfGroupsAsADeadlock) {
  Rendezvous meeting(3);
  EXPECT_EQ(meeting.arrive(0, meeting.group({0, 1}), 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(1, meeting.group({1, 2}), 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(2, meeting.group({2, 0}), 1), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kDeadlock);
}

TEST(Rendezvous, EndsAllWaitsOnAnException) {
  Rendezvous meeting(2);
  const int64_t both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(0, both, 1), Arrival::kWait);
  meeting.raised(1);
  EXPECT_FALSE(meeting.wait(0, std::nullopt));
  EXPECT_EQ(meeting.failure(), Failure::kBody);
  EXPECT_EQ(meeting.standings()[1].state, State::kRaised);
}

TEST(Rendezvous, EndsAWaitAtItsDeadline) {
  Rendezvous meeting(2);
  EXPECT_EQ(meeting.arrive(0, meeting.group(all(2)), 1), Arrival::kWait);
  EXPECT_FALSE(meeting.wait(0, 0.01));
  EXPECT_EQ(meeting.failure(), Failure::kDeadline);
}

TEST(Rendezvous, ReportsTheFirstFailure) {
  Rendezvous meeting(2);
  meeting.fail(Failure::kCancelled);
  meeting.raised(0);
  EXPECT_EQ(meeting.failure(), Failure::kCancelled);
  EXPECT_EQ(meeting.arrive(1, meeting.group({1}), 1), Arrival::kFailed);
}

TEST(Rendezvous, RefusesInvalidCalls) {
  Rendezvous meeting(2);
  const int64_t alone = meeting.group({0});
  EXPECT_THROW(meeting.arrive(1, alone, 1), InvalidArgument);
  EXPECT_THROW(meeting.arrive(0, 5, 1), InvalidArgument);
  EXPECT_THROW(meeting.arrive(2, alone, 1), InvalidArgument);
  EXPECT_THROW(meeting.delivered(0), InvalidArgument);
  EXPECT_EQ(meeting.arrive(0, alone, 1), Arrival::kComplete);
  EXPECT_THROW(Rendezvous(0), InvalidArgument);
}

TEST(Rendezvous, SynchronizesManyThreadsRepeatedly) {
  constexpr int64_t kThreads = 8;
  constexpr int64_t kRounds = 500;
  Rendezvous meeting(kThreads);
  const int64_t everybody = meeting.group(all(kThreads));
  int64_t rounds = 0;  // guarded by the protocol itself
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      for (int64_t round = 0; round < kRounds; ++round) {
        const Arrival arrival = meeting.arrive(me, everybody, round);
        if (arrival == Arrival::kComplete) {
          ++rounds;
          meeting.delivered(me);
        } else if (arrival != Arrival::kWait || !meeting.wait(me, 60.0)) {
          ++wrong;
        }
        if (rounds != round + 1) ++wrong;
        // A second meeting, so that nobody changes `rounds` while others read it.
        if (meeting.arrive(me, everybody, -round) == Arrival::kComplete) {
          meeting.delivered(me);
        } else if (!meeting.wait(me, 60.0)) {
          ++wrong;
        }
      }
      meeting.finished(me);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(rounds, kRounds);
  EXPECT_EQ(meeting.failure(), Failure::kNone);
}

TEST(Rendezvous, NamesItsFailuresAndStates) {
  EXPECT_EQ(to_string(Failure::kNone), "");
  EXPECT_EQ(to_string(Failure::kMismatch), "mismatch");
  EXPECT_EQ(to_string(Failure::kEarlyExit), "early exit");
  EXPECT_EQ(to_string(Failure::kCancelled), "cancelled");
  EXPECT_EQ(to_string(State::kRunning), "running");
  EXPECT_EQ(to_string(State::kRaised), "raised");
}

}  // namespace
}  // namespace artifex_devices
