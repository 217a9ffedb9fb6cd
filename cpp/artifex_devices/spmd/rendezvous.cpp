// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/rendezvous.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

Rendezvous::Rendezvous(int64_t participants) : able_(participants) {
  if (participants < 1)
    throw_error("Rendezvous: no participants; expected 1 or more, got {}; give devices", participants);
  began_ns_ = recorded_begin_ns(Recorded::kSpans);
  participants_.reserve(participants);
  for (int64_t i = 0; i < participants; ++i) participants_.push_back(std::make_unique<Participant>());
  at_failure_.reserve(participants_.size());  // a failure must reach all, also where memory is short
}

void Rendezvous::check_participant(ParticipantId participant) const {
  if (participant.is_none() || participant.number() >= participants()) {
    throw_error("Rendezvous: there is no participant {}; expected 0 to {}; count from 0", participant.number(),
                participants() - 1);
  }
}

GroupId Rendezvous::group(const std::vector<ParticipantId>& members) {
  const std::lock_guard lock(mutex_);
  if (const auto known = group_ids_.find(members); known != group_ids_.end()) return known->second;
  if (members.empty()) throw_error("Rendezvous: a group has no members; expected 1 or more, got 0; name some");
  std::vector<ParticipantId> sorted = members;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    check_participant(sorted[i]);
    if (i > 0 && sorted[i] == sorted[i - 1]) {
      throw_error("Rendezvous: participant {} is in a group twice; expected each participant once; remove one",
                  sorted[i].number());
    }
  }
  const GroupId id(groups_.size());
  groups_.push_back({members, std::ranges::count_if(members, [&](ParticipantId member) {
                       return participants_[member]->standing.state == State::kFinished;
                     })});
  for (const ParticipantId member : members) participants_[member]->groups.push_back(id);
  group_ids_.emplace(members, id);
  return id;
}

void Rendezvous::check_group_locked(GroupId group) const {
  if (group.is_none() || group.number() >= groups_.size()) {
    throw_error("Rendezvous: there is no group {}; expected 0 to {}; make it by group()", group.number(),
                groups_.size() - 1);
  }
}

std::vector<ParticipantId> Rendezvous::members(GroupId group) const {
  const std::lock_guard lock(mutex_);
  check_group_locked(group);
  return groups_[group].members;
}

Rendezvous::Arrival Rendezvous::arrive(ParticipantId participant, GroupId group, int64_t signature) {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  check_group_locked(group);
  Participant& self = *participants_[participant];
  Group& joined = groups_[group];
  if (self.standing.state != State::kRunning || std::ranges::find(self.groups, group) == self.groups.end()) {
    throw_error(
        "Rendezvous: participant {} cannot arrive at group {}: it waits, works, has ended or is not a member; expected a "
        "running member; arrive once at a time",
        participant.number(), group.number());
  }
  if (failure_ != Failure::kNone) return Arrival::kFailed;
  if (!joined.open) {
    joined.open = std::make_shared<Meeting>();
    joined.open->signature = signature;
  }
  self.standing.group = group;
  self.standing.signature = signature;
  ++self.standing.collectives;
  if (is_recorded(Recorded::kSpans)) note_time_locked(participant);
  self.meeting = joined.open;
  Meeting& meeting = *self.meeting;
  ++meeting.arrived;
  if (meeting.signature != signature) {
    self.standing.state = State::kWaiting;
    --able_;
    fail_locked(Failure::kMismatch);
    return Arrival::kFailed;
  }
  if (meeting.arrived == static_cast<int64_t>(joined.members.size())) {
    joined.open.reset();
    self.standing.state = State::kWorking;
    return Arrival::kComplete;
  }
  self.standing.state = State::kWaiting;
  --able_;
  if (joined.finished > 0) fail_locked(Failure::kEarlyExit);
  find_deadlock_locked();
  return failure_ == Failure::kNone ? Arrival::kWait : Arrival::kFailed;
}

// A thread runs one participant after the other: each begins when the one before it has arrived. A participant that ran
// alone in its thread began when its last collective was delivered.
void Rendezvous::note_time_locked(ParticipantId participant) {
  const int64_t now_ns = clock_ns();
  const int64_t thread = trace_thread();
  int64_t& began_ns = turn_began_ns_[thread];
  Participant& self = *participants_[participant];
  const int64_t since_ns = std::max({began_ns, self.delivered_ns, began_ns_});
  self.time = {participant, now_ns, since_ns == 0 ? 0 : now_ns - since_ns, thread};
  began_ns = now_ns;
}

std::vector<Rendezvous::ArrivalTime> Rendezvous::arrival_times(ParticipantId participant) const {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  const Participant& self = *participants_[participant];
  if (self.standing.state != State::kWorking) return {};
  std::vector<ArrivalTime> times;
  for (const ParticipantId member : groups_[self.standing.group].members) {
    times.push_back(participants_[member]->time);
  }
  return times;
}

void Rendezvous::delivered(ParticipantId participant) {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  Participant& self = *participants_[participant];
  if (self.standing.state != State::kWorking) {
    throw_error("Rendezvous: participant {} has completed nothing; expected arrive() to report it first",
                participant.number());
  }
  self.meeting->delivered = true;
  const int64_t now_ns = recorded_begin_ns(Recorded::kSpans);
  for (const ParticipantId member : groups_[self.standing.group].members) {
    Participant& other = *participants_[member];
    if (other.meeting != self.meeting) continue;
    other.delivered_ns = now_ns;
    if (member == participant) continue;
    other.standing.state = State::kRunning;
    ++able_;
    other.wake.notify_all();
  }
  self.meeting.reset();
  self.standing.state = State::kRunning;
}

bool Rendezvous::may_go_locked(const Participant& self) const {
  return failure_ != Failure::kNone || !self.meeting || self.meeting->delivered;
}

bool Rendezvous::may_go(ParticipantId participant) const {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  return may_go_locked(*participants_[participant]);
}

void Rendezvous::append_resumable(const std::vector<ParticipantId>& waiting,
                                  std::vector<ParticipantId>& resumable) const {
  const std::lock_guard lock(mutex_);
  std::ranges::copy_if(waiting, std::back_inserter(resumable),
                       [&](ParticipantId participant) { return may_go_locked(*participants_[participant]); });
}

bool Rendezvous::wait(ParticipantId participant, std::optional<double> seconds) {
  check_participant(participant);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto over = [&] { return seconds && std::chrono::duration<double>(Clock::now() - begin).count() >= *seconds; };
  Participant& self = *participants_[participant];
  std::unique_lock lock(mutex_);
  while (!may_go_locked(self)) {
    if (over()) {
      fail_locked(Failure::kDeadline);
      return false;
    }
    const auto slice = std::chrono::milliseconds(20);
    const auto left = seconds ? std::chrono::duration<double>(*seconds) - (Clock::now() - begin) : slice;
    self.wake.wait_for(lock, std::min<std::chrono::duration<double>>(slice, left));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  return failure_ == Failure::kNone || (self.meeting && self.meeting->delivered);
}

void Rendezvous::restart() {
  const std::lock_guard lock(mutex_);
  for (const auto& each : participants_) {
    each->standing = {};
    each->time = {};
    each->delivered_ns = 0;
    each->meeting.reset();
  }
  for (Group& each : groups_) {
    each.open.reset();
    each.finished = 0;
  }
  able_ = participants();
  failure_ = Failure::kNone;
  at_failure_.clear();
  turn_began_ns_.clear();
  began_ns_ = recorded_begin_ns(Recorded::kSpans);
}

void Rendezvous::finished(ParticipantId participant) {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  Participant& self = *participants_[participant];
  if (self.standing.state == State::kRunning || self.standing.state == State::kWorking) --able_;
  self.standing.state = State::kFinished;
  bool is_awaited = false;
  for (const GroupId each : self.groups) {
    ++groups_[each].finished;
    is_awaited |= groups_[each].open != nullptr;
  }
  if (is_awaited) fail_locked(Failure::kEarlyExit);
  find_deadlock_locked();
}

void Rendezvous::raised(ParticipantId participant) {
  check_participant(participant);
  const std::lock_guard lock(mutex_);
  Participant& self = *participants_[participant];
  if (self.standing.state == State::kRunning || self.standing.state == State::kWorking) --able_;
  self.standing.state = State::kRaised;
  fail_locked(Failure::kBody);
}

void Rendezvous::fail(Failure failure) {
  const std::lock_guard lock(mutex_);
  fail_locked(failure);
}

void Rendezvous::fail_locked(Failure failure) noexcept {
  if (failure_ != Failure::kNone) return;
  for (const auto& each : participants_) at_failure_.push_back(each->standing);
  failure_ = failure;
  for (const auto& each : participants_) each->wake.notify_all();
}

// A waiting participant waits for members that have not arrived; if no participant runs, they never will.
void Rendezvous::find_deadlock_locked() {
  if (able_ > 0) return;
  const bool waiting =
      std::ranges::any_of(participants_, [](const auto& each) { return each->standing.state == State::kWaiting; });
  if (waiting) fail_locked(Failure::kDeadlock);
}

IdVector<ParticipantId, Rendezvous::Standing> Rendezvous::standings() const {
  const std::lock_guard lock(mutex_);
  if (failure_ != Failure::kNone) return at_failure_;
  IdVector<ParticipantId, Standing> result;
  result.reserve(participants_.size());
  for (const auto& each : participants_) result.push_back(each->standing);
  return result;
}

std::string_view to_string(Rendezvous::Failure failure) noexcept {
  constexpr std::array<std::string_view, 7> kNames = {"",         "mismatch", "early exit", "deadlock",
                                                      "deadline", "body",     "cancelled"};
  return kNames[static_cast<size_t>(failure)];
}

std::string_view to_string(Rendezvous::State state) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"running", "waiting", "working", "finished", "raised"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace artifex_devices
