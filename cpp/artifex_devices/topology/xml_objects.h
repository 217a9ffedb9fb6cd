// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct hwloc_bitmap_s;

// Private to topology/*.cpp.
namespace artifex_devices {

using XmlAttributes = std::vector<std::pair<std::string_view, std::string_view>>;

/// Checks the elements of an hwloc XML file for faults that crash hwloc: sets that are missing, infinite or not within
/// the parent's, huge indexes, objects under the wrong parent or out of order. Each method returns the fault, or an
/// empty text.
class XmlObjects {
 public:
  explicit XmlObjects(int format);
  ~XmlObjects();
  XmlObjects(const XmlObjects&) = delete;
  XmlObjects& operator=(const XmlObjects&) = delete;

  std::string open(std::string_view element, const XmlAttributes& attributes);
  void close();
  /// Returns whether text is allowed here: inside lists of values, not between objects.
  bool allows_text() const noexcept;
  std::string finish() const;

 private:
  enum class Kind : uint8_t { kOther, kNormal, kMemory, kPu, kNode, kIo, kMisc };
  struct Frame;

  std::string open_object(Frame& frame, const XmlAttributes& attributes);
  std::string check_sets(Frame& frame, const XmlAttributes& attributes);
  std::string check_place(Frame& frame, const XmlAttributes& attributes);
  std::string check_detail(std::string_view element, const XmlAttributes& attributes);
  Frame* parent_object();
  static Kind kind_of(std::string_view type) noexcept;

  int format_;
  std::vector<Frame> open_;
  std::set<int64_t> pus_;
  std::set<int64_t> nodes_;
  bool any_pu_ = false;  // that the process may use
  bool any_node_ = false;
};

}  // namespace artifex_devices
