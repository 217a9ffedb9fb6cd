// SPDX-License-Identifier: Apache-2.0
#include "argument_error_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "gil.h"
#include "text_signature.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

constexpr std::string_view kSupported = " arguments. The following argument types are supported:\n";
constexpr std::string_view kInvoked = "\n\nInvoked with: ";
constexpr size_t kLongestValue = 60;

enum class Fit { kFits, kUnfit, kUnknown };

struct Parameter {
  std::string name;
  std::string type;
  bool has_default = false;
  bool keyword_only = false;
};

struct Signature {
  std::string text;  // as a user would call it, without self
  std::vector<Parameter> parameters;
  bool takes_any_positional = false;
  bool takes_any_keyword = false;
  bool has_self = false;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string plain(std::string_view type) {
  std::string text(type);
  replace_all(text, "artifex_devices._core.", "");
  replace_all(text, "typing.SupportsInt | typing.SupportsIndex", "int");
  replace_all(text, "typing.SupportsFloat | typing.SupportsIndex", "float");
  replace_all(text, "collections.abc.", "");
  replace_all(text, "typing.", "");
  return text;
}

Signature signature_of(std::string_view line) {
  Signature signature;
  const size_t open = line.find('(');
  const size_t arrow = line.rfind(" -> ");
  const size_t close = line.substr(0, arrow).rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return signature;
  bool keyword_only = false;
  std::vector<std::string> shown;
  for (const std::string_view part : split_outside_brackets(line.substr(open + 1, close - open - 1), ", ")) {
    if (part.starts_with("self: ") || part.starts_with("cls: ")) {
      signature.has_self = true;
      signature.parameters.push_back({"self", std::string(part.substr(part.find(' ') + 1)), false, false});
      continue;
    }
    shown.push_back(plain(part));
    if (part.starts_with("**")) {
      signature.takes_any_keyword = true;
    } else if (part.starts_with("*")) {
      signature.takes_any_positional |= part.size() > 1;
      keyword_only = true;
    } else if (part != "/") {
      const size_t colon = part.find(": ");
      const size_t equals = part.rfind(" = ");
      const std::string_view type =
          colon == std::string_view::npos
              ? std::string_view("object")
              : part.substr(colon + 2, equals == std::string_view::npos ? equals : equals - colon - 2);
      signature.parameters.push_back(
          {std::string(part.substr(0, colon)), std::string(type), equals != std::string_view::npos, keyword_only});
    }
  }
  signature.text = fmt::format("({})", fmt::join(shown, ", "));
  return signature;
}

bool is_index_of_64_bits(PyObject* object) {
  if (!PyIndex_Check(object)) return false;
  PyObject* const number = sleeping_at_exit([&] { return PyNumber_Index(object); });
  if (number == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();  // the object's own
    PyErr_Clear();
    return false;
  }
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  return overflow == 0;
}

bool is_instance_of(PyObject* object, std::string_view name) {
  for (PyTypeObject* type = Py_TYPE(object); type != nullptr; type = type->tp_base) {
    std::string_view full = type->tp_name;
    if (full.substr(full.rfind('.') + 1) == name.substr(name.rfind('.') + 1)) return true;
  }
  return false;
}

Fit fit_of_one(std::string_view type, PyObject* object) {
  const auto answer = [](bool fits) { return fits ? Fit::kFits : Fit::kUnfit; };
  if (type == "object" || type == "typing.Any" || type == "Any") return Fit::kFits;
  if (type == "None") return answer(object == Py_None);
  if (type == "bool") return answer(PyBool_Check(object));
  if (type == "str") return answer(PyUnicode_Check(object));
  if (type == "bytes") return answer(PyBytes_Check(object));
  if (type == "dict") return answer(PyDict_Check(object));
  if (type == "list") return answer(PyList_Check(object));
  if (type == "tuple") return answer(PyTuple_Check(object));
  if (type == "int" || type == "typing.SupportsInt" || type == "typing.SupportsIndex") {
    return answer(is_index_of_64_bits(object));
  }
  if (type == "float" || type == "typing.SupportsFloat") return answer(PyFloat_Check(object) || PyLong_Check(object));
  if (type.starts_with("collections.abc.Callable")) return answer(PyCallable_Check(object));
  if (type.starts_with("artifex_devices.")) return answer(is_instance_of(object, type));
  if (type.starts_with("collections.abc.Sequence") || type.starts_with("list[") || type.starts_with("tuple[")) {
    return PySequence_Check(object) && !PyUnicode_Check(object) ? Fit::kUnknown : Fit::kUnfit;
  }
  if (type.starts_with("collections.abc.Mapping") || type.starts_with("dict[")) {
    return PyDict_Check(object) ? Fit::kUnknown : Fit::kUnfit;
  }
  return Fit::kUnknown;
}

Fit fit_of(std::string_view type, PyObject* object) {
  Fit best = Fit::kUnfit;
  for (const std::string_view part : split_outside_brackets(type, " | ")) {
    const Fit fit = fit_of_one(part, object);
    if (fit == Fit::kFits) return fit;
    if (fit == Fit::kUnknown) best = fit;
  }
  return best;
}

std::string value_text(PyObject* object) {
  const char* const type = Py_TYPE(object)->tp_name;
  if (object == Py_None) return "None";
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) || PyBool_Check(object)) {
    PyObject* const text = PyObject_Repr(object);  // of these classes only: no code of the caller's runs
    Py_ssize_t size = 0;
    const char* const utf8 = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, &size);
    std::string shown = utf8 == nullptr ? "" : std::string(utf8, static_cast<size_t>(size));
    PyErr_Clear();
    Py_XDECREF(text);
    if (!shown.empty() && shown.size() <= kLongestValue) return fmt::format("{} ({})", shown, type);
  }
  return fmt::format("an object of type {}", type);
}

std::string name_text(PyObject* name) {
  const char* const utf8 = PyUnicode_AsUTF8(name);
  if (utf8 == nullptr) PyErr_Clear();
  return utf8 == nullptr ? "?" : utf8;
}

// What is wrong with the call by this signature, at most one problem for each argument.
std::vector<std::string> problems_of(const Signature& signature, const CallArguments& call, Py_ssize_t skipped) {
  std::vector<std::string> problems;
  std::vector<std::string> doubtful;
  std::vector<PyObject*> values(signature.parameters.size(), nullptr);
  size_t places = 0;
  for (const Parameter& each : signature.parameters) places += each.keyword_only ? 0 : 1;
  const auto positional = static_cast<size_t>(std::max<Py_ssize_t>(call.count - skipped, 0));
  for (size_t i = 0; i < std::min(places, positional); ++i) values[i] = call.values[i + static_cast<size_t>(skipped)];
  if (positional > places && !signature.takes_any_positional) {
    const size_t hidden = signature.has_self ? 1 : 0;
    problems.push_back(fmt::format("too many positional arguments; expected at most {}, got {}",
                                   places - std::min(hidden, places), positional - std::min(hidden, positional)));
  }
  const Py_ssize_t named = call.keywords == nullptr ? 0 : PyTuple_GET_SIZE(call.keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::string name = name_text(PyTuple_GET_ITEM(call.keywords, i));
    const auto found = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                    [&](const Parameter& each) { return each.name == name; });
    if (found == signature.parameters.end()) {
      if (!signature.takes_any_keyword) {
        problems.push_back(fmt::format("'{}' is not the name of an argument; expected those below", name));
      }
      continue;
    }
    PyObject*& place = values[static_cast<size_t>(found - signature.parameters.begin())];
    if (place != nullptr) problems.push_back(fmt::format("{} is values twice; expected it once", name));
    place = call.values[call.count + i];
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& each = signature.parameters[i];
    if (values[i] == nullptr) {
      const std::string expected = each.type == "object" ? "a value" : plain(each.type);
      if (!each.has_default) problems.push_back(fmt::format("{} is missing; expected {}", each.name, expected));
      continue;
    }
    const Fit fit = fit_of(each.type, values[i]);
    if (fit == Fit::kFits) continue;
    const bool is_long = PyLong_Check(values[i]) && each.type.starts_with("typing.SupportsInt");
    auto& list = fit == Fit::kUnfit ? problems : doubtful;
    list.push_back(fmt::format("{} is {}; expected {}, got {}", each.name, is_long ? "out of range" : "of another type",
                               is_long ? "an int of 64 bits" : plain(each.type), value_text(values[i])));
  }
  return problems.empty() ? doubtful : problems;
}

}  // namespace

std::string argument_error_text(std::string_view operation, std::string_view text, const CallArguments& call) {
  const size_t begin = text.find(kSupported);
  const size_t end = text.find(kInvoked);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  const bool makes = text.substr(0, begin).ends_with("incompatible constructor");
  if (!makes && !text.substr(0, begin).ends_with("incompatible function")) return "";
  const std::string name = operation.empty() ? std::string(text.substr(0, text.find('('))) : std::string(operation);
  std::vector<std::string> problems;
  std::vector<std::string> forms;
  const auto lines =
      split_outside_brackets(text.substr(begin + kSupported.size(), end - begin - kSupported.size()), "\n");
  for (const std::string_view line : lines) {
    const Signature signature = signature_of(line);
    forms.push_back(name + signature.text);
    replace_all(forms.back(), ": object", "");
    if (lines.size() == 1) problems = problems_of(signature, call, makes ? 1 : 0);
  }
  if (problems.empty()) {
    std::vector<std::string> types;
    for (Py_ssize_t i = makes ? 1 : 0; i < call.count; ++i) types.push_back(value_text(call.values[i]));
    problems.push_back(fmt::format("these arguments do not fit; expected those below, got {}", fmt::join(types, ", ")));
  }
  const std::string_view example = name == "Mesh" ? ", such as ad.Mesh(ad.devices(), ('x',))" : "";
  return fmt::format("{}: {}; call it as {}{}", name, fmt::join(problems, "; "), fmt::join(forms, " or "), example);
}

std::string value_error_text(std::string_view operation, std::string_view text) {
  constexpr std::string_view kUncast = "Unable to cast Python instance of type ";
  if (!text.starts_with(kUncast)) return "";
  const std::string_view rest = text.substr(kUncast.size());
  return fmt::format("{}: a value has the type {}; expected a type that its documentation names; see help({})",
                     operation, rest.substr(0, rest.find(" to C++ type")), operation);
}

}  // namespace artifex_devices::bindings
