// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace artifex_devices {

/// The errors of the core. A message reads `operation: what is wrong with which argument; expected X, got Y; how to
/// fix it`. `bindings/errors.cpp` is the only place that turns them into Python exceptions, named after each class.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InvalidArgument : public Error {  // ValueError
 public:
  using Error::Error;
};

/// A dimension that its mesh axes do not divide.
class IndivisibleError : public InvalidArgument {  // IndivisibleError(ValueError)
 public:
  using InvalidArgument::InvalidArgument;
};

/// A mesh axis named twice in one PartitionSpec.
class DuplicateSpecError : public InvalidArgument {  // DuplicateSpecError(ValueError)
 public:
  using InvalidArgument::InvalidArgument;
};

/// Explicit mesh axes on which operands disagree, or a sharding that an operation does not allow.
class ShardingTypeError : public InvalidArgument {  // ShardingTypeError(ValueError)
 public:
  using InvalidArgument::InvalidArgument;
};

class TypeMismatch : public Error {  // TypeError
 public:
  using Error::Error;
};

class IndexOutOfRange : public Error {  // IndexError
 public:
  using Error::Error;
};

class FileNotFound : public Error {  // FileNotFoundError
 public:
  using Error::Error;
};

/// Something is not available: a backend, memory of a compile-only device, a pool lost by fork.
class Unavailable : public Error {  // RuntimeError
 public:
  using Error::Error;
};

/// The data is in another process.
class NotAddressable : public Unavailable {  // RuntimeError
 public:
  using Unavailable::Unavailable;
};

/// The value of an Array was read after delete() or donation.
class DeletedArray : public Unavailable {  // RuntimeError
 public:
  using Unavailable::Unavailable;
};

class OutOfMemory : public Error {  // ResourceExhaustedError(MemoryError, RuntimeError)
 public:
  using Error::Error;
};

/// A transfer is disallowed by the transfer guards of the calling context.
class TransferGuardError : public Error {  // TransferGuardError(JaxRuntimeError)
 public:
  using Error::Error;
};

/// A request that no algorithm here can fulfil.
class NotImplemented : public Error {  // NotImplementedError
 public:
  using Error::Error;
};

/// Input for which JAX raises AssertionError.
class AssertionFailed : public Error {  // AssertionError
 public:
  using Error::Error;
};

/// A wait or copy was stopped by the interrupt hook (base/interrupt.h).
class Interrupted : public Error {  // KeyboardInterrupt, already set by the hook
 public:
  using Error::Error;
};

}  // namespace artifex_devices
