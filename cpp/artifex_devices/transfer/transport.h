// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/array/storage.h"

namespace artifex_devices {

/// An operation that several processes make together.
struct JointOperation {
  ClientRef client;
  std::string text;            // for messages: "device_put of float32(8, 4) from ... to ..."
  std::vector<int> processes;  // that take part, ascending
};

/// The messages of one operation. Messages between two processes arrive in the order in which they were begun. They are
/// numbered from 0 as they are begun; their memory stays alive until they are done.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Waits until all processes of the operation come to it with an equal `identity`. No other operation of this process
  /// comes in between until finish() or give_up(), one of which must follow, also where this throws.
  virtual void begin(const std::string& identity) = 0;
  virtual void send(BufferRef memory, int64_t bytes, int peer) = 0;
  virtual void receive(BufferRef memory, int64_t bytes, int peer) = 0;
  /// Waits until at least one message is done; returns the numbers of all that are.
  virtual std::vector<int64_t> wait_some() = 0;
  /// All messages are done.
  virtual void finish() = 0;
  /// Gives up the messages that are not done, because of an error, in whose handler it is called.
  virtual void give_up(const std::exception& error) = 0;
};

/// Carries bytes between the processes of a job, all of which call it for the same operations in the same order. The
/// bindings implement it by `artifex_devices.distributed`. Its functions are called without the lock of an interpreter
/// or with it; they throw where a process has ended, comes to another operation, or does not come in time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Waits as Exchange::begin; returns the payload, of at most 64 bytes, of each process of the operation.
  virtual std::vector<std::string> agree(const JointOperation& operation, const std::string& identity,
                                         const std::string& payload) = 0;
  /// Reports to the processes that wait for this one that it does not come, because of an error, in whose handler it is
  /// called. Never waits.
  virtual void refuse(const JointOperation& operation, const std::exception& error) = 0;
  /// Throws Unavailable where the client has no connection to other processes.
  virtual std::unique_ptr<Exchange> exchange(const JointOperation& operation) = 0;
  /// Memory for packed messages; two messages of a process may exceed it.
  virtual int64_t buffer_bytes() const = 0;
  /// Whether values that all processes must have are compared.
  virtual bool compares_values() const = 0;
};

}  // namespace artifex_devices
