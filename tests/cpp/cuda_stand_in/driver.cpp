// SPDX-License-Identifier: Apache-2.0
// The entry points of the stand-in (settings.h). They are compiled against the declarations of the library, and a
// static_assert compares each with its declaration.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "artifex_devices/device/cuda/driver_abi.h"
#include "artifex_devices/device/cuda/strided_kernel.h"
#include "memory.h"
#include "settings.h"
#include "streams.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace cuda = artifex_devices::cuda;
using namespace cuda_stand_in;
using cuda::Address;
using cuda::Context;
using cuda::DeviceHandle;
using cuda::EventHandle;
using cuda::Function;
using cuda::Module;
using cuda::Result;
using cuda::Stream;

namespace {

constexpr Result kInvalidHandle = 400, kInvalidDevice = 101, kNotFound = 500;
constexpr int kPitch = 2147483647;

struct State {
  std::mutex mutex;
  Memory memory;
  Streams streams;
  pid_t process = 0;  // that called cuInit
};
State& state() {
  static auto* all = new State;  // never destroyed: the library releases memory at exit
  return *all;
}

thread_local std::vector<int> t_contexts;  // GPUs, the current one last

Context context_of(int gpu) { return reinterpret_cast<Context>(static_cast<uintptr_t>(gpu) + 1); }
int gpu_of(Context context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1; }

/// A call under the lock: checks that the driver is usable, and returns the error that was asked for.
class Call {
 public:
  Call(const char* function, bool needs_context) : lock_(state().mutex), function_(function) {
    if (state().process == 0) {
      error_ = cuda::kNotInitialized;
    } else if (state().process != getpid()) {
      problem(std::string(function) + " is called in a forked child");
      error_ = cuda::kNotInitialized;
    } else {
      error_ = injected_error(function);
      if (error_ == 0 && needs_context && t_contexts.empty()) error_ = cuda::kInvalidContext;
    }
  }
  Result error() const { return error_; }
  const char* function() const { return function_; }

 private:
  std::lock_guard<std::mutex> lock_;
  const char* function_;
  Result error_ = cuda::kSuccess;
};

#define CALL(needs_context)                 \
  const Call call(__func__, needs_context); \
  if (call.error() != 0) return call.error()

StandInStream* stream_of(Stream stream) { return reinterpret_cast<StandInStream*>(stream); }
StandInEvent* event_of(EventHandle event) { return reinterpret_cast<StandInEvent*>(event); }
bool is_current(const StandInStream& stream) { return !t_contexts.empty() && t_contexts.back() == stream.gpu; }

/// Bytes that are dense on both sides.
struct Run {
  Address to;
  Address from;
  size_t bytes;
};

/// Checks all runs, and adds their copy to the stream.
Result copy_runs(const Call& call, const std::vector<Run>& runs, StandInStream& stream, const Clock& clock) {
  std::vector<std::tuple<char*, const char*, size_t>> found;
  for (const Run& run : runs) {
    const auto bytes = static_cast<int64_t>(run.bytes);
    Memory& memory = state().memory;
    if (!memory.access(run.from, bytes, false, stream.number, clock, call.function())) return cuda::kInvalidValue;
    if (!memory.access(run.to, bytes, true, stream.number, clock, call.function())) return cuda::kInvalidValue;
    const Allocation& into = *memory.find(run.to);
    const Allocation& out_of = *memory.find(run.from);
    found.emplace_back(into.data + (run.to - into.address), out_of.data + (run.from - out_of.address), run.bytes);
  }
  state().streams.add(stream, {[found = std::move(found)] {
                                 for (const auto& [target, source, bytes] : found) std::memcpy(target, source, bytes);
                               },
                               nullptr, nullptr});
  return cuda::kSuccess;
}

/// What a kernel for elements of these bytes copies; false for copies that it would not make as they are.
bool add_runs(const cuda::KernelCopy& copy, int64_t element, std::vector<Run>* runs) {
  if (copy.dims == 0 || copy.dims > cuda::kKernelDims) return false;
  uint64_t all = copy.to | copy.from;
  uint64_t count = 1;
  for (unsigned d = 0; d < copy.dims; ++d) {
    all |= static_cast<uint64_t>(copy.to_strides[d]) | static_cast<uint64_t>(copy.from_strides[d]);
    count *= copy.shape[d];
  }
  if (count != copy.count || all % static_cast<uint64_t>(element) != 0) return false;  // a misaligned address
  const unsigned last = copy.dims - 1;
  const bool is_dense = copy.to_strides[last] == element && copy.from_strides[last] == element;
  const uint64_t each = is_dense ? copy.shape[last] : 1;
  for (uint64_t i = 0; i < count; i += each) {
    uint64_t rest = i;
    int64_t to = 0;
    int64_t from = 0;
    for (int d = static_cast<int>(last); d >= 0; --d) {
      const auto index = static_cast<int64_t>(rest % copy.shape[d]);
      rest /= copy.shape[d];
      to += index * copy.to_strides[d];
      from += index * copy.from_strides[d];
    }
    runs->push_back({copy.to + static_cast<Address>(to), copy.from + static_cast<Address>(from),
                     each * static_cast<size_t>(element)});
  }
  return true;
}

/// One end of a copy of rows.
struct Rows {
  Address begin;
  size_t pitch;
};

Result copy_rows(const Call& call, Rows to, Rows from, size_t width, size_t height, Stream handle) {
  if (handle == nullptr || !is_current(*stream_of(handle))) return kInvalidHandle;
  StandInStream& stream = *stream_of(handle);
  if (height > 1 && (to.pitch < width || from.pitch < width || to.pitch > kPitch || from.pitch > kPitch)) {
    return cuda::kInvalidValue;
  }
  std::vector<Run> runs;
  for (size_t row = 0; row < height; ++row) {
    runs.push_back({to.begin + row * to.pitch, from.begin + row * from.pitch, width});
  }
  return copy_runs(call, runs, stream, state().streams.tick(stream));
}

Result allocate(Address* address, size_t bytes, int gpu, bool is_host, bool is_pooled) {
  if (bytes == 0) return cuda::kInvalidValue;
  *address = state().memory.allocate(static_cast<int64_t>(bytes), gpu, is_host, is_pooled);
  return *address == 0 ? cuda::kOutOfMemory : cuda::kSuccess;
}

Result free_memory(const Call& call, Address address, bool is_host, bool is_pooled, const Clock& clock) {
  const Allocation* allocation = state().memory.find(address);
  if (allocation == nullptr || allocation->address != address || allocation->is_host != is_host ||
      allocation->is_pooled != is_pooled) {
    problem(std::string(call.function()) + " is called for memory that was not allocated so");
    return cuda::kInvalidValue;
  }
  if (!Memory::is_idle(*allocation, clock)) {
    problem(std::string(call.function()) + " is called for memory that a stream still uses: a wait is missing");
  }
  state().memory.free(address);
  return cuda::kSuccess;
}

Result copy_text(const std::string& text, char* buffer, int length) {
  if (length <= 0) return cuda::kInvalidValue;
  std::snprintf(buffer, static_cast<size_t>(length), "%s", text.c_str());
  return cuda::kSuccess;
}

}  // namespace

// --- of the stand-in itself

ENTRY void cuda_stand_in_configure(const char* text) {
  const std::lock_guard lock(state().mutex);
  read_settings(text);
  state().streams.seed(settings().seed);
}

ENTRY int cuda_stand_in_problems(char* buffer, int length) {
  const std::lock_guard lock(state().mutex);
  const std::string problems = taken_problems();
  std::snprintf(buffer, static_cast<size_t>(length), "%s", problems.c_str());
  return static_cast<int>(problems.size());
}

// --- the driver, its errors and devices

ENTRY Result cuInit(unsigned flags) {
  const std::lock_guard lock(state().mutex);
  if (state().process == 0) {
    read_settings(std::getenv("CUDA_STAND_IN"));
    state().streams.seed(settings().seed);
  }
  if (const int error = injected_error(__func__)) return error;
  if (flags != 0) return cuda::kInvalidValue;
  if (settings().gpus == 0) return cuda::kNoDevice;
  state().process = getpid();
  return cuda::kSuccess;
}

ENTRY Result cuGetErrorName(Result error, const char** name) {
  switch (error) {
    case cuda::kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case cuda::kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case cuda::kStubLibrary:
      *name = "CUDA_ERROR_STUB_LIBRARY";
      break;
    case cuda::kNoDevice:
      *name = "CUDA_ERROR_NO_DEVICE";
      break;
    case cuda::kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case cuda::kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case cuda::kOperatingSystem:
      *name = "CUDA_ERROR_OPERATING_SYSTEM";
      break;
    case cuda::kSystemNotReady:
      *name = "CUDA_ERROR_SYSTEM_NOT_READY";
      break;
    case cuda::kSystemDriverMismatch:
      *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
      break;
    case cuda::kUnknown:
      *name = "CUDA_ERROR_UNKNOWN";
      break;
    default:
      *name = nullptr;
      return cuda::kInvalidValue;
  }
  return cuda::kSuccess;
}

ENTRY Result cuGetErrorString(Result, const char** text) {
  *text = "an error of the stand-in";
  return cuda::kSuccess;
}

ENTRY Result cuDriverGetVersion(int* version) {
  CALL(false);
  *version = settings().version;
  return cuda::kSuccess;
}

ENTRY Result cuDeviceGetCount(int* count) {
  CALL(false);
  *count = settings().gpus;
  return cuda::kSuccess;
}

ENTRY Result cuDeviceGet(DeviceHandle* device, int ordinal) {
  CALL(false);
  if (ordinal < 0 || ordinal >= settings().gpus) return kInvalidDevice;
  *device = ordinal;
  return cuda::kSuccess;
}

ENTRY Result cuDeviceGetName(char* name, int length, DeviceHandle) {
  CALL(false);
  return copy_text(settings().name, name, length);
}

ENTRY Result cuDeviceTotalMem_v2(size_t* bytes, DeviceHandle) {
  CALL(false);
  *bytes = static_cast<size_t>(settings().memory);
  return cuda::kSuccess;
}

ENTRY Result cuDeviceGetAttribute(int* value, int attribute, DeviceHandle) {
  CALL(false);
  switch (attribute) {
    case cuda::kMaxPitch:
      *value = kPitch;
      break;
    case cuda::kComputeMajor:
      *value = 9;
      break;
    case cuda::kComputeMinor:
      *value = 0;
      break;
    case cuda::kMemoryPoolsSupported:
      *value = settings().pools ? 1 : 0;
      break;
    default:
      return cuda::kInvalidValue;
  }
  return cuda::kSuccess;
}

ENTRY Result cuDeviceGetPCIBusId(char* text, int length, DeviceHandle device) {
  CALL(false);
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "0000:%02X:00.0", 0x30 + device);
  return copy_text(address.data(), text, length);
}

ENTRY Result cuDeviceCanAccessPeer(int* can, DeviceHandle, DeviceHandle) {
  CALL(false);
  *can = settings().peers ? 1 : 0;
  return cuda::kSuccess;
}

// --- contexts

ENTRY Result cuDevicePrimaryCtxRetain(Context* context, DeviceHandle device) {
  CALL(false);
  *context = context_of(device);
  return cuda::kSuccess;
}

ENTRY Result cuCtxPushCurrent_v2(Context context) {
  CALL(false);
  t_contexts.push_back(gpu_of(context));
  return cuda::kSuccess;
}

ENTRY Result cuCtxPopCurrent_v2(Context* context) {
  CALL(true);
  *context = context_of(t_contexts.back());
  t_contexts.pop_back();
  return cuda::kSuccess;
}

ENTRY Result cuCtxSynchronize() {
  sleep_if_slow(__func__);
  CALL(true);
  state().streams.synchronize_gpu(t_contexts.back(), state().memory);
  return cuda::kSuccess;
}

ENTRY Result cuCtxEnablePeerAccess(Context, unsigned) {
  CALL(true);
  return settings().peers ? cuda::kSuccess : cuda::kInvalidValue;
}

// --- memory

ENTRY Result cuMemAlloc_v2(Address* address, size_t bytes) {
  CALL(true);
  return allocate(address, bytes, t_contexts.back(), false, false);
}

ENTRY Result cuMemFree_v2(Address address) {
  CALL(true);
  return free_memory(call, address, false, false, state().streams.host());
}

ENTRY Result cuMemAllocAsync(Address* address, size_t bytes, Stream handle) {
  CALL(true);
  if (!settings().pools || !is_current(*stream_of(handle))) return kInvalidHandle;
  const Result error = allocate(address, bytes, t_contexts.back(), false, true);
  if (error != cuda::kSuccess) return error;
  // Other streams must wait for the allocation.
  StandInStream& stream = *stream_of(handle);
  state().memory.access(*address, static_cast<int64_t>(bytes), true, stream.number, state().streams.tick(stream),
                        call.function());
  return cuda::kSuccess;
}

ENTRY Result cuMemFreeAsync(Address address, Stream handle) {
  CALL(true);
  if (!is_current(*stream_of(handle))) return kInvalidHandle;
  return free_memory(call, address, false, true, state().streams.tick(*stream_of(handle)));
}

ENTRY Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  CALL(true);
  Address address = 0;
  const Result error = allocate(&address, bytes, t_contexts.back(), true, false);
  *pointer = reinterpret_cast<void*>(address);
  return error;
}

ENTRY Result cuMemFreeHost(void* pointer) {
  CALL(true);
  return free_memory(call, reinterpret_cast<Address>(pointer), true, false, state().streams.host());
}

ENTRY Result cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address address) {
  CALL(false);
  const Allocation* allocation = state().memory.find(address);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case cuda::kMemoryType:
        *static_cast<unsigned*>(values[i]) =
            allocation == nullptr ? 0 : (allocation->is_host ? cuda::kHostMemory : cuda::kDeviceMemory);
        break;
      case cuda::kDeviceOrdinal:
        *static_cast<int*>(values[i]) = allocation == nullptr ? -2 : allocation->gpu;
        break;
      default:
        return cuda::kInvalidValue;
    }
  }
  return cuda::kSuccess;
}

// --- copies

ENTRY Result cuMemcpyAsync(Address to, Address from, size_t bytes, Stream stream) {
  CALL(true);
  return copy_rows(call, {to, 0}, {from, 0}, bytes, 1, stream);
}

ENTRY Result cuMemcpy2DAsync_v2(const cuda::Copy2d* copy, Stream stream) {
  CALL(true);
  if (copy->from_type != cuda::kUnifiedMemory || copy->to_type != cuda::kUnifiedMemory ||
      copy->from_x + copy->from_y + copy->to_x + copy->to_y != 0) {
    return cuda::kInvalidValue;
  }
  return copy_rows(call, {copy->to_device, copy->to_pitch}, {copy->from_device, copy->from_pitch}, copy->width,
                   copy->height, stream);
}

ENTRY Result cuMemcpyPeerAsync(Address to, Context to_context, Address from, Context from_context, size_t bytes,
                               Stream stream) {
  CALL(true);
  const Allocation* into = state().memory.find(to);
  const Allocation* out_of = state().memory.find(from);
  if (into == nullptr || out_of == nullptr || into->gpu != gpu_of(to_context) || out_of->gpu != gpu_of(from_context)) {
    return cuda::kInvalidValue;
  }
  return copy_rows(call, {to, 0}, {from, 0}, bytes, 1, stream);
}

ENTRY Result cuMemcpy3DPeerAsync(const cuda::Copy3dPeer* copy, Stream stream) {
  CALL(true);
  const Allocation* into = state().memory.find(copy->to_device);
  const Allocation* out_of = state().memory.find(copy->from_device);
  if (copy->from_type != cuda::kDeviceMemory || copy->to_type != cuda::kDeviceMemory || copy->depth != 1 ||
      into == nullptr || out_of == nullptr || into->gpu != gpu_of(copy->to_context) ||
      out_of->gpu != gpu_of(copy->from_context)) {
    return cuda::kInvalidValue;
  }
  return copy_rows(call, {copy->to_device, copy->to_pitch}, {copy->from_device, copy->from_pitch}, copy->width,
                   copy->height, stream);
}

// --- streams and events

ENTRY Result cuStreamCreate(Stream* stream, unsigned) {
  CALL(true);
  *stream = reinterpret_cast<Stream>(state().streams.create(t_contexts.back()));
  return cuda::kSuccess;
}

ENTRY Result cuStreamSynchronize(Stream stream) {
  CALL(true);
  state().streams.synchronize(*stream_of(stream), state().memory);
  return cuda::kSuccess;
}

ENTRY Result cuStreamWaitEvent(Stream stream, EventHandle event, unsigned) {
  CALL(true);
  state().streams.wait(*stream_of(stream), *event_of(event));
  return cuda::kSuccess;
}

ENTRY Result cuEventCreate(EventHandle* event, unsigned) {
  CALL(true);
  *event = reinterpret_cast<EventHandle>(new StandInEvent);
  return cuda::kSuccess;
}

ENTRY Result cuEventRecord(EventHandle event, Stream stream) {
  CALL(true);
  if (!is_current(*stream_of(stream))) return kInvalidHandle;
  state().streams.record(*event_of(event), *stream_of(stream));
  return cuda::kSuccess;
}

ENTRY Result cuEventSynchronize(EventHandle event) {
  CALL(true);
  state().streams.synchronize(*event_of(event), state().memory);
  return cuda::kSuccess;
}

ENTRY Result cuEventQuery(EventHandle event) {
  CALL(true);
  return state().streams.query(*event_of(event), state().memory) ? cuda::kSuccess : cuda::kNotReady;
}

// --- kernels: those of strided_kernel.cu

ENTRY Result cuModuleLoadData(Module* module, const void* image) {
  CALL(true);
  const std::string_view text = static_cast<const char*>(image);
  if (!text.starts_with(".version ") || text.find(".entry strided_copy_1(") == std::string_view::npos) {
    return cuda::kInvalidValue;
  }
  *module = reinterpret_cast<Module>(uintptr_t{1});
  return cuda::kSuccess;
}

ENTRY Result cuModuleGetFunction(Function* function, Module, const char* name) {
  CALL(true);
  for (const uintptr_t bytes : {1, 2, 4, 8, 16}) {
    if (std::string("strided_copy_") + std::to_string(bytes) == name) {
      *function = reinterpret_cast<Function>(bytes);
      return cuda::kSuccess;
    }
  }
  return kNotFound;
}

ENTRY Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned, Stream handle, void** parameters, void**) {
  CALL(true);
  if (handle == nullptr || !is_current(*stream_of(handle))) return kInvalidHandle;
  if (grid_x == 0 || grid_y == 0 || grid_y > cuda::kKernelCopies || grid_z != 1 || block_x == 0 || block_x > 1024 ||
      block_y != 1 || block_z != 1) {
    return cuda::kInvalidValue;
  }
  StandInStream& stream = *stream_of(handle);
  const Clock& clock = state().streams.tick(stream);
  const auto element = static_cast<int64_t>(reinterpret_cast<uintptr_t>(function));
  const auto& all = *static_cast<const cuda::KernelCopies*>(parameters[0]);
  for (unsigned i = 0; i < grid_y; ++i) {
    std::vector<Run> runs;
    if (!add_runs(all.copies[i], element, &runs)) return cuda::kInvalidValue;
    if (const Result error = copy_runs(call, runs, stream, clock); error != cuda::kSuccess) return error;
  }
  return cuda::kSuccess;
}

/// For NVIDIA's cuda-bindings, which finds functions by their names without a version.
ENTRY Result cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* status) {
  static const auto* functions = [] {
    auto* all = new std::map<std::string, void*>;
    const auto add = [&](std::string exported, void* address) {
      if (exported.ends_with("_v2")) exported.resize(exported.size() - 3);
      all->emplace(std::move(exported), address);
    };
#define ADD_FUNCTION(member, exported, parameters) add(#exported, reinterpret_cast<void*>(&::exported));
    ARTIFEX_CUDA_FUNCTIONS(ADD_FUNCTION)
#undef ADD_FUNCTION
    return all;
  }();
  const auto found = functions->find(name);
  *function = found == functions->end() ? nullptr : found->second;
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? kNotFound : cuda::kSuccess;
}

namespace artifex_devices::cuda {
#define IS_AS_DECLARED(member, name, parameters) static_assert(std::is_same_v<decltype(::name), Result parameters>);
ARTIFEX_CUDA_FUNCTIONS(IS_AS_DECLARED)
}  // namespace artifex_devices::cuda
