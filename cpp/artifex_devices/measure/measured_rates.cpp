// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/measured_rates.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/kernel_files.h"
#include "artifex_devices/topology/machine.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {
namespace {

constexpr int64_t kSide = 256;        // side of the matrices: three of them fit the second-level cache
constexpr int64_t kPiece = 64 << 10;  // elements of a stream timed together
constexpr int64_t kPieceBytes = 8 * kPiece;
constexpr int64_t kUnknownCache = 32 << 20;
constexpr int64_t kCacheMultiple = 4;  // ratio of arrays to caches, as required by STREAM
constexpr int64_t kMostArrayBytes = int64_t{1} << 30;

// Separate pages, because nothing may remain in the arenas' caches.
class Pages {
 public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      throw_error<OutOfMemory>(
          "RESOURCE_EXHAUSTED: measure_roofline: the system has no {} bytes for an array; expected an eighth of the "
          "usable memory to be free; free memory or raise the limit (ulimit -v, the cgroup's memory.max)",
          bytes_);
    }
#ifdef MADV_HUGEPAGE
    madvise(data_, bytes_, MADV_HUGEPAGE);
#endif
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  double* elements() const noexcept { return static_cast<double*>(data_); }
  int64_t count() const noexcept { return static_cast<int64_t>(bytes_) / 8; }

 private:
  size_t bytes_;
  void* data_ = nullptr;
};

// One worker's part of the three arrays. The worker touches it first, so the system places it near the worker.
struct Slice {
  explicit Slice(int64_t bytes) : a(bytes), b(bytes), c(bytes) {
    std::fill_n(a.elements(), a.count(), 1.0);
    std::fill_n(b.elements(), b.count(), 2.0);
    std::fill_n(c.elements(), c.count(), 0.0);
  }
  Pages a, b, c;
};

template <class T>
WorkStep product_step(Isa isa) {
  struct Matrices {
    std::vector<T> a, b, c;
  };
  constexpr size_t kElements = kSide * kSide;
  auto matrices = std::make_shared<Matrices>();
  *matrices = {std::vector<T>(kElements, T(0.5)), std::vector<T>(kElements, T(0.25)), std::vector<T>(kElements)};
  return [isa, matrices]() -> int64_t {
    gemm(isa, matrices->a.data(), matrices->b.data(), matrices->c.data(), kSide, kSide, kSide);
    return 2 * kSide * kSide * kSide;
  };
}

int64_t parse_cache_size(const std::string& text) {  // "32768K"
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = value * 10 + (text[i] - '0');
    if (value > (int64_t{1} << 40)) return 0;
  }
  if (i == 0) return 0;
  const std::string unit = text.substr(i);
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  return unit.empty() ? value : 0;
}

std::string first_line(const std::string& path) {
  const std::string text = read_kernel_file(path).text;
  return text.substr(0, text.find('\n'));
}

}  // namespace

RateSeries measure_gemm_rate(const std::vector<LaneId>& lanes, Isa isa, DType dtype, const RateOptions& options) {
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    throw_error<TypeMismatch>(
        "measure_roofline: dtype is {}; expected float32 or float64; the cores have no products of others",
        name(dtype));
  }
  return measure_rate(
      lanes,
      [isa, dtype](int, int) {
        return dtype == DType::kFloat32 ? product_step<float>(isa) : product_step<double>(isa);
      },
      options);
}

std::vector<int> cpus_of(const std::vector<LaneId>& lanes) {
  const std::shared_ptr<const Machine> machine = Machine::live();
  std::vector<int> cpus;
  for (const LaneId lane : lanes) {
    if (lane.number() >= std::ssize(machine->cpu_domains())) continue;
    const std::vector<int>& own = machine->cpu_domains()[lane.number()].cpus.cpus;
    cpus.insert(cpus.end(), own.begin(), own.end());
  }
  return cpus;
}

StreamRates measure_stream_rates(const std::vector<LaneId>& lanes, const RateOptions& options) {
  StreamRates rates;
  rates.cache_bytes = last_level_cache_bytes(cpus_of(lanes));
  const int64_t workers = workers_of(lanes);
  const int64_t usable = usable_memory_bytes_now();
  const int64_t memory = std::min({usable / 8, std::max<int64_t>(usable - resident_memory_bytes(), 0) / 4,
                                   available_memory_bytes().value_or(usable) / 4});
  const int64_t wanted = kCacheMultiple * (rates.cache_bytes > 0 ? rates.cache_bytes : kUnknownCache);
  const int64_t pieces = std::min({wanted, memory / 3, kMostArrayBytes}) / workers / kPieceBytes;
  if (pieces < 1) {
    throw_error<OutOfMemory>(
        "RESOURCE_EXHAUSTED: measure_roofline: {} bytes of memory are available; expected at least {} for {} workers; "
        "free memory or raise the limit (ulimit -v, the cgroup's memory.max)",
        memory, 3 * workers * kPieceBytes, workers);
  }
  const int64_t slice = pieces * kPieceBytes;
  rates.array_bytes = slice * workers;

  const auto slices = std::make_shared<std::vector<std::shared_ptr<Slice>>>(static_cast<size_t>(workers));
  for (const StreamKernel kernel : kStreamKernels) {
    const bool streaming = kernel == StreamKernel::kCopyStreaming || kernel == StreamKernel::kTriadStreaming;
    if (!streaming || has_streaming_stores()) rates.kernels.push_back(kernel);
  }
  RateOptions each = options;
  each.seconds = options.seconds / static_cast<double>(rates.kernels.size());
  for (const StreamKernel kernel : rates.kernels) {
    rates.series.push_back(measure_rate(
        lanes,
        [kernel, slice, slices](int worker, int) -> WorkStep {
          std::shared_ptr<Slice>& own = (*slices)[static_cast<size_t>(worker)];
          if (!own) own = std::make_shared<Slice>(slice);
          return [kernel, data = own, at = int64_t{0}]() mutable -> int64_t {
            run_stream(kernel, data->a.elements() + at, data->b.elements() + at, data->c.elements() + at, kPiece);
            at = at + kPiece >= data->a.count() ? 0 : at + kPiece;
            return kPiece * stream_bytes_per_element(kernel);
          };
        },
        each));
  }
  return rates;
}

int64_t last_level_cache_bytes(const std::vector<int>& cpus, const std::string& root) {
  constexpr int kMostCaches = 16;
  std::set<std::string> counted;
  int64_t sum = 0;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/cache/", root, cpu);
    std::string last;  // the cache of the highest level
    char level = '0';
    for (int i = 0; i < kMostCaches; ++i) {
      const std::string cache = folder + fmt::format("index{}/", i);
      const std::string text = first_line(cache + "level");
      if (text.size() != 1) break;
      if (text[0] > level) {
        level = text[0];
        last = cache;
      }
    }
    if (last.empty()) continue;
    if (!counted.insert(first_line(last + "shared_cpu_list")).second) continue;
    sum += parse_cache_size(first_line(last + "size"));
  }
  if (sum == 0 && root.empty()) sum = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return sum;
}

}  // namespace artifex_devices
