// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/id.h"

namespace artifex_devices {

/// A joint operation of several processes.
struct JointOperation {
  ClientRef client;
  std::string text;                     // for messages: "device_put of float32(8, 4) from ... to ..."
  std::vector<ProcessIndex> processes;  // that take part, ascending
};

/// The messages of one operation. Messages between two processes arrive in the order in which they were begun. They are
/// numbered from 0 in that order. The caller keeps their memory alive until they are done.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Waits until all processes have reached the operation with an equal `identity`. Until finish() or give_up(), this
  /// process starts no other operation. One of the two must follow, even if begin() throws.
  virtual void begin(const std::string& identity) = 0;
  virtual void send(BufferRef memory, int64_t bytes, ProcessIndex peer) = 0;
  virtual void receive(BufferRef memory, int64_t bytes, ProcessIndex peer) = 0;
  /// Waits until at least one message is done. Returns the numbers of all messages that are done.
  virtual std::vector<int64_t> wait_some() = 0;
  /// Called when all messages are done.
  virtual void finish() = 0;
  /// Abandons the unfinished messages. Called in the handler of the error that is the reason.
  virtual void give_up(const std::exception& error) = 0;
};

/// Sends bytes between the processes of a job. All processes must call it for the same operations in the same order.
/// The bindings implement it by `artifex_devices.distributed`. Its functions may be called with or without the GIL.
/// They throw if a process has ended, reaches another operation, or does not arrive in time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Waits as Exchange::begin; returns the payload, of at most 64 bytes, of each process of the operation.
  virtual std::vector<std::string> agree(const JointOperation& operation, const std::string& identity,
                                         const std::string& payload) = 0;
  /// Reports to waiting processes that this process will not take part. Called in the handler of the error that is the
  /// reason. Never waits.
  virtual void refuse(const JointOperation& operation, const std::exception& error) = 0;
  /// Throws Unavailable where the client has no connection to other processes.
  virtual std::unique_ptr<Exchange> exchange(const JointOperation& operation) = 0;
  /// Memory for packed messages; two messages of a process may exceed it.
  virtual int64_t buffer_bytes() const = 0;
  /// Whether values that all processes must have are compared.
  virtual bool compares_values() const = 0;
};

}  // namespace artifex_devices
