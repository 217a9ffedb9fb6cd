// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include "settings.h"

namespace cuda_stand_in {

StandInStream* Streams::create(int gpu) {
  all_.push_back(std::make_unique<StandInStream>());
  all_.back()->number = all_.size();  // 0 is the host
  all_.back()->gpu = gpu;
  return all_.back().get();
}

const Clock& Streams::tick(StandInStream& stream) {
  join(stream.clock, host_);
  if (stream.clock.size() <= stream.number) stream.clock.resize(stream.number + 1, 0);
  ++stream.clock[stream.number];
  return stream.clock;
}

void Streams::record(StandInEvent& event, StandInStream& stream) {
  event.clock = tick(stream);
  ++event.waiting;
  add(stream, {nullptr, &event, nullptr});
}

void Streams::wait(StandInStream& stream, StandInEvent& event) {
  join(stream.clock, event.clock);
  if (event.waiting > 0) add(stream, {nullptr, nullptr, &event});
}

/// Runs the first work of a random stream that can go on.
bool Streams::run_one() {
  std::vector<StandInStream*> ready;
  for (const auto& stream : all_) {
    if (stream->queue.empty()) continue;
    const Work& first = stream->queue.front();
    if (first.waits_for == nullptr || first.waits_for->waiting == 0) ready.push_back(stream.get());
  }
  if (ready.empty()) return false;
  StandInStream& chosen = *ready[random_() % ready.size()];
  const Work work = std::move(chosen.queue.front());
  chosen.queue.pop_front();
  if (work.run) work.run();
  if (work.records != nullptr) --work.records->waiting;
  return true;
}

void Streams::synchronize(StandInStream& stream, Memory& memory) {
  while (!stream.queue.empty()) {
    if (!run_one()) return problem("streams wait for each other for ever");
  }
  join(host_, stream.clock);
  memory.forget(host_);
}

bool Streams::query(StandInEvent& event, Memory& memory) {
  if (event.waiting > 0) run_one();
  if (event.waiting > 0) return false;
  synchronize(event, memory);
  return true;
}

void Streams::synchronize_gpu(int gpu, Memory& memory) {
  for (const auto& stream : all_) {
    if (stream->gpu == gpu) synchronize(*stream, memory);
  }
}

void Streams::synchronize(StandInEvent& event, Memory& memory) {
  while (event.waiting > 0) {
    if (!run_one()) return problem("streams wait for each other for ever");
  }
  join(host_, event.clock);
  memory.forget(host_);
}

}  // namespace cuda_stand_in
