// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/scheduler.h"

#include <gtest/gtest.h>

#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

constexpr FiberId kNone;

using Participants = std::vector<ParticipantId>;

/// A session of one group, whose caller runs the scheduler's choices.
struct Session {
  explicit Session(int64_t participants) : rendezvous(participants) {
    const IdRange<ParticipantId> members(participants);
    group = rendezvous.group({members.begin(), members.end()});
    scheduler.start();
  }

  /// Begins the upcoming participant in the fiber that was chosen.
  void begin(FiberId fiber) {
    ASSERT_TRUE(!fiber.is_none() && scheduler.is_starting(fiber));
    ASSERT_EQ(scheduler.take_starting(), fiber);
    scheduler.begin(fiber);
  }
  Rendezvous::Arrival arrive(int64_t participant) { return rendezvous.arrive(ParticipantId(participant), group, 7); }

  Rendezvous rendezvous;
  GroupId group;
  Scheduler scheduler{rendezvous};
};

/// Lets participants 0 to 2 of 3 begin and suspend; 3 participants then wait for a fourth.
void suspend_three(Session& session) {
  FiberId fiber = session.scheduler.next();
  for (int64_t participant = 0; participant < 3; ++participant) {
    session.begin(fiber);
    ASSERT_EQ(session.arrive(participant), Rendezvous::Arrival::kWait);
    fiber = session.scheduler.suspend(ParticipantId(participant));
  }
  session.begin(fiber);
}

TEST(Scheduler, BeginsParticipantsInOrderEachInItsFiber) {
  Session session(4);
  suspend_three(session);
  EXPECT_EQ(session.scheduler.suspended(), (Participants{ParticipantId(0), ParticipantId(1), ParticipantId(2)}));
  EXPECT_EQ(session.scheduler.fiber_of(ParticipantId(3)), FiberId(3));
  EXPECT_EQ(session.scheduler.used_fibers(), 4);
  EXPECT_EQ(session.scheduler.upcoming(), ParticipantId());
}

TEST(Scheduler, ResumesTheLastSuspendedFirstOnceTheCollectiveIsDelivered) {
  Session session(4);
  suspend_three(session);
  EXPECT_EQ(session.arrive(3), Rendezvous::Arrival::kComplete);
  EXPECT_EQ(session.scheduler.next(), kNone);  // nobody can go on before the delivery
  session.rendezvous.delivered(ParticipantId(3));
  EXPECT_EQ(session.scheduler.leave(ParticipantId(3), true), FiberId(3));
  for (const int64_t number : {2, 1, 0}) {
    EXPECT_EQ(session.scheduler.next(), FiberId(number));
    session.scheduler.resume(ParticipantId(number));
    EXPECT_EQ(session.scheduler.leave(ParticipantId(number), true), FiberId(number));
  }
  EXPECT_EQ(session.scheduler.next(), kNone);
  EXPECT_TRUE(session.scheduler.suspended().empty());
}

TEST(Scheduler, AFiberRunsTheNextParticipantWhenOneHasEnded) {
  Session session(2);
  const FiberId first = session.scheduler.next();
  session.begin(first);
  EXPECT_EQ(session.scheduler.leave(ParticipantId(0), true), first);
  EXPECT_EQ(session.scheduler.upcoming(), ParticipantId(1));
  session.scheduler.begin(first);
  EXPECT_EQ(session.scheduler.fiber_of(ParticipantId(1)), first);
  EXPECT_EQ(session.scheduler.used_fibers(), 1);
}

TEST(Scheduler, ChoosesTheSameFiberAgainWhereNoParticipantBeganInIt) {
  Session session(2);
  EXPECT_EQ(session.scheduler.next(), FiberId(0));
  EXPECT_EQ(session.scheduler.next(), FiberId(0));
  session.begin(FiberId(0));
  EXPECT_EQ(session.scheduler.take_starting(), kNone);
  EXPECT_EQ(session.scheduler.next(), FiberId(1));
}

TEST(Scheduler, AfterAFailureNobodyBeginsAndAllSuspendedResume) {
  Session session(3);
  session.begin(session.scheduler.next());
  EXPECT_EQ(session.arrive(0), Rendezvous::Arrival::kWait);
  session.begin(session.scheduler.suspend(ParticipantId(0)));
  EXPECT_EQ(session.scheduler.leave(ParticipantId(1), false), FiberId(1));
  EXPECT_EQ(session.rendezvous.failure(), Rendezvous::Failure::kBody);
  EXPECT_EQ(session.scheduler.upcoming(), ParticipantId());
  EXPECT_EQ(session.scheduler.next(), FiberId(0));
}

TEST(Scheduler, KeepingOrderLeavesEveryChoiceToTheCaller) {
  Session session(4);
  suspend_three(session);
  session.arrive(3);
  session.rendezvous.delivered(ParticipantId(3));
  EXPECT_EQ(session.scheduler.next(), FiberId(2));
  EXPECT_EQ(session.scheduler.keep_order(), (Participants{ParticipantId(0), ParticipantId(1)}));
  EXPECT_TRUE(session.scheduler.is_ordered());
  EXPECT_EQ(session.scheduler.next(), kNone);
}

TEST(Scheduler, ResumingTwiceOrAfterTheEndDoesNothing) {
  Session session(4);
  suspend_three(session);
  session.scheduler.resume(ParticipantId(1));
  session.scheduler.resume(ParticipantId(1));
  EXPECT_EQ(session.scheduler.suspended(), (Participants{ParticipantId(0), ParticipantId(2)}));
  session.scheduler.end();
  session.scheduler.resume(ParticipantId(0));
  EXPECT_EQ(session.scheduler.leave(ParticipantId(0), true), kNone);
  EXPECT_THROW(session.scheduler.suspend(ParticipantId(0)), Unavailable);
  EXPECT_THROW(session.scheduler.fiber_of(ParticipantId(0)), IndexOutOfRange);
}

// Participants that suspend again before others have resumed leave more holes than the list has places.
TEST(Scheduler, KeepsTheOrderOfSuspensionOverManyCollectives) {
  Session session(4);
  suspend_three(session);
  session.scheduler.keep_order();
  Participants order{ParticipantId(0), ParticipantId(1), ParticipantId(2)};
  for (int64_t turn = 0; turn < 20; ++turn) {
    const ParticipantId first = order.front();
    session.scheduler.resume(first);
    order.erase(order.begin());
    session.scheduler.suspend(first);
    order.push_back(first);
    if (turn % 7 == 0) {
      EXPECT_EQ(session.scheduler.suspended(), order);
    }
  }
  EXPECT_EQ(session.scheduler.suspended(), order);
}

TEST(Scheduler, ServesTheNextCallOfTheSameParticipants) {
  Session session(4);
  suspend_three(session);
  session.rendezvous.restart();
  session.scheduler.start();
  EXPECT_TRUE(session.scheduler.suspended().empty());
  EXPECT_EQ(session.scheduler.next(), FiberId(0));
  EXPECT_EQ(session.scheduler.used_fibers(), 1);
}

}  // namespace
}  // namespace artifex_devices
