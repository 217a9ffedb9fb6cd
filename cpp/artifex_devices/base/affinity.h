// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <memory>

namespace artifex_devices {

/// The CPUs that the calling thread may run on. Works for any number of CPUs: Linux rejects sets shorter than its own,
/// and a `cpu_set_t` has only 1,024 CPUs. Allocates memory only on larger systems.
class AffinityMask {
 public:
  AffinityMask() noexcept;
  /// Number of CPUs; 0 if the system did not report them for lack of memory.
  int count() const noexcept { return CPU_COUNT_S(bytes_, set()); }
  /// Calls visit(cpu) with the operating system's numbers, ascending.
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t cpu = 0; cpu < bytes_ * 8; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes_, set())) visit(static_cast<int>(cpu));
    }
  }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
  };
  const cpu_set_t* set() const noexcept { return large_ ? large_.get() : &small_; }

  cpu_set_t small_ = {};
  std::unique_ptr<cpu_set_t, Free> large_;
  size_t bytes_ = sizeof(small_);
};

}  // namespace artifex_devices
