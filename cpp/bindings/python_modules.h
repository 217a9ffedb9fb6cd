// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of the Python modules of this package that the bindings import or name. To move a module, change one line
/// here.
namespace artifex_devices::bindings::python_modules {

inline constexpr const char* kPackage = "artifex_devices";
inline constexpr const char* kCore = "artifex_devices._core";
inline constexpr const char* kErrors = "artifex_devices.errors";  // the module that exception classes belong to
inline constexpr const char* kAllocatorConfig = "artifex_devices._runtime.client";
inline constexpr const char* kArgumentHints = "artifex_devices._base.argument_hints";
inline constexpr const char* kArrayText = "artifex_devices._array.repr";
inline constexpr const char* kClientProfile = "artifex_devices._runtime.client_members";
inline constexpr const char* kCluster = "artifex_devices.cluster";
inline constexpr const char* kConfig = "artifex_devices.config";
inline constexpr const char* kDescription = "artifex_devices._array.describe";
inline constexpr const char* kExchange = "artifex_devices.distributed.exchange";
inline constexpr const char* kFailureNotice = "artifex_devices.distributed.failure_notice";
inline constexpr const char* kHostBuffer = "artifex_devices._runtime.client_members";
inline constexpr const char* kHostCopy = "artifex_devices._placement.async_copy";
inline constexpr const char* kHtml = "artifex_devices._array.html";
inline constexpr const char* kJaxValues = "artifex_devices._placement.jax_values";
inline constexpr const char* kLayout = "artifex_devices.layout";
inline constexpr const char* kScopes = "artifex_devices._runtime.scopes";
inline constexpr const char* kTargets = "artifex_devices._placement.target";
inline constexpr const char* kUnpickle = "artifex_devices.unpickle";  // the module that pickles name

}  // namespace artifex_devices::bindings::python_modules
