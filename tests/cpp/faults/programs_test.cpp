// SPDX-License-Identifier: Apache-2.0
// Collectives, and participants that meet, where memory runs short.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/collective/chain.h"
#include "artifex_devices/collective/reduce.h"
#include "artifex_devices/collective/shared_channels.h"
#include "artifex_devices/spmd/rendezvous.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

using std::chrono_literals::operator""ms;

void expect_safe(const char* name, const std::function<std::string()>& work) {
  for (const Call call : {Call::kNew, Call::kMap}) {
    const int64_t calls = fail_each(name, call, work);
    EXPECT_TRUE(calls > 0 || call != Call::kNew) << name;
  }
}

HostView view_of(std::vector<float>& values) {
  return {values.data(), DType::kFloat32, Dims{static_cast<int64_t>(values.size())}, Dims{4}, true, nullptr, nullptr};
}

std::string text_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(CollectivesUnderFaults, ReturnTheSumOrAnError) {
  WorkerPool::process().configure({{.workers = 2, .bind = {}}, {.workers = 1, .bind = {}}});
  config().parallel_copy_bytes.store(4096);
  std::vector<std::vector<float>> inputs(3, std::vector<float>(100'000, 1.25F));
  std::vector<float> out(100'000);
  expect_safe("all_reduce", [&] {
    std::ranges::fill(out, 0.F);
    std::vector<HostView> views;
    for (auto& each : inputs) views.push_back(view_of(each));
    all_reduce(Reduction::kSum, views, view_of(out));
    return text_of(out);
  });
  EXPECT_EQ(out[99'999], 3.75F);
}

/// Both ends of channels between two processes, in this one.
struct Ends {
  std::vector<std::unique_ptr<SharedChannels>> channels;
  Ends() {
    struct Files {
      std::vector<int> numbers;
      ~Files() {
        for (const int each : numbers) close(each);
      }
    } files;
    files.numbers.reserve(2);
    for (int i = 0; i < 2; ++i) files.numbers.push_back(SharedChannels::create(2));
    for (int64_t i = 0; i < 2; ++i) channels.push_back(std::make_unique<SharedChannels>(i, files.numbers));
  }
};

TEST(LanesUnderFaults, DeliverMessagesToAllProcessesOrNone) {
  expect_safe("messages", [] {
    Ends ends;
    const std::vector<int64_t> first{0}, second{1};
    std::string got;
    for (int i = 0; i < 20; ++i) ends.channels[0]->post(second, std::string(100, 'a'));  // more than there is room for
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(ends.channels[0]->wait({}, 0ms));
      EXPECT_TRUE(ends.channels[1]->wait(first, 1000ms));
      got += ends.channels[1]->take(0);
    }
    return got;
  });
}

TEST(LanesUnderFaults, CarryReductions) {
  std::vector<float> first(70'000, 1.F), second(70'000, 2.F), out(70'000), other(70'000);
  expect_safe("ReductionChain", [&] {
    Ends ends;
    ReductionChain begin(*ends.channels[0], -1, 1, Reduction::kSum, {view_of(first)}, view_of(out), {0, 0});
    ReductionChain end(*ends.channels[1], 0, -1, Reduction::kSum, {view_of(second)}, view_of(other), {0, 70'000});
    for (int turns = 0; turns < 10'000; ++turns) {
      const bool begin_done = begin.advance(0ms);
      if (end.advance(0ms) && begin_done) break;
    }
    return text_of(out) + text_of(other);
  });
}

TEST(ProgramsUnderFaults, MeetOrReportAnError) {
  expect_safe("Rendezvous", [] {
    Rendezvous rendezvous(3);
    const GroupId all = rendezvous.group({ParticipantId(0), ParticipantId(1), ParticipantId(2)});
    const GroupId two = rendezvous.group({ParticipantId(1), ParticipantId(2)});
    std::string text;
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(rendezvous.arrive(ParticipantId(0), all, 7), Rendezvous::Arrival::kWait);
      EXPECT_EQ(rendezvous.arrive(ParticipantId(1), all, 7), Rendezvous::Arrival::kWait);
      EXPECT_EQ(rendezvous.arrive(ParticipantId(2), all, 7), Rendezvous::Arrival::kComplete);
      rendezvous.delivered(ParticipantId(2));
      EXPECT_TRUE(rendezvous.wait(ParticipantId(0), 10.0));
      EXPECT_TRUE(rendezvous.wait(ParticipantId(1), 10.0));
    }
    EXPECT_EQ(rendezvous.arrive(ParticipantId(1), two, 9), Rendezvous::Arrival::kWait);
    rendezvous.finished(ParticipantId(2));
    for (const auto& each : rendezvous.standings()) text += fmt::format("{} ", static_cast<int>(each.state));
    return text + fmt::format("{}", static_cast<int>(rendezvous.failure()));
  });
}

TEST(ProgramsUnderFaults, DeliverFailuresToWaitingParticipantsWithoutMemory) {
  for (const bool late : {false, true}) {
    Rendezvous rendezvous(2);
    const GroupId all = rendezvous.group({ParticipantId(0), ParticipantId(1)});
    ASSERT_EQ(rendezvous.arrive(ParticipantId(0), all, 1), Rendezvous::Arrival::kWait);
    bool went_on = true;
    std::thread waits([&] { went_on = rendezvous.wait(ParticipantId(0), late ? std::nullopt : std::optional(100.0)); });
    {
      const Failing failing(Call::kNew, 1, true);
      rendezvous.raised(ParticipantId(1));
    }
    waits.join();
    EXPECT_FALSE(went_on);
    EXPECT_EQ(rendezvous.failure(), Rendezvous::Failure::kBody);
  }
}

TEST(ProgramsUnderFaults, ReportASlowParticipantAtTheDeadline) {
  Rendezvous rendezvous(3);
  const GroupId all = rendezvous.group({ParticipantId(0), ParticipantId(1), ParticipantId(2)});
  ASSERT_EQ(rendezvous.arrive(ParticipantId(0), all, 1), Rendezvous::Arrival::kWait);
  ASSERT_EQ(rendezvous.arrive(ParticipantId(2), all, 1), Rendezvous::Arrival::kWait);
  EXPECT_FALSE(rendezvous.wait(ParticipantId(0), 0.05));  // 1 does something else for ever
  EXPECT_EQ(rendezvous.failure(), Rendezvous::Failure::kDeadline);
  using State = Rendezvous::State;
  EXPECT_EQ(rendezvous.standings()[ParticipantId(0)].state, State::kWaiting);
  EXPECT_EQ(rendezvous.standings()[ParticipantId(1)].state, State::kRunning);
  EXPECT_EQ(rendezvous.standings()[ParticipantId(1)].collectives, 0);
  EXPECT_EQ(rendezvous.standings()[ParticipantId(2)].state, State::kWaiting);
  EXPECT_FALSE(rendezvous.wait(ParticipantId(2), std::nullopt));
}

}  // namespace
}  // namespace artifex_devices::faults
