// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Arrival = Rendezvous::Arrival;
using Failure = Rendezvous::Failure;
using State = Rendezvous::State;

std::vector<ParticipantId> all(int64_t count) {
  const IdRange<ParticipantId> members(count);
  return {members.begin(), members.end()};
}

TEST(Rendezvous, CompletesAtTheLastArrival) {
  Rendezvous meeting(3);
  const GroupId everybody = meeting.group(all(3));
  EXPECT_EQ(meeting.arrive(ParticipantId(2), everybody, 7), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(0), everybody, 7), Arrival::kWait);
  EXPECT_FALSE(meeting.may_go(ParticipantId(0)));
  EXPECT_EQ(meeting.arrive(ParticipantId(1), everybody, 7), Arrival::kComplete);
  EXPECT_FALSE(meeting.may_go(ParticipantId(0)));
  meeting.delivered(ParticipantId(1));
  EXPECT_TRUE(meeting.may_go(ParticipantId(0)));
  EXPECT_TRUE(meeting.wait(ParticipantId(2), std::nullopt));
  EXPECT_EQ(meeting.failure(), Failure::kNone);
}

TEST(Rendezvous, RestartsWithItsGroups) {
  Rendezvous meeting(2);
  const GroupId both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 7), Arrival::kWait);
  meeting.raised(ParticipantId(1));
  EXPECT_EQ(meeting.failure(), Failure::kBody);
  meeting.restart();
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  for (const auto& standing : meeting.standings()) {
    EXPECT_EQ(standing.state, State::kRunning);
    EXPECT_EQ(standing.group, GroupId());
    EXPECT_EQ(standing.signature, -1);
    EXPECT_EQ(standing.collectives, 0);
  }
  EXPECT_EQ(meeting.group(all(2)), both);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), both, 8), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 8), Arrival::kComplete);
  meeting.delivered(ParticipantId(0));
  meeting.finished(ParticipantId(0));
  meeting.finished(ParticipantId(1));
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  meeting.restart();
  meeting.finished(ParticipantId(1));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 8), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
}

TEST(Rendezvous, TreatsEqualMembersAsOneGroup) {
  Rendezvous meeting(4);
  EXPECT_EQ(meeting.group({ParticipantId(0), ParticipantId(1)}), meeting.group({ParticipantId(0), ParticipantId(1)}));
  EXPECT_NE(meeting.group({ParticipantId(0), ParticipantId(1)}), meeting.group({ParticipantId(1), ParticipantId(0)}));
  const std::vector<ParticipantId> reversed{ParticipantId(1), ParticipantId(0)};
  EXPECT_EQ(meeting.members(meeting.group(reversed)), reversed);
  EXPECT_THROW(meeting.members(GroupId(2)), InvalidArgument);
  EXPECT_THROW(meeting.members(GroupId()), InvalidArgument);
  EXPECT_THROW(meeting.group({}), InvalidArgument);
  EXPECT_THROW(meeting.group({ParticipantId(0), ParticipantId(4)}), InvalidArgument);
  EXPECT_THROW(meeting.group({ParticipantId(1), ParticipantId(1)}), InvalidArgument);
}

TEST(Rendezvous, RunsGroupsIndependently) {
  Rendezvous meeting(4);
  const GroupId low = meeting.group({ParticipantId(0), ParticipantId(1)});
  const GroupId high = meeting.group({ParticipantId(2), ParticipantId(3)});
  EXPECT_EQ(meeting.arrive(ParticipantId(0), low, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(2), high, 2), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(3), high, 2), Arrival::kComplete);
  meeting.delivered(ParticipantId(3));
  EXPECT_TRUE(meeting.may_go(ParticipantId(2)));
  EXPECT_FALSE(meeting.may_go(ParticipantId(0)));
}

TEST(Rendezvous, AllowsTheNextMeetingBeforeOthersWake) {
  Rendezvous meeting(2);
  const GroupId both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), both, 1), Arrival::kComplete);
  meeting.delivered(ParticipantId(1));
  EXPECT_EQ(meeting.arrive(ParticipantId(1), both, 2), Arrival::kWait);
  EXPECT_TRUE(meeting.may_go(ParticipantId(0)));
  EXPECT_FALSE(meeting.may_go(ParticipantId(1)));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 2), Arrival::kComplete);
}

TEST(Rendezvous, ReportsADifferentSignature) {
  Rendezvous meeting(2);
  const GroupId both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), both, 2), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kMismatch);
  EXPECT_TRUE(meeting.may_go(ParticipantId(0)));
  EXPECT_FALSE(meeting.wait(ParticipantId(0), std::nullopt));
  EXPECT_EQ(meeting.standings()[ParticipantId(0)].signature, 1);
  EXPECT_EQ(meeting.standings()[ParticipantId(1)].signature, 2);
}

TEST(Rendezvous, ReportsAMemberThatFinishesEarly) {
  Rendezvous meeting(3);
  const GroupId everybody = meeting.group(all(3));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), everybody, 1), Arrival::kWait);
  meeting.finished(ParticipantId(1));
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
  EXPECT_EQ(meeting.standings()[ParticipantId(0)].state, State::kWaiting);
  EXPECT_EQ(meeting.standings()[ParticipantId(1)].state, State::kFinished);
  EXPECT_EQ(meeting.arrive(ParticipantId(2), everybody, 1), Arrival::kFailed);
}

TEST(Rendezvous, ReportsArrivalAfterAMemberFinished) {
  Rendezvous meeting(2);
  const GroupId both = meeting.group(all(2));
  meeting.finished(ParticipantId(0));
  EXPECT_EQ(meeting.failure(), Failure::kNone);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), both, 1), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
}

TEST(Rendezvous, ReportsArrivalAtAGroupThatIsNewSinceAMemberFinished) {
  Rendezvous meeting(3);
  meeting.finished(ParticipantId(0));
  const GroupId others = meeting.group({ParticipantId(1), ParticipantId(2)});
  EXPECT_EQ(meeting.arrive(ParticipantId(1), others, 1), Arrival::kWait);
  const GroupId both = meeting.group({ParticipantId(0), ParticipantId(2)});
  EXPECT_EQ(meeting.arrive(ParticipantId(2), both, 1), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kEarlyExit);
}

TEST(Rendezvous, ReportsACycleOfGroupsAsADeadlock) {
  Rendezvous meeting(3);
  EXPECT_EQ(meeting.arrive(ParticipantId(0), meeting.group({ParticipantId(0), ParticipantId(1)}), 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), meeting.group({ParticipantId(1), ParticipantId(2)}), 1), Arrival::kWait);
  EXPECT_EQ(meeting.arrive(ParticipantId(2), meeting.group({ParticipantId(2), ParticipantId(0)}), 1), Arrival::kFailed);
  EXPECT_EQ(meeting.failure(), Failure::kDeadlock);
}

TEST(Rendezvous, EndsAllWaitsOnAnException) {
  Rendezvous meeting(2);
  const GroupId both = meeting.group(all(2));
  EXPECT_EQ(meeting.arrive(ParticipantId(0), both, 1), Arrival::kWait);
  meeting.raised(ParticipantId(1));
  EXPECT_FALSE(meeting.wait(ParticipantId(0), std::nullopt));
  EXPECT_EQ(meeting.failure(), Failure::kBody);
  EXPECT_EQ(meeting.standings()[ParticipantId(1)].state, State::kRaised);
}

TEST(Rendezvous, EndsAWaitAtItsDeadline) {
  Rendezvous meeting(2);
  EXPECT_EQ(meeting.arrive(ParticipantId(0), meeting.group(all(2)), 1), Arrival::kWait);
  EXPECT_FALSE(meeting.wait(ParticipantId(0), 0.01));
  EXPECT_EQ(meeting.failure(), Failure::kDeadline);
}

TEST(Rendezvous, ReportsTheFirstFailure) {
  Rendezvous meeting(2);
  meeting.fail(Failure::kCancelled);
  meeting.raised(ParticipantId(0));
  EXPECT_EQ(meeting.failure(), Failure::kCancelled);
  EXPECT_EQ(meeting.arrive(ParticipantId(1), meeting.group({ParticipantId(1)}), 1), Arrival::kFailed);
}

TEST(Rendezvous, RefusesInvalidCalls) {
  Rendezvous meeting(2);
  const GroupId alone = meeting.group({ParticipantId(0)});
  EXPECT_THROW(meeting.arrive(ParticipantId(1), alone, 1), InvalidArgument);
  EXPECT_THROW(meeting.arrive(ParticipantId(0), GroupId(5), 1), InvalidArgument);
  EXPECT_THROW(meeting.arrive(ParticipantId(2), alone, 1), InvalidArgument);
  EXPECT_THROW(meeting.delivered(ParticipantId(0)), InvalidArgument);
  EXPECT_EQ(meeting.arrive(ParticipantId(0), alone, 1), Arrival::kComplete);
  EXPECT_THROW(Rendezvous(0), InvalidArgument);
}

TEST(Rendezvous, SynchronizesManyThreadsRepeatedly) {
  constexpr int64_t kThreads = 8;
  constexpr int64_t kRounds = 500;
  Rendezvous meeting(kThreads);
  const GroupId everybody = meeting.group(all(kThreads));
  int64_t rounds = 0;  // guarded by the protocol itself
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      for (int64_t round = 0; round < kRounds; ++round) {
        const Arrival arrival = meeting.arrive(ParticipantId(me), everybody, round);
        if (arrival == Arrival::kComplete) {
          ++rounds;
          meeting.delivered(ParticipantId(me));
        } else if (arrival != Arrival::kWait || !meeting.wait(ParticipantId(me), 60.0)) {
          ++wrong;
        }
        if (rounds != round + 1) ++wrong;
        // A second meeting, so that nobody changes `rounds` while others read it.
        if (meeting.arrive(ParticipantId(me), everybody, -round) == Arrival::kComplete) {
          meeting.delivered(ParticipantId(me));
        } else if (!meeting.wait(ParticipantId(me), 60.0)) {
          ++wrong;
        }
      }
      meeting.finished(ParticipantId(me));
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
