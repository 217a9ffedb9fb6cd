// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/scheduler.h"

#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

void Scheduler::start() {
  const int64_t participants = rendezvous_->participants();
  end();
  suspended_.reserve(static_cast<size_t>(2 * participants));
  resumable_.reserve(static_cast<size_t>(participants));
  places_.assign(participants, -1);
  fiber_of_.assign(participants, FiberId());
}

void Scheduler::end() noexcept {
  begun_ = used_ = 0;
  is_ordered_ = false;
  starting_ = {};
  fiber_of_.clear();
  places_.clear();
  suspended_.clear();
  resumable_.clear();
}

ParticipantId Scheduler::upcoming() const noexcept {
  if (begun_ >= fiber_of_.size() || rendezvous_->failure() != Rendezvous::Failure::kNone) return {};
  return ParticipantId(begun_);
}

FiberId Scheduler::next() {
  if (!upcoming().is_none()) {
    if (starting_.is_none()) starting_ = FiberId(used_++);  // else an interrupt came before the switch to it
    return starting_;
  }
  if (is_ordered_) return {};
  if (resumable_.empty()) rendezvous_->append_resumable(suspended(), resumable_);
  while (!resumable_.empty()) {
    const ParticipantId participant = resumable_.back();
    resumable_.pop_back();
    if (places_[participant] >= 0) return fiber_of_[participant];
  }
  return {};
}

FiberId Scheduler::suspend(ParticipantId participant) {
  if (participant.number() >= places_.size()) {
    throw_error<Unavailable>(
        "Scheduler: the call of participant {} has ended; expected a running call; call collectives in the body",
        participant.number());
  }
  if (places_[participant] < 0) {
    if (suspended_.size() == suspended_.capacity()) suspended();
    places_[participant] = static_cast<int64_t>(suspended_.size());
    suspended_.push_back(participant);
  }
  return next();
}

void Scheduler::resume(ParticipantId participant) noexcept {
  if (participant.number() >= places_.size() || places_[participant] < 0) return;
  suspended_[static_cast<size_t>(std::exchange(places_[participant], -1))] = {};
}

const std::vector<ParticipantId>& Scheduler::suspended() noexcept {
  std::erase_if(suspended_, [](ParticipantId each) { return each.is_none(); });
  for (size_t i = 0; i < suspended_.size(); ++i) places_[suspended_[i]] = static_cast<int64_t>(i);
  return suspended_;
}

FiberId Scheduler::take_starting() noexcept { return std::exchange(starting_, FiberId()); }

void Scheduler::begin(FiberId fiber) noexcept { fiber_of_[ParticipantId(begun_++)] = fiber; }

FiberId Scheduler::leave(ParticipantId participant, bool has_returned) {
  if (participant.number() >= fiber_of_.size()) return {};
  resume(participant);
  if (has_returned)
    rendezvous_->finished(participant);
  else
    rendezvous_->raised(participant);
  return fiber_of_[participant];
}

std::vector<ParticipantId> Scheduler::keep_order() {
  is_ordered_ = true;
  std::vector<ParticipantId> chosen = resumable_;
  resumable_.clear();
  return chosen;
}

FiberId Scheduler::fiber_of(ParticipantId participant) const {
  if (participant.number() >= fiber_of_.size() || fiber_of_[participant].is_none())
    throw_error<IndexOutOfRange>(
        "Scheduler: participant {} has not begun; expected a participant with a fiber; start it", participant.number());
  return fiber_of_[participant];
}

}  // namespace artifex_devices
