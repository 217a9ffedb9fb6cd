// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {

/// State machine that synchronizes the participants of one session in collectives. It holds only integers, never runs
/// foreign code, and only `wait` waits. A group is a set of participants of one collective; a signature is a number
/// that stands for everything the members must agree on (operation, dtype, shape, axes).
///
/// The last participant to arrive gets kComplete, computes the results of all members, and calls `delivered`; then all
/// members continue. A failure lasts until restart() and concerns all participants: a mismatch, a member that finished
/// early, a deadlock, a deadline, or a call of `fail`. Thread-safe.
///
/// Example: participants 0 and 1 in group g: arrive(0, g, 7) is kWait, arrive(1, g, 7) is kComplete, delivered(1),
/// may_go(0) is true.
class Rendezvous {
 public:
  enum class Arrival : uint8_t { kComplete, kWait, kFailed };
  enum class Failure : uint8_t {
    kNone,
    kMismatch,   // two members of a group brought different signatures
    kEarlyExit,  // a member finished while other members wait for it
    kDeadlock,   // all participants wait or have finished
    kDeadline,   // a wait took longer than it may
    kBody,       // a participant's own exception
    kCancelled,  // the caller cancelled the session, for example on Ctrl-C
  };
  enum class State : uint8_t { kRunning, kWaiting, kWorking, kFinished, kRaised };

  /// State of one participant. Group and signature are of its current or last collective, -1 before the first one.
  struct Standing {
    State state = State::kRunning;
    GroupId group = {};
    int64_t signature = -1;
    int64_t collectives = 0;  // number of collectives that it has arrived at
  };

  explicit Rendezvous(int64_t participants);
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  int64_t participants() const noexcept { return participants_.size(); }

  /// Returns the number of a group. The same members in the same order have the same number. Throws InvalidArgument for
  /// an empty group, and for members that do not exist or are repeated.
  GroupId group(const std::vector<ParticipantId>& members);

  /// The members of a group, in their order. Throws InvalidArgument for a group that does not exist.
  std::vector<ParticipantId> members(GroupId group) const;

  /// Throws InvalidArgument if the participant does not belong to the group, already waits, or has finished.
  Arrival arrive(ParticipantId participant, GroupId group, int64_t signature);
  /// The work of the collective that `participant` completed is done.
  void delivered(ParticipantId participant);
  /// For a trace: when a participant arrived, and how long it had been running by then.
  struct ArrivalTime {
    ParticipantId participant = {};
    int64_t arrived_ns = 0;  // by clock_ns(); 0 if no trace was open
    int64_t busy_ns = 0;
    int64_t thread = 0;
  };
  /// The members of the collective that `participant` completes. Threads of several participants run these in turns.
  std::vector<ArrivalTime> arrival_times(ParticipantId participant) const;
  /// Whether a waiting participant can stop waiting: its collective was delivered, or the session failed.
  bool may_go(ParticipantId participant) const;
  /// Appends the participants of `waiting` for which may_go() is true, in order. Does not allocate if `resumable` has
  /// capacity for all.
  void append_resumable(const std::vector<ParticipantId>& waiting, std::vector<ParticipantId>& resumable) const;
  /// Waits until may_go() is true, for at most `seconds` (nothing: forever), and calls check_interrupt() periodically.
  /// When the time is over, sets the failure kDeadline and returns false.
  bool wait(ParticipantId participant, std::optional<double> seconds);

  /// Resets arrivals and failures for the next call with these participants. Groups keep their numbers. No thread may
  /// be in `wait`.
  void restart();

  /// The body returned, or raised. The first failure of all counts.
  void finished(ParticipantId participant);
  void raised(ParticipantId participant);
  void fail(Failure failure);

  Failure failure() const noexcept { return failure_.load(std::memory_order_acquire); }
  /// States of all participants at the time of the failure, or now.
  IdVector<ParticipantId, Standing> standings() const;

 private:
  /// Of a group, for one collective.
  struct Meeting {
    int64_t signature = -1;
    int64_t arrived = 0;
    bool delivered = false;
  };
  struct Participant {
    Standing standing;
    ArrivalTime time;
    int64_t delivered_ns = 0;          // its last collective, for traces
    std::shared_ptr<Meeting> meeting;  // while waiting or working
    std::vector<GroupId> groups;       // that it is a member of
    ConditionVariable wake;
  };
  struct Group {
    std::vector<ParticipantId> members;
    int64_t finished = 0;                // members whose bodies have returned
    std::shared_ptr<Meeting> open = {};  // whose members have not all arrived
  };

  void check_participant(ParticipantId participant) const;
  void check_group_locked(GroupId group) const;
  void fail_locked(Failure failure) noexcept;
  bool may_go_locked(const Participant& self) const;
  void find_deadlock_locked();
  void note_time_locked(ParticipantId participant);

  mutable Mutex<"rendezvous"> mutex_;
  IdVector<ParticipantId, std::unique_ptr<Participant>> participants_;
  IdVector<GroupId, Group> groups_;
  std::map<std::vector<ParticipantId>, GroupId> group_ids_;
  int64_t able_ = 0;                               // participants that run or work, and so may still reach a collective
  std::atomic<Failure> failure_ = Failure::kNone;  // written under the lock
  IdVector<ParticipantId, Standing> at_failure_;
  std::map<int64_t, int64_t> turn_began_ns_;  // by thread, for traces: when the participant that it runs began
  int64_t began_ns_ = 0;                      // the call, for traces
};

/// "mismatch", "early exit", "deadlock", "deadline", "body", "cancelled", or "" for kNone.
std::string_view to_string(Rendezvous::Failure failure) noexcept;
/// "running", "waiting", "working", "finished" or "raised".
std::string_view to_string(Rendezvous::State state) noexcept;

}  // namespace artifex_devices
