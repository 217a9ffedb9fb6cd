// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace artifex_devices {

/// A value that is reached only with its lock held.
/// Example: `Guarded<std::vector<int>, Mutex<"numbers">> numbers; numbers.lock()->push_back(1);`
template <class T, class Lockable>
class Guarded {
 public:
  template <class... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  /// Holds the lock while it lives.
  class Locked {
   public:
    explicit Locked(Guarded& guarded) : guarded_(guarded) { guarded_.mutex_.lock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() { guarded_.mutex_.unlock(); }
    T* operator->() const noexcept { return &guarded_.value_; }
    T& operator*() const noexcept { return guarded_.value_; }

   private:
    Guarded& guarded_;
  };
  Locked lock() { return Locked(*this); }
  /// For members that may be read at any time, such as atomic ones.
  const T& unlocked() const noexcept { return value_; }

 private:
  Lockable mutex_;
  T value_;
};

}  // namespace artifex_devices
