// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "memory.h"

namespace cuda_stand_in {

struct StandInEvent {
  Clock clock;          // of the stream when it was recorded
  int64_t waiting = 0;  // records that have not run yet
};

/// Work of a stream: one of a copy, a record of an event, a wait for one.
struct Work {
  std::function<void()> run;
  StandInEvent* records = nullptr;
  StandInEvent* waits_for = nullptr;
};

struct StandInStream {
  size_t number = 0;
  int gpu = 0;
  Clock clock;
  std::deque<Work> queue;
};

/// Queues of copies, run in a seeded order when somebody waits.
class Streams {
 public:
  StandInStream* create(int gpu);
  /// Ticks the stream's clock for the next work, after all that the host knows.
  const Clock& tick(StandInStream& stream);
  void add(StandInStream& stream, Work work) { stream.queue.push_back(std::move(work)); }
  void record(StandInEvent& event, StandInStream& stream);
  void wait(StandInStream& stream, StandInEvent& event);
  /// Runs work until a stream is empty or an event is recorded. The host then knows that.
  void synchronize(StandInStream& stream, Memory& memory);
  void synchronize(StandInEvent& event, Memory& memory);
  /// Runs some work; whether the event is recorded. If so, the host knows that.
  bool query(StandInEvent& event, Memory& memory);
  void synchronize_gpu(int gpu, Memory& memory);
  const Clock& host() const { return host_; }
  void seed(uint64_t seed) { random_.seed(seed); }

 private:
  bool run_one();

  std::vector<std::unique_ptr<StandInStream>> all_;
  Clock host_;
  std::mt19937_64 random_;
};

}  // namespace cuda_stand_in
