// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <locale>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/cluster/device_words.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostInText = int64_t{1} << 24;
constexpr size_t kMostCharacters = 200;
constexpr int64_t kMostChips = 16384;  // no slice has more
constexpr std::string_view kForms = "'64 x h100', '8 x dgx h100', 'gb200 nvl72', 'v5e-256' or 'tpu v5e 16x16'";
constexpr std::array kFillers = {"of",      "x",      "node",  "nodes",  "rack", "racks", "slice",
                                 "slices",  "pod",    "gpu",   "gpus",   "chip", "chips", "device",
                                 "devices", "google", "cloud", "nvidia", "amd",  "with"};
constexpr std::array kCounts = {"nodes", "racks", "slices", "chips_per_node"};
constexpr std::array kRates = {"network_bandwidth", "host_memory"};

using Sizes = std::vector<int64_t>;  // "8" or "8x8"

/// The parts of a text, in any order.
struct Parts {
  std::vector<std::string> names;
  std::vector<Sizes> sizes;
  std::map<std::string, double, std::less<>> options;
  bool is_tpu = false;
  bool is_dgx = false;
  bool is_nvl72 = false;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

[[noreturn]] void refuse(std::string_view text, const std::string& problem, const std::string& fix) {
  throw_error("cluster.from_text: {} {}; {}", python_repr(text), problem, fix);
}

std::string two_ways(const std::string& one, const std::string& other) {
  return fmt::format("write '{}' or '{}'", one, other);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : lower_case(text)) {
    if (c == ' ' || c == '\t' || c == ',' || c == '*') {
      if (!words.back().empty()) words.emplace_back();
      if (c == '*') words.back() = "x", words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "64xh100" is "64 x h100", "h100x64" is "h100 x 64"; "8x8" and "8x8x16" stay, and so do names such as "mi300x" and
// "7x".
std::vector<std::string> parts_of_word(const std::string& word) {
  const auto digits = [&](size_t from) {
    size_t end = from;
    while (end < word.size() && is_digit(word[end])) ++end;
    return end;
  };
  size_t end = digits(0);
  while (end > 0 && end + 1 < word.size() && word[end] == 'x' && is_digit(word[end + 1])) {
    const size_t next = digits(end + 1);
    if (next < word.size() && word[next] != 'x') break;  // "8x8h100" is not a text that people write
    end = next;
  }
  if (end > 0 && end < word.size() && word[end] == 'x' && word != "7x") {
    std::vector<std::string> parts = {word.substr(0, end), "x"};
    if (end + 1 < word.size()) {
      const std::vector<std::string> rest = parts_of_word(word.substr(end + 1));
      parts.insert(parts.end(), rest.begin(), rest.end());
    }
    return parts;
  }
  const size_t x = word.rfind('x');
  if (end == 0 && x != std::string::npos && x > 0 && x + 1 < word.size() && digits(x + 1) == word.size()) {
    return {word.substr(0, x), word.substr(x + 1)};
  }
  return {word};
}

std::optional<Sizes> sizes_of(std::string_view text, std::string_view word) {
  Sizes sizes;
  for (std::string_view rest = word;;) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (!rest.empty() && rest.front() != 'x') return std::nullopt;
    if (error != std::errc() || value < 1 || value > kMostInText) {
      refuse(text, fmt::format("has a number out of range; expected 1 to {}", kMostInText), "correct it");
    }
    sizes.push_back(value);
    if (rest.empty()) return sizes;
    rest.remove_prefix(1);
  }
}

void add_option(std::string_view text, const std::string& word, Parts& parts) {
  const size_t at = word.find('=');
  const std::string key = word.substr(0, at);
  const std::string value = word.substr(at + 1);
  const bool is_count = is_among(kCounts, key);
  if (!is_count && !is_among(kRates, key)) {
    refuse(text,
           fmt::format("has the option {}; expected {}= or {}=", python_repr(key), fmt::join(kCounts, "=, "),
                       fmt::join(kRates, "= or ")),
           "correct it");
  }
  std::istringstream reader(value);
  reader.imbue(std::locale::classic());
  double number = 0;
  reader >> number;
  const bool is_number = !reader.fail() && reader.peek() == std::istringstream::traits_type::eof();
  const bool is_whole = number >= 1 && number <= static_cast<double>(kMostInText) &&
                        number == static_cast<double>(static_cast<int64_t>(number));
  if (!is_number || !(is_count ? is_whole : number >= 1e-30 && number <= 1e30)) {
    refuse(text,
           fmt::format("has {} for {}; expected a {}", python_repr(value), key,
                       is_count ? "whole number" : "number above 0"),
           fmt::format("write it as in {}={}", key, is_count ? "2" : "5e10"));
  }
  if (!parts.options.emplace(key, number).second)
    refuse(text, fmt::format("has {} twice; expected it once", key), "leave one out");
}

Parts parts_of(std::string_view text) {
  Parts parts;
  bool joins = false;  // a number follows a number, with at most fillers between them
  std::string last;
  for (const std::string& whole : words_of(text)) {
    if (whole.find('=') != std::string::npos) {
      add_option(text, whole, parts);
      continue;
    }
    for (const std::string& word : parts_of_word(whole)) {
      last = word;
      if (is_among(kFillers, word)) continue;
      if (word != "7x") {
        if (const std::optional<Sizes> sizes = sizes_of(text, word)) {
          if (!joins) parts.sizes.emplace_back();
          parts.sizes.back().insert(parts.sizes.back().end(), sizes->begin(), sizes->end());
          joins = true;
          continue;
        }
      }
      joins = false;
      if (word == "tpu" || word == "tpus") {
        parts.is_tpu = true;
      } else if (word == "dgx" || word == "hgx") {
        parts.is_dgx = true;
      } else if (word == "nvl72") {
        parts.is_nvl72 = true;
      } else {
        parts.names.push_back(word);
      }
    }
  }
  if (last == "x" && parts.names.size() + parts.sizes.size() > 0) {
    refuse(text, "ends with an x; expected a number or a chip after it", "write it, or leave out the x");
  }
  return parts;
}

std::optional<SourcedNumber> figure_of(const Parts& parts, std::string_view key) {
  const auto found = parts.options.find(key);
  return found == parts.options.end() ? std::nullopt : std::optional(SourcedNumber{found->second, "given"});
}

// The count of an option, which must not be given elsewhere too.
std::optional<int64_t> count_of(std::string_view text, const Parts& parts, std::string_view key,
                                const std::optional<int64_t>& elsewhere) {
  const auto found = parts.options.find(key);
  if (found == parts.options.end()) return elsewhere;
  if (elsewhere) refuse(text, fmt::format("gives the number of {} twice; expected it once", key), "leave one out");
  return static_cast<int64_t>(found->second);
}

void check_options(std::string_view text, const Parts& parts, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : parts.options) {
    if (!is_among(known, key)) {
      refuse(text, fmt::format("has {}=; expected {}= for this cluster", key, fmt::join(known, "=, ")), "leave it out");
    }
  }
}

// The most compact slice of this number of chips; empty if no slice has it.
std::vector<int> shape_of_chips(const std::string& generation, int64_t chips) {
  std::vector<int> best;
  for (const std::vector<int>& shape : tpu_shapes(generation, chips)) {
    const auto sum = [](const std::vector<int>& sizes) { return std::reduce(sizes.begin(), sizes.end()); };
    if (best.empty() || sum(shape) < sum(best)) best = shape;
  }
  return best;
}

// Names the two nearest numbers of chips that a slice has.
[[noreturn]] void refuse_chips(std::string_view text, const std::string& problem, const std::string& generation,
                               int64_t chips) {
  int64_t below = std::min(chips, kMostChips);
  while (below > 1 && shape_of_chips(generation, below).empty()) --below;
  int64_t above = chips + 1;
  while (above < kMostChips && shape_of_chips(generation, above).empty()) ++above;
  const std::vector<int> largest = shape_of_chips(generation, below);
  const std::string more = above < kMostChips ? fmt::format("{} {}", above, generation)
                                              : fmt::format("2 x tpu {} {}", generation, fmt::join(largest, "x"));
  const std::string fewer = fmt::format("{} {}", below, generation);
  refuse(text, problem, largest.empty() ? fmt::format("write '{}'", more) : two_ways(fewer, more));
}

/// A generation of TPUs, as texts name it.
struct TpuName {
  std::string generation;          // of the catalogue
  std::optional<int64_t> chips{};  // of "v5e-256"
};

std::optional<TpuName> tpu_of_text(std::string_view text, const Parts& parts) {
  std::string name = fmt::format("{}", fmt::join(parts.names, " "));
  if (name.starts_with("tpu")) name.erase(0, name.starts_with("tpu-") ? 4 : 3);
  std::optional<int64_t> count;
  if (const size_t dash = name.rfind('-'); dash != std::string::npos) {
    if (const std::optional<Sizes> sizes = sizes_of(text, std::string_view(name).substr(dash + 1));
        sizes && sizes->size() == 1) {
      count = sizes->front();
      name.erase(dash);
    }
  }
  if (name == "v5litepod" || name == "v5 lite" || name == "v5lite") name = "v5e";
  if (name == "trillium") name = "v6e";
  if (name == "ironwood" || name == "v7x") name = "7x";
  if (!is_tpu_generation(name)) return std::nullopt;
  if (count && (name == "v4" || name == "v5p")) {
    if (*count % 2 != 0) {
      refuse_chips(text, fmt::format("has {} TensorCores; expected an even number, as a chip has two", *count), name,
                   *count / 2);
    }
    *count /= 2;
  }
  return TpuName{name, count};
}

ClusterRef tpu_from(std::string_view text, const Parts& parts, const TpuName& tpu) {
  check_options(text, parts, {"slices", "host_memory"});
  std::vector<int> shape;
  std::optional<int64_t> chips = tpu.chips;
  std::optional<int64_t> slices;
  for (const Sizes& sizes : parts.sizes) {
    if (sizes.size() > 1 && shape.empty() && !chips) {
      shape.assign(sizes.begin(), sizes.end());
    } else if (sizes.size() == 1 && (tpu.chips || parts.sizes.size() == 2) && !slices) {
      slices = sizes.front();
    } else if (sizes.size() == 1 && !chips && shape.empty()) {
      chips = sizes.front();
    } else {
      refuse(text, "has too many numbers; expected slices and a shape", "write '2 x v5e 4x4' or 'v5e-16'");
    }
  }
  slices = count_of(text, parts, "slices", slices);
  if (shape.empty() && !chips) {
    refuse(text, "has no size; expected a shape or a number of chips",
           two_ways(fmt::format("16 {}", tpu.generation),
                    fmt::format("tpu {} {}", tpu.generation, fmt::join(shape_of_chips(tpu.generation, 16), "x"))));
  }
  if (const size_t axes = shape_of_chips(tpu.generation, 4).size(); !shape.empty() && shape.size() != axes) {
    const int64_t product = std::accumulate(shape.begin(), shape.end(), int64_t{1}, [](int64_t all, int64_t size) {
      return std::min(all * size, kMostInText);
    });
    refuse_chips(
        text,
        fmt::format("has a shape of {} sizes; expected {}, as slices of {} have", shape.size(), axes, tpu.generation),
        tpu.generation, product);
  }
  if (shape.empty()) shape = shape_of_chips(tpu.generation, *chips);
  if (shape.empty()) {
    refuse_chips(text, fmt::format("has {} chips; expected the chips of a slice of {}", *chips, tpu.generation),
                 tpu.generation, *chips);
  }
  return tpu_cluster(tpu.generation, shape, slices.value_or(1), figure_of(parts, "host_memory"));
}

ClusterRef gpu_from(std::string_view text, const Parts& parts, const std::string& gpu) {
  const bool has_nodes = parts.is_dgx || parts.is_nvl72;
  check_options(text, parts, {"nodes", "racks", "chips_per_node", "network_bandwidth", "host_memory"});
  if (parts.sizes.size() > 1 || (!parts.sizes.empty() && parts.sizes.front().size() > 2)) {
    refuse(text, "has too many numbers; expected nodes and GPUs of a node",
           two_ways(fmt::format("64 x {}", gpu), fmt::format("8x8 {}", gpu)));
  }
  const Sizes sizes = parts.sizes.empty() ? Sizes() : parts.sizes.front();
  const bool has_total = sizes.size() == 1 && !has_nodes;
  std::optional<int64_t> nodes;
  std::optional<int64_t> each;
  if (!sizes.empty() && !has_total) nodes = sizes.front();
  if (sizes.size() == 2) each = sizes.back();
  nodes = count_of(text, parts, "racks", count_of(text, parts, "nodes", nodes));
  each = count_of(text, parts, "chips_per_node", each);
  GpuOptions options{.chips_per_node = each ? std::optional(static_cast<int>(*each)) : std::nullopt,
                     .network_bandwidth = figure_of(parts, "network_bandwidth"),
                     .host_memory = figure_of(parts, "host_memory")};
  const int64_t domain = gpu_cluster(gpu, 1, options)->device_count();
  const int64_t usual = each ? gpu_cluster(gpu, 1, {})->device_count() : domain;
  if (sizes.size() == 2 && domain > usual) {
    refuse(text, fmt::format("has {} GPUs in a node; expected {} at most, as a node of {} has", domain, usual, gpu),
           two_ways(fmt::format("{}x{} {}", (*nodes * domain + usual - 1) / usual, usual, gpu),
                    fmt::format("{} nodes={} chips_per_node={}", gpu, *nodes, domain)));
  }
  if (!has_total) {
    if (!nodes && !each && !has_nodes && gpu != "mi300x") {
      refuse(text, "has no size; expected a number of GPUs",
             two_ways(fmt::format("1 x {}", gpu), fmt::format("{} x {}", domain, gpu)));
    }
    return gpu_cluster(gpu, nodes.value_or(1), options);
  }
  const int64_t total = sizes.front();
  if (nodes && total != *nodes * domain) {
    refuse(text, fmt::format("has {} GPUs on {} nodes; expected {} on each", total, *nodes, domain),
           two_ways(fmt::format("{} x {}", *nodes * domain, gpu), fmt::format("{} x {}", total, gpu)));
  }
  if (total < domain) {
    options.chips_per_node = static_cast<int>(total);
    return gpu_cluster(gpu, 1, options);
  }
  if (total % domain != 0) {
    const int64_t below = total / domain * domain;
    refuse(text, fmt::format("has {} GPUs; expected a multiple of {}, the GPUs of a node", total, domain),
           two_ways(fmt::format("{} x {}", below, gpu), fmt::format("{} x {}", below + domain, gpu)));
  }
  return gpu_cluster(gpu, total / domain, options);
}

}  // namespace

ClusterRef cluster_from_text(std::string_view text) {
  if (text.size() > kMostCharacters) {
    throw_error("cluster.from_text: the text has {} characters; expected {} at most, such as {}", text.size(),
                kMostCharacters, kForms);
  }
  Parts parts = parts_of(text);
  if (const std::optional<TpuName> tpu = tpu_of_text(text, parts); tpu && !parts.is_dgx && !parts.is_nvl72) {
    return tpu_from(text, parts, *tpu);
  }
  if (parts.is_nvl72 && parts.names.empty()) parts.names.emplace_back("gb200");
  const std::string name = fmt::format("{}", fmt::join(parts.names, " "));
  if (parts.is_tpu || name.empty() || !is_catalogue_gpu(name)) {
    refuse(text,
           name.empty() ? "names no chip"
                        : fmt::format("names {}, which is not a chip of the catalogue", python_repr(name)),
           fmt::format("expected a text such as {} with one of {}; describe other chips in a TOML file, for "
                       "cluster.from_toml",
                       kForms, preset_names()));
  }
  const ClusterRef node = gpu_cluster(name, 1, {});
  if (parts.is_dgx && (node->parts().inside.kind != NetworkKind::kSwitch || node->device_count() > 16)) {
    refuse(text, fmt::format("names a DGX of {}; expected a GPU that a DGX has", name),
           two_ways("dgx h100", fmt::format("{} x {}", node->device_count(), name)));
  }
  if (parts.is_nvl72 && node->device_count() != 72) {
    refuse(text, fmt::format("names an NVL72 of {}; expected gb200", name),
           two_ways("gb200 nvl72", fmt::format("72 x {}", name)));
  }
  return gpu_from(text, parts, name);
}

}  // namespace artifex_devices
