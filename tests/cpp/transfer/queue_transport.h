// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/transport.h"

namespace artifex_devices::test {

/// What the transports of the processes of one job, which threads play, share.
struct Wires {
  struct Visit {
    std::string identity;  // "" of one that refuses
    std::string payload;   // or why it refuses
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<ProcessIndex, ProcessIndex>, std::deque<std::vector<std::byte>>>
      messages;                                                               // by sender and receiver
  std::map<std::pair<ProcessIndex, ProcessIndex>, std::deque<Visit>> visits;  // by the process that came and another
};

/// Brings messages one after the other.
class QueueExchange : public Exchange {
 public:
  QueueExchange(Wires& wires, JointOperation operation, int64_t* most_bytes, int* given_up);

  void begin(const std::string& identity) override;
  void send(BufferRef memory, int64_t bytes, ProcessIndex peer) override {
    const std::byte* data = memory.host_data();
    {
      const std::lock_guard lock(wires_.mutex);
      wires_.messages[{own_, peer}].emplace_back(data, data + bytes);
    }
    wires_.changed.notify_all();
    add({true, peer, std::move(memory), bytes});
  }
  void receive(BufferRef memory, int64_t bytes, ProcessIndex peer) override {
    add({false, peer, std::move(memory), bytes});
  }
  std::vector<int64_t> wait_some() override {
    std::unique_lock lock(wires_.mutex);
    std::vector<int64_t> done;
    wires_.changed.wait(lock, [&] {
      for (auto& [number, message] : in_flight_) {
        auto& arrived = wires_.messages[{message.peer, own_}];
        if (!message.is_send && arrived.empty()) continue;
        if (!message.is_send) {
          if (static_cast<int64_t>(arrived.front().size()) != message.bytes) throw Error("a message has another size");
          std::memcpy(message.memory.host_data(), arrived.front().data(), arrived.front().size());
          arrived.pop_front();
        }
        done.push_back(number);
        break;
      }
      return !done.empty();
    });
    if (!in_flight_[done[0]].is_send) bytes_ -= in_flight_[done[0]].bytes;
    in_flight_.erase(done[0]);
    return done;
  }
  void finish() override { *given_up_ -= static_cast<int>(in_flight_.size()); }  // there are none
  void give_up(const std::exception&) override { ++*given_up_; }

 private:
  struct Message {
    bool is_send = false;
    ProcessIndex peer = {};
    BufferRef memory;
    int64_t bytes = 0;
  };
  void add(Message message) {
    if (!message.is_send) bytes_ += message.bytes;
    *most_bytes_ = std::max(*most_bytes_, bytes_);
    in_flight_.emplace(begun_++, std::move(message));
  }

  Wires& wires_;
  JointOperation operation_;
  ProcessIndex own_;
  int64_t* most_bytes_;
  int* given_up_;
  int64_t bytes_ = 0;
  int64_t begun_ = 0;
  std::map<int64_t, Message> in_flight_;
};

/// The transport of one process.
class QueueTransport : public Transport {
 public:
  explicit QueueTransport(Wires& wires) : wires_(wires) {}

  static std::vector<std::string> meet(Wires& wires, const JointOperation& operation, const std::string& identity,
                                       const std::string& payload) {
    const ProcessIndex own = operation.client->process_index();
    std::unique_lock lock(wires.mutex);
    for (const ProcessIndex each : operation.processes) wires.visits[{own, each}].push_back({identity, payload});
    wires.changed.notify_all();
    std::vector<std::string> payloads;
    std::string differ;
    for (const ProcessIndex each : operation.processes) {
      auto& visits = wires.visits[{each, own}];
      wires.changed.wait(lock, [&] { return !visits.empty(); });
      if (visits.front().identity != identity) differ += visits.front().payload + ";";
      payloads.push_back(visits.front().payload);
      visits.pop_front();
    }
    if (!differ.empty()) throw Unavailable("the processes do not do the same: " + differ);
    return payloads;
  }

  std::vector<std::string> agree(const JointOperation& operation, const std::string& identity,
                                 const std::string& payload) override {
    agreed.push_back(operation.text);
    return meet(wires_, operation, identity, payload);
  }
  void refuse(const JointOperation& operation, const std::exception& error) override {
    const ProcessIndex own = operation.client->process_index();
    const std::lock_guard lock(wires_.mutex);
    for (const ProcessIndex each : operation.processes) {
      if (each != own) wires_.visits[{own, each}].push_back({"", error.what()});
    }
    wires_.changed.notify_all();
  }
  std::unique_ptr<Exchange> exchange(const JointOperation& operation) override {
    exchanged.push_back(operation.text);
    return std::make_unique<QueueExchange>(wires_, operation, &most_bytes, &given_up);
  }
  int64_t buffer_bytes() const override { return budget; }
  bool compares_values() const override { return compares; }

  int64_t budget = int64_t{64} << 20;
  bool compares = true;
  std::vector<std::string> agreed;     // texts of operations
  std::vector<std::string> exchanged;  // likewise
  int64_t most_bytes = 0;              // that are received at a time
  int given_up = 0;                    // exchanges

 private:
  Wires& wires_;
};

inline QueueExchange::QueueExchange(Wires& wires, JointOperation operation, int64_t* most_bytes, int* given_up)
    : wires_(wires),
      operation_(std::move(operation)),
      own_(operation_.client->process_index()),
      most_bytes_(most_bytes),
      given_up_(given_up) {}

inline void QueueExchange::begin(const std::string& identity) {
  QueueTransport::meet(wires_, operation_, identity, operation_.text);
}

}  // namespace artifex_devices::test
