// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

void Scheduler::start() {
  const auto participants = static_cast<size_t>(rendezvous_->participants());
  end();
  suspended_.reserve(participants);
  resumable_.reserve(participants);
  is_suspended_.assign(participants, false);
  fiber_of_.assign(participants, kNoFiber);
}

void Scheduler::end() noexcept {
  begun_ = used_ = 0;
  is_ordered_ = false;
  starting_.reset();
  fiber_of_.clear();
  is_suspended_.clear();
  suspended_.clear();
  resumable_.clear();
}

std::optional<size_t> Scheduler::upcoming() const noexcept {
  if (begun_ >= fiber_of_.size() || rendezvous_->failure() != Rendezvous::Failure::kNone) return std::nullopt;
  return begun_;
}

std::optional<size_t> Scheduler::next() {
  if (upcoming()) {
    if (!starting_) starting_ = used_++;  // else an interrupt came before the switch to it
    return starting_;
  }
  if (is_ordered_) return std::nullopt;
  if (resumable_.empty()) rendezvous_->append_resumable(suspended_, resumable_);
  while (!resumable_.empty()) {
    const size_t participant = resumable_.back();
    resumable_.pop_back();
    if (is_suspended_[participant]) return fiber_of_[participant];
  }
  return std::nullopt;
}

std::optional<size_t> Scheduler::suspend(size_t participant) {
  if (participant >= is_suspended_.size()) {
    throw_error<Unavailable>(
        "Scheduler: the call of participant {} has ended; expected a running one; call "
        "collectives in the body",
        participant);
  }
  if (!is_suspended_[participant]) {
    suspended_.push_back(participant);
    is_suspended_[participant] = true;
  }
  return next();
}

void Scheduler::resume(size_t participant) noexcept {
  if (participant >= is_suspended_.size() || !is_suspended_[participant]) return;
  is_suspended_[participant] = false;
  const auto found = std::find(suspended_.rbegin(), suspended_.rend(), participant);  // usually the last one
  suspended_.erase(std::next(found).base());
}

std::optional<size_t> Scheduler::take_starting() noexcept { return std::exchange(starting_, std::nullopt); }

void Scheduler::begin(size_t fiber) noexcept { fiber_of_[begun_++] = fiber; }

std::optional<size_t> Scheduler::leave(size_t participant, bool has_returned) {
  if (participant >= fiber_of_.size()) return std::nullopt;
  resume(participant);
  if (has_returned)
    rendezvous_->finished(static_cast<int64_t>(participant));
  else
    rendezvous_->raised(static_cast<int64_t>(participant));
  return fiber_of_[participant];
}

std::vector<size_t> Scheduler::keep_order() {
  is_ordered_ = true;
  std::vector<size_t> chosen = resumable_;
  resumable_.clear();
  return chosen;
}

size_t Scheduler::fiber_of(size_t participant) const {
  if (participant >= fiber_of_.size() || fiber_of_[participant] == kNoFiber)
    throw_error<IndexOutOfRange>("Scheduler: participant {} has not begun; expected one that has a fiber; start it",
                                 participant);
  return fiber_of_[participant];
}

}  // namespace artifex_devices
