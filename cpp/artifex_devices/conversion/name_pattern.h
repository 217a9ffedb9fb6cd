// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// What the placeholders of a pattern stand for in one name.
struct NameMatch {
  std::map<std::string, std::string> names;  // of {layer}
  std::vector<std::string> stars;            // of each *, in their order
  friend auto operator<=>(const NameMatch&, const NameMatch&) = default;
};

/// A pattern of names, whose parts "." and "/" separate. It matches whole names. `*` matches any characters within a
/// part. `{layer}` matches one part, or digits if it is only a piece of a part.
/// Example: "layers_{layer}.*.kernel" matches "layers_12.mlp.kernel": layer is "12", the star is "mlp".
class NamePattern {
 public:
  /// Throws InvalidArgument, naming `operation`, for braces without a name, repeated names and adjacent placeholders.
  NamePattern(std::string text, std::string_view operation);

  const std::string& text() const noexcept { return text_; }
  /// Names of the placeholders.
  std::set<std::string> names() const;
  int64_t star_count() const noexcept;
  bool is_one_name() const noexcept;
  std::optional<NameMatch> match(std::string_view name) const;
  /// The name for a match of a pattern with the same placeholders.
  std::string fill(const NameMatch& match) const;

 private:
  enum class Kind { kText, kPart, kDigits, kStar };
  struct Token {
    Kind kind;
    std::string text;  // characters, or the name of the placeholder
  };

  std::string text_;
  std::vector<Token> tokens_;
};

}  // namespace artifex_devices
