// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/loaded_machine.h"
#include "artifex_devices/topology/xml_objects.h"

// Checks XML before hwloc parses it: not whether it is correct, but whether it is safe to parse.
namespace artifex_devices {
namespace {

constexpr int64_t kMostDepth = 512;
constexpr int64_t kMostElements = 200'000;
constexpr size_t kMostAttributes = 64;

class XmlScan {
 public:
  XmlScan(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void run() {
    if (text_.find('\0') != std::string_view::npos) refuse("it contains zero bytes, so it is not text");
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip_blanks();
    if (at_ == text_.size()) refuse("it is empty");
    if (text_[at_] != '<') refuse("it does not begin with '<'");
    while (next_tag()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("<?")) {
        skip_past("?>", "a processing instruction");
      } else if (rest.starts_with("<!--")) {
        skip_past("-->", "a comment");
      } else if (rest.starts_with("<!DOCTYPE")) {
        document_type();
      } else if (rest.starts_with("<!")) {
        refuse("it has a declaration or CDATA, which hwloc never writes");
      } else if (rest.starts_with("</")) {
        skip_past(">", "an end tag");
        if (--depth_ < 0) refuse("it has one end tag too many");
        objects_->close();
      } else {
        element();
      }
    }
    if (!seen_root_) refuse("it has no element <topology>");
    if (depth_ != 0) refuse(fmt::format("it ends with {} elements open: the file is truncated", depth_));
    if (const std::string wrong = objects_->finish(); !wrong.empty()) refuse(wrong);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw_error("from_xml: {} is not hwloc XML: {}; expected a file as written by `lstopo --of xml`", name_, why);
  }

  // Moves to the next '<'. hwloc stops reading at text between objects.
  bool next_tag() {
    const size_t found = std::min(text_.find('<', at_), text_.size());
    const std::string_view between = text_.substr(at_, found - at_);
    if (between.find_first_not_of(" \t\r\n") != std::string_view::npos && !(objects_ && objects_->allows_text())) {
      refuse(fmt::format("it has text among its elements ({:?})", between.substr(0, 40)));
    }
    at_ = found;
    return at_ < text_.size();
  }

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  void skip_past(std::string_view end, const char* what) {
    const size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) refuse(fmt::format("it ends inside {}: the file is truncated", what));
    at_ = found + end.size();
  }

  // hwloc's own, which names a file that is never read; a body could declare entities.
  void document_type() {
    const size_t begin = at_;
    skip_past(">", "a document type");
    const std::string_view declaration = text_.substr(begin, at_ - begin);
    if (seen_root_ || (declaration != "<!DOCTYPE topology SYSTEM \"hwloc.dtd\">" &&
                       declaration != "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">")) {
      refuse("it has a document type that is not hwloc's (entities are not expanded)");
    }
  }

  void element() {
    ++at_;
    const std::string_view name = take_name();
    if (name.empty()) refuse("it has a '<' without an element");
    attributes_.clear();
    bool empty = false;
    for (;;) {
      const size_t begin = at_;
      skip_blanks();
      if (at_ == text_.size()) refuse("it ends inside a tag: the file is truncated");
      if (text_.substr(begin, at_ - begin).find('\r') != std::string_view::npos) {
        refuse(fmt::format("the tag <{}> has a carriage return", name.substr(0, 40)));
      }
      if (text_[at_] == '>') break;
      if (text_.substr(at_, 2) == "/>") {
        empty = true;
        ++at_;
        break;
      }
      attribute(name);
    }
    ++at_;
    if (depth_ == 0) root(name);
    if (++elements_ > kMostElements) refuse(fmt::format("it has more than {} elements", kMostElements));
    if (++depth_ > kMostDepth) refuse(fmt::format("its elements are nested more than {} deep", kMostDepth));
    if (const std::string wrong = objects_->open(name, attributes_); !wrong.empty()) refuse(wrong);
    if (empty) {
      --depth_;
      objects_->close();
    }
  }

  std::string_view take_name() {
    const size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) &&
           std::string_view("<>/=\"'").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  // The same syntax as hwloc's own parser, which silently stops at the first attribute written differently.
  void attribute(std::string_view element) {
    const std::string_view name = take_name();
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string_view::npos ||
        at_ == text_.size() || text_[at_] != '=') {
      refuse(fmt::format("the tag <{}> is malformed", element.substr(0, 40)));
    }
    ++at_;
    const size_t end = text_.substr(at_, 1) == "\"" ? text_.find('"', at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      refuse(fmt::format("a value in the tag <{}> is not quoted", element.substr(0, 40)));
    }
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find_first_of("<>") != std::string_view::npos) refuse("it has a '<' or '>' inside a value");
    for (size_t sign = value.find('&'); sign != std::string_view::npos; sign = value.find('&', sign + 1)) {
      constexpr std::array<std::string_view, 7> kKnown = {"#10;", "#13;", "#9;", "quot;", "lt;", "gt;", "amp;"};
      const std::string_view rest = value.substr(sign + 1);
      if (std::ranges::none_of(kKnown, [&](std::string_view known) { return rest.starts_with(known); })) {
        refuse(fmt::format("a value in the tag <{}> has an entity that is not hwloc's", element.substr(0, 40)));
      }
    }
    const bool is_twice = std::ranges::any_of(attributes_, [&](const auto& other) { return other.first == name; });
    if (is_twice) refuse(fmt::format("the tag <{}> has {} twice", element.substr(0, 40), name.substr(0, 40)));
    if (attributes_.size() == kMostAttributes) {
      refuse(fmt::format("the tag <{}> has more than {} attributes", element.substr(0, 40), kMostAttributes));
    }
    attributes_.emplace_back(name, value);
    at_ = end + 1;
  }

  void root(std::string_view name) {
    if (seen_root_) refuse("it has more than one root element");
    seen_root_ = true;
    if (name != "topology") refuse(fmt::format("its root element is <{}>, expected <topology>", name.substr(0, 40)));
    int major = 1;
    for (const auto& [key, value] : attributes_) {
      if (key == "version") std::from_chars(value.data(), value.data() + value.size(), major);
    }
    if (major > 2) {
      throw_error(
          "from_xml: {} is hwloc XML of format {}; expected format 1 or 2; write it again with `lstopo --of xml "
          "--export-xml-flags v2`",
          name_, major);
    }
    objects_.emplace(major);
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t depth_ = 0;
  int64_t elements_ = 0;
  bool seen_root_ = false;
  XmlAttributes attributes_;
  std::optional<XmlObjects> objects_;
};

}  // namespace

void check_xml(std::string_view text, const std::string& name) { XmlScan(text, name).run(); }

}  // namespace artifex_devices
