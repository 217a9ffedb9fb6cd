// SPDX-License-Identifier: Apache-2.0
// The program's own fmt, with the symbol names of fmt 9 and another result. The library has an fmt inside and must
// neither call this one nor define its symbols.
#include <cstddef>
#include <string>

namespace fmt {
inline namespace v9 {
class appender;
template <class Char>
struct basic_string_view {
  const Char* data;
  size_t size;
};
template <class Output, class Char>
class basic_format_context;
template <class Context>
struct basic_format_args {
  unsigned long long types;
  const void* values;
};
std::string vformat(basic_string_view<char>, basic_format_args<basic_format_context<appender, char>>);
std::string vformat(basic_string_view<char>, basic_format_args<basic_format_context<appender, char>>) {
  return "dimension of another fmt";
}
}  // namespace v9
}  // namespace fmt
