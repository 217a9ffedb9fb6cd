// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_stand_in {

/// A vector clock: how far each stream had come, by number; number 0 is the host.
using Clock = std::vector<uint64_t>;
void join(Clock& clock, const Clock& other);
uint64_t component(const Clock& clock, size_t actor);

/// Bytes of memory that one copy reads or writes.
struct Access {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_write = false;
  size_t actor = 0;
  uint64_t time = 0;  // of the actor's own component
};

/// Memory of a GPU, or locked memory of the host.
struct Allocation {
  uint64_t address = 0;  // as reported
  char* data = nullptr;  // where it really is
  int64_t bytes = 0;
  int gpu = 0;
  bool is_host = false;
  bool is_pooled = false;        // stream-ordered
  std::vector<Access> accesses;  // that the host has not waited for yet
};

class Memory {
 public:
  /// The address of new memory; 0 where the GPU has too little.
  uint64_t allocate(int64_t bytes, int gpu, bool is_host, bool is_pooled);
  /// The allocation that contains an address; null without one.
  Allocation* find(uint64_t address);
  /// Takes back the memory that begins at an address.
  void free(uint64_t address);
  /// Checks a range of `bytes` from `address` on, reports it as misuse where it is not in one allocation, and records
  /// the access. Two accesses of which one is a write must be ordered by their clocks.
  bool access(uint64_t address, int64_t bytes, bool is_write, size_t actor, const Clock& clock, const char* function);
  /// Forgets what the host has waited for: everything later comes after it.
  void forget(const Clock& host);
  /// Whether the accesses of an allocation come before `clock`.
  static bool is_idle(const Allocation& allocation, const Clock& clock);

 private:
  std::map<uint64_t, Allocation> all_;  // by address
  std::vector<uint64_t> accessed_;      // addresses of those that have accesses
  std::map<int, int64_t> in_use_;       // bytes by GPU
};

}  // namespace cuda_stand_in
