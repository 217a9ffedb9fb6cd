// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/spmd/rendezvous.h"

namespace artifex_devices {

/// Decides which participant of a session runs next where all of them share one thread. Each participant runs in a
/// fiber, which runs the next participant when one has ended. The scheduler knows numbers only: its owner has the
/// fibers and switches to them. Not thread-safe.
///
/// Participants begin in their order. When all have begun or wait, participants with a complete collective resume, the
/// most recently suspended first. After a failure no participant begins and all suspended participants resume.
///
/// Example: participants 0 and 1 of one group: next() is fiber 0, which begins 0. When 0 waits, suspend(0) is fiber 1,
/// which begins 1. 1 completes the collective; when it ends, next() is fiber 0.
class Scheduler {
 public:
  /// The rendezvous must outlive the scheduler.
  explicit Scheduler(Rendezvous& rendezvous) : rendezvous_(&rendezvous) {}

  /// Begins a call with all participants of the rendezvous. Until `end` no function but `keep_order` and `suspended`
  /// allocates: a waiting participant must get its turn also where memory is short.
  void start();
  /// Ends the call: it has no participants any more.
  void end() noexcept;

  /// Returns the fiber to switch to: a fiber in which the next participant begins, or the fiber of a suspended
  /// participant. Returns nothing for the caller of the session, if no participant can run or the caller chooses
  /// (`keep_order`).
  FiberId next();
  /// Suspends a participant, which waits, and returns `next`. Throws Unavailable after the end of the call.
  FiberId suspend(ParticipantId participant);
  /// Reports that a participant runs; does nothing if it is not suspended.
  void resume(ParticipantId participant) noexcept;

  /// Whether `next` chose this fiber to begin a participant, which has not been taken by `take_starting` yet.
  bool is_starting(FiberId fiber) const noexcept { return starting_ == fiber; }
  /// The fiber that begins a participant, once.
  FiberId take_starting() noexcept;
  /// The participant that begins next; none if all have begun or the session has failed.
  ParticipantId upcoming() const noexcept;
  /// Reports that the upcoming participant begins in a fiber.
  void begin(FiberId fiber) noexcept;
  /// Reports that the body of a participant returned, or raised its own error. Returns the participant's fiber, in
  /// which another participant may begin; nothing after the end of the call.
  FiberId leave(ParticipantId participant, bool has_returned);

  /// Makes the caller of the session choose every later turn. Returns the participants that were chosen to resume, the
  /// next one last.
  std::vector<ParticipantId> keep_order();
  bool is_ordered() const noexcept { return is_ordered_; }

  /// The suspended participants, in the order of their suspension.
  const std::vector<ParticipantId>& suspended() noexcept;
  /// The fiber of a participant that has begun. Throws IndexOutOfRange for other participants.
  FiberId fiber_of(ParticipantId participant) const;
  /// Number of fibers that `next` chose in this call.
  int64_t used_fibers() const noexcept { return used_; }

 private:
  Rendezvous* rendezvous_;
  int64_t begun_ = 0;
  int64_t used_ = 0;
  bool is_ordered_ = false;
  FiberId starting_;
  IdVector<ParticipantId, FiberId> fiber_of_;
  // Suspended participants in the order of suspension. One that has resumed leaves a hole, which `suspended` closes:
  // in each collective of a body all participants resume, and most suspend again before the others have resumed.
  std::vector<ParticipantId> suspended_;
  IdVector<ParticipantId, int64_t> places_;  // in suspended_, or -1
  std::vector<ParticipantId> resumable_;     // chosen to resume, the next one last
};

}  // namespace artifex_devices
