// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Fiber = std::optional<size_t>;
using Positions = std::vector<size_t>;

/// A session of one group, whose caller runs the scheduler's choices.
struct Session {
  explicit Session(int64_t participants) : rendezvous(participants) {
    std::vector<int64_t> members(static_cast<size_t>(participants));
    std::iota(members.begin(), members.end(), 0);
    group = rendezvous.group(members);
    scheduler.start();
  }

  /// Begins the upcoming participant in the fiber that was chosen.
  void begin(Fiber fiber) {
    ASSERT_TRUE(fiber && scheduler.is_starting(*fiber));
    ASSERT_EQ(scheduler.take_starting(), fiber);
    scheduler.begin(*fiber);
  }
  Rendezvous::Arrival arrive(int64_t participant) { return rendezvous.arrive(participant, group, 7); }

  Rendezvous rendezvous;
  int64_t group = 0;
  Scheduler scheduler{rendezvous};
};

/// Lets participants 0 to 2 of 3 begin and suspend; 3 participants then wait for a fourth.
void suspend_three(Session& session) {
  Fiber fiber = session.scheduler.next();
  for (int64_t participant = 0; participant < 3; ++participant) {
    session.begin(fiber);
    ASSERT_EQ(session.arrive(participant), Rendezvous::Arrival::kWait);
    fiber = session.scheduler.suspend(static_cast<size_t>(participant));
  }
  session.begin(fiber);
}

TEST(Scheduler, BeginsParticipantsInOrderEachInItsFiber) {
  Session session(4);
  suspend_three(session);
  EXPECT_EQ(session.scheduler.suspended(), (Positions{0, 1, 2}));
  EXPECT_EQ(session.scheduler.fiber_of(3), 3u);
  EXPECT_EQ(session.scheduler.used_fibers(), 4u);
  EXPECT_EQ(session.scheduler.upcoming(), std::nullopt);
}

TEST(Scheduler, ResumesTheLastSuspendedFirstOnceTheCollectiveIsDelivered) {
  Session session(4);
  suspend_three(session);
  EXPECT_EQ(session.arrive(3), Rendezvous::Arrival::kComplete);
  EXPECT_EQ(session.scheduler.next(), std::nullopt);  // nobody can go on before the delivery
  session.rendezvous.delivered(3);
  EXPECT_EQ(session.scheduler.leave(3, true), Fiber(3));
  for (const size_t participant : {2u, 1u, 0u}) {
    EXPECT_EQ(session.scheduler.next(), Fiber(participant));
    session.scheduler.resume(participant);
    EXPECT_EQ(session.scheduler.leave(participant, true), Fiber(participant));
  }
  EXPECT_EQ(session.scheduler.next(), std::nullopt);
  EXPECT_TRUE(session.scheduler.suspended().empty());
}

TEST(Scheduler, AFiberRunsTheNextParticipantWhenOneHasEnded) {
  Session session(2);
  const Fiber first = session.scheduler.next();
  session.begin(first);
  EXPECT_EQ(session.scheduler.leave(0, true), first);
  EXPECT_EQ(session.scheduler.upcoming(), Fiber(1));
  session.scheduler.begin(*first);
  EXPECT_EQ(session.scheduler.fiber_of(1), *first);
  EXPECT_EQ(session.scheduler.used_fibers(), 1u);
}

TEST(Scheduler, ChoosesTheSameFiberAgainWhereNoParticipantBeganInIt) {
  Session session(2);
  EXPECT_EQ(session.scheduler.next(), Fiber(0));
  EXPECT_EQ(session.scheduler.next(), Fiber(0));
  session.begin(0);
  EXPECT_EQ(session.scheduler.take_starting(), std::nullopt);
  EXPECT_EQ(session.scheduler.next(), Fiber(1));
}

TEST(Scheduler, AfterAFailureNobodyBeginsAndAllSuspendedResume) {
  Session session(3);
  session.begin(session.scheduler.next());
  EXPECT_EQ(session.arrive(0), Rendezvous::Arrival::kWait);
  session.begin(session.scheduler.suspend(0));
  EXPECT_EQ(session.scheduler.leave(1, false), Fiber(1));
  EXPECT_EQ(session.rendezvous.failure(), Rendezvous::Failure::kBody);
  EXPECT_EQ(session.scheduler.upcoming(), std::nullopt);
  EXPECT_EQ(session.scheduler.next(), Fiber(0));
}

TEST(Scheduler, KeepingOrderLeavesEveryChoiceToTheCaller) {
  Session session(4);
  suspend_three(session);
  session.arrive(3);
  session.rendezvous.delivered(3);
  EXPECT_EQ(session.scheduler.next(), Fiber(2));
  EXPECT_EQ(session.scheduler.keep_order(), (Positions{0, 1}));
  EXPECT_TRUE(session.scheduler.is_ordered());
  EXPECT_EQ(session.scheduler.next(), std::nullopt);
}

TEST(Scheduler, ResumingTwiceOrAfterTheEndDoesNothing) {
  Session session(4);
  suspend_three(session);
  session.scheduler.resume(1);
  session.scheduler.resume(1);
  EXPECT_EQ(session.scheduler.suspended(), (Positions{0, 2}));
  session.scheduler.end();
  session.scheduler.resume(0);
  EXPECT_EQ(session.scheduler.leave(0, true), std::nullopt);
  EXPECT_THROW(session.scheduler.suspend(0), Unavailable);
  EXPECT_THROW(session.scheduler.fiber_of(0), IndexOutOfRange);
}

TEST(Scheduler, ServesTheNextCallOfTheSameParticipants) {
  Session session(4);
  suspend_three(session);
  session.rendezvous.restart();
  session.scheduler.start();
  EXPECT_TRUE(session.scheduler.suspended().empty());
  EXPECT_EQ(session.scheduler.next(), Fiber(0));
  EXPECT_EQ(session.scheduler.used_fibers(), 1u);
}

}  // namespace
}  // namespace artifex_devices
