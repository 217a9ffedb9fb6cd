// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's C interface that this library calls, declared here from its public description: "CUDA
/// Driver API Reference", docs.nvidia.com/cuda/cuda-driver-api. The tests' stand-in is compiled against the same
/// declarations. Each exported name has one signature in all versions of the driver.
namespace artifex_devices::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4;
inline constexpr Result kStubLibrary = 34, kNoDevice = 100, kInvalidContext = 201, kOperatingSystem = 304;
inline constexpr Result kNotReady = 600, kIllegalAddress = 700, kPeerAccessAlreadyEnabled = 704, kNotPermitted = 800;
inline constexpr Result kSystemNotReady = 802, kSystemDriverMismatch = 803, kCompatNotSupported = 804, kUnknown = 999;

using DeviceHandle = int;  // CUdevice
using Address = uint64_t;  // CUdeviceptr
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;

// CUdevice_attribute
inline constexpr int kMaxPitch = 11, kComputeMajor = 75, kComputeMinor = 76, kMemoryPoolsSupported = 115;
// CUpointer_attribute, and values of the first
inline constexpr int kMemoryType = 2, kDeviceOrdinal = 9;
inline constexpr unsigned kHostMemory = 1, kDeviceMemory = 2, kUnifiedMemory = 4;
// Flags: of streams, events and memory of the host
inline constexpr unsigned kNonBlockingStream = 1, kBlockingSync = 1, kDisableTiming = 2, kPortable = 1;

struct Copy2d {  // CUDA_MEMCPY2D
  size_t from_x, from_y;
  unsigned from_type;
  const void* from_host;
  Address from_device;
  void* from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  unsigned to_type;
  void* to_host;
  Address to_device;
  void* to_array;
  size_t to_pitch;
  size_t width, height;
};
static_assert(sizeof(Copy2d) == 128);

struct Copy3dPeer {  // CUDA_MEMCPY3D_PEER
  size_t from_x, from_y, from_z, from_lod;
  unsigned from_type;
  const void* from_host;
  Address from_device;
  void* from_array;
  Context from_context;
  size_t from_pitch, from_height;
  size_t to_x, to_y, to_z, to_lod;
  unsigned to_type;
  void* to_host;
  Address to_device;
  void* to_array;
  Context to_context;
  size_t to_pitch, to_height;
  size_t width, height, depth;
};
static_assert(sizeof(Copy3dPeer) == 200);

/// The functions by their exported names: CUDA_FUNCTION(member, exported name, parameters).
#define ARTIFEX_CUDA_FUNCTIONS(CUDA_FUNCTION)                                                                      \
  CUDA_FUNCTION(init, cuInit, (unsigned flags))                                                                    \
  CUDA_FUNCTION(driver_version, cuDriverGetVersion, (int* version))                                                \
  CUDA_FUNCTION(error_name, cuGetErrorName, (Result error, const char** name))                                     \
  CUDA_FUNCTION(error_string, cuGetErrorString, (Result error, const char** text))                                 \
  CUDA_FUNCTION(device_count, cuDeviceGetCount, (int* count))                                                      \
  CUDA_FUNCTION(device, cuDeviceGet, (DeviceHandle * device, int ordinal))                                         \
  CUDA_FUNCTION(device_name, cuDeviceGetName, (char* name, int length, DeviceHandle device))                       \
  CUDA_FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t* bytes, DeviceHandle device))                          \
  CUDA_FUNCTION(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, DeviceHandle device))          \
  CUDA_FUNCTION(device_pci_address, cuDeviceGetPCIBusId, (char* text, int length, DeviceHandle device))            \
  CUDA_FUNCTION(can_access_peer, cuDeviceCanAccessPeer, (int* can, DeviceHandle device, DeviceHandle peer))        \
  CUDA_FUNCTION(retain_context, cuDevicePrimaryCtxRetain, (Context * context, DeviceHandle device))                \
  CUDA_FUNCTION(push_context, cuCtxPushCurrent_v2, (Context context))                                              \
  CUDA_FUNCTION(pop_context, cuCtxPopCurrent_v2, (Context * context))                                              \
  CUDA_FUNCTION(synchronize_context, cuCtxSynchronize, ())                                                         \
  CUDA_FUNCTION(enable_peer, cuCtxEnablePeerAccess, (Context peer, unsigned flags))                                \
  CUDA_FUNCTION(allocate, cuMemAlloc_v2, (Address * address, size_t bytes))                                        \
  CUDA_FUNCTION(free, cuMemFree_v2, (Address address))                                                             \
  CUDA_FUNCTION(allocate_async, cuMemAllocAsync, (Address * address, size_t bytes, Stream stream))                 \
  CUDA_FUNCTION(free_async, cuMemFreeAsync, (Address address, Stream stream))                                      \
  CUDA_FUNCTION(allocate_host, cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                     \
  CUDA_FUNCTION(free_host, cuMemFreeHost, (void* address))                                                         \
  CUDA_FUNCTION(pointer_attributes, cuPointerGetAttributes,                                                        \
                (unsigned count, int* attributes, void** values, Address address))                                 \
  CUDA_FUNCTION(copy, cuMemcpyAsync, (Address to, Address from, size_t bytes, Stream stream))                      \
  CUDA_FUNCTION(copy_2d, cuMemcpy2DAsync_v2, (const Copy2d* copy, Stream stream))                                  \
  CUDA_FUNCTION(copy_peer, cuMemcpyPeerAsync,                                                                      \
                (Address to, Context to_context, Address from, Context from_context, size_t bytes, Stream stream)) \
  CUDA_FUNCTION(copy_3d_peer, cuMemcpy3DPeerAsync, (const Copy3dPeer* copy, Stream stream))                        \
  CUDA_FUNCTION(create_stream, cuStreamCreate, (Stream * stream, unsigned flags))                                  \
  CUDA_FUNCTION(synchronize_stream, cuStreamSynchronize, (Stream stream))                                          \
  CUDA_FUNCTION(wait_in_stream, cuStreamWaitEvent, (Stream stream, EventHandle event, unsigned flags))             \
  CUDA_FUNCTION(create_event, cuEventCreate, (EventHandle * event, unsigned flags))                                \
  CUDA_FUNCTION(record_event, cuEventRecord, (EventHandle event, Stream stream))                                   \
  CUDA_FUNCTION(query_event, cuEventQuery, (EventHandle event))                                                    \
  CUDA_FUNCTION(synchronize_event, cuEventSynchronize, (EventHandle event))                                        \
  CUDA_FUNCTION(load_module, cuModuleLoadData, (Module * module, const void* image))                               \
  CUDA_FUNCTION(find_function, cuModuleGetFunction, (Function * function, Module module, const char* name))        \
  CUDA_FUNCTION(                                                                                                   \
      launch, cuLaunchKernel,                                                                                      \
      (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,   \
       unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra))

}  // namespace artifex_devices::cuda
