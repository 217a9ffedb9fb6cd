// SPDX-License-Identifier: Apache-2.0
// Programs of participants that meet in groups, and of which some raise, leave, disagree, go elsewhere or are
// cancelled.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>

#include "artifex_devices/spmd/rendezvous.h"
#include "stress.h"

namespace artifex_devices {
namespace {

using Random = std::mt19937_64;
using Failure = Rendezvous::Failure;

constexpr int64_t kCount = 6;
constexpr int64_t kSteps = 16;

enum class Fault { kNone, kRaises, kLeaves, kDisagrees, kCancelled, kOtherGroup };

struct Program {
  Rendezvous rendezvous{kCount};
  std::vector<int64_t> whole{0, 1, 2, 3, 4, 5};
  std::array<int64_t, kCount> payload{};
  std::array<int64_t, kCount> result{};
  std::array<bool, kSteps> in_pairs{};
  Fault fault = Fault::kNone;
  int64_t who = 0;   // is at fault
  int64_t when = 0;  // at this step
  std::atomic<int64_t> sums{0};

  void run(int64_t me) {
    const int64_t first = me / 2 * 2;
    const std::vector<int64_t> pair{first, first + 1};
    for (int64_t step = 0; step < kSteps; ++step) {
      const bool at_fault = me == who && step == when;
      const bool pairs = in_pairs[static_cast<size_t>(step)] != (at_fault && fault == Fault::kOtherGroup);
      const std::vector<int64_t>& members = pairs ? pair : whole;
      if (at_fault && fault == Fault::kRaises) return rendezvous.raised(ParticipantId(me));
      if (at_fault && fault == Fault::kLeaves) break;
      if (at_fault && fault == Fault::kCancelled) rendezvous.fail(Failure::kCancelled);
      payload[static_cast<size_t>(me)] = step * 100 + me;
      const int64_t signature = step + (at_fault && fault == Fault::kDisagrees ? 1000 : 0);
      const auto arrival =
          rendezvous.arrive(ParticipantId(me), rendezvous.group({members.begin(), members.end()}), signature);
      if (arrival == Rendezvous::Arrival::kFailed) break;
      if (arrival == Rendezvous::Arrival::kComplete) {
        int64_t sum = 0;
        for (const int64_t member : members) sum += payload[static_cast<size_t>(member)];
        for (const int64_t member : members) result[static_cast<size_t>(member)] = sum;
        rendezvous.delivered(ParticipantId(me));
      } else if (!rendezvous.wait(ParticipantId(me), 60.0)) {
        break;
      }
      int64_t expected = 0;
      for (const int64_t member : members) expected += step * 100 + member;
      EXPECT_EQ(result[static_cast<size_t>(me)], expected) << "participant " << me << ", step " << step;
      sums.fetch_add(1);
    }
    rendezvous.finished(ParticipantId(me));
  }
};

std::set<Failure> expected_of(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return {Failure::kNone};
    case Fault::kRaises:
      return {Failure::kBody};
    case Fault::kLeaves:  // found by the first participant that sees it
      return {Failure::kEarlyExit, Failure::kDeadlock};
    case Fault::kDisagrees:
      return {Failure::kMismatch};
    case Fault::kCancelled:
      return {Failure::kCancelled};
    case Fault::kOtherGroup:  // by how far the others come without it
      return {Failure::kDeadlock, Failure::kMismatch, Failure::kEarlyExit};
  }
  return {};
}

TEST(RendezvousStress, RunsProgramsWithAndWithoutFaults) {
  const test::Deadline deadline;
  test::in_threads(2, deadline, [&](int, Random& random) {
    Program program;
    for (int call = 0; call < 4; ++call) {
      program.fault = random() % 2 == 0 ? Fault::kNone : static_cast<Fault>(1 + random() % 5);
      program.who = static_cast<int64_t>(random() % kCount);
      program.when = static_cast<int64_t>(random() % kSteps);
      program.sums = 0;
      for (bool& each : program.in_pairs) each = random() % 2 == 0;
      std::atomic<bool> ended{false};
      std::vector<std::thread> threads;
      for (int64_t me = 0; me < kCount; ++me) threads.emplace_back([&program, me] { program.run(me); });
      std::thread observer([&] {
        while (!ended) {
          EXPECT_EQ(program.rendezvous.standings().size(), static_cast<size_t>(kCount));
          std::this_thread::yield();
        }
      });
      for (std::thread& each : threads) each.join();
      ended = true;
      observer.join();
      EXPECT_TRUE(expected_of(program.fault).contains(program.rendezvous.failure()))
          << "fault " << static_cast<int>(program.fault) << " of " << program.who << " at " << program.when
          << " gave failure " << static_cast<int>(program.rendezvous.failure());
      if (program.fault == Fault::kNone) {
        EXPECT_EQ(program.sums.load(), kCount * kSteps);
      }
      program.rendezvous.restart();
    }
  });
}

}  // namespace
}  // namespace artifex_devices
