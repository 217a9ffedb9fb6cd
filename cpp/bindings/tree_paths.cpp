// SPDX-License-Identifier: Apache-2.0
// The path of each leaf of a structure. A Python function passed by the caller creates the keys, which are cached for
// equal nodes: the dicts of a big tree repeat.
#include <algorithm>

#include "recent_cache.h"
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

constexpr Py_ssize_t kMaxCachedKeys = 256;  // keys of one node

/// Cached keys of nodes: of dicts with str keys, and of lists and tuples.
struct CachedKeys {
  py::object of;    // the tuple of a dict's keys, or the type of a sequence; null in an empty entry
  py::object keys;  // a tuple; for sequences as long as the longest so far

  bool is_empty() const { return !of; }
  static bool is_of(const Client&) { return false; }
};

auto& g_cached_keys = make_recent_cache<CachedKeys, 64>();

bool are_texts(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(tuple, i))) return false;
  }
  return true;
}

class Paths {
 public:
  Paths(PyObject* found, PyObject* keys_of) : found_(found), keys_of_(keys_of) {}

  void add(PyObject* structure) {
    begin(structure, steal(PyTuple_New(0)));
    while (!open_.empty()) {
      Open& inner = open_.innermost();
      if (inner.visit.has_next()) {
        const py::object path = longer_path(inner.path, PyTuple_GET_ITEM(inner.keys.ptr(), inner.visit.next));
        begin(inner.visit.next_child(), path);
      } else {
        open_.leave();
      }
    }
  }

 private:
  struct Open {
    NodeVisit visit;
    py::object path;
    py::object keys;  // of the children
  };

  void begin(PyObject* structure, const py::object& path) {
    if (structure == Py_None) return check(PyList_Append(found_, path.ptr()) == 0);
    const Node node(structure);
    if (!node.is_of_none()) open_.enter({{node}, path, keys_of(node)});
  }

  /// Returns a tuple of at least node.count keys.
  py::object keys_of(const Node& node) {
    const bool is_sequence = node.type == &PyList_Type || node.type == &PyTuple_Type;
    const bool is_cached =
        node.count <= kMaxCachedKeys && (is_sequence || (node.type == &PyDict_Type && are_texts(node.data)));
    if (!is_cached) return create_keys(node, node.count);
    PyObject* const of = is_sequence ? as_object(node.type) : node.data;
    py::object keys = g_cached_keys.at(hash_pointer(of), [&](const CachedKeys& entry) {
      return entry.of.ptr() == of && PyTuple_GET_SIZE(entry.keys.ptr()) >= node.count ? entry.keys : py::object();
    });
    if (keys) return keys;
    keys = create_keys(node, is_sequence ? std::max<Py_ssize_t>(node.count, 16) : node.count);
    g_cached_keys.store(hash_pointer(of), {borrow(of), keys});
    return keys;
  }

  py::object create_keys(const Node& node, Py_ssize_t count) {
    return keys_of_children(keys_of_, node.type, node.data, count);
  }

  PyObject* found_;
  PyObject* keys_of_;
  Levels<Open> open_;
};

}  // namespace

py::object keys_of_children(PyObject* keys_of, PyTypeObject* type, PyObject* data, Py_ssize_t count) {
  const py::object number = steal(PyLong_FromSsize_t(count));
  py::object keys = call(keys_of, as_object(type), data, number.ptr());
  if (!PyTuple_CheckExact(keys.ptr())) keys = steal(PySequence_Tuple(keys.ptr()));
  if (PyTuple_GET_SIZE(keys.ptr()) < count) fail_structure();
  return keys;
}

py::object longer_path(const py::object& path, PyObject* key) {
  const Py_ssize_t length = PyTuple_GET_SIZE(path.ptr());
  py::object longer = steal(PyTuple_New(length + 1));
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyTuple_SET_ITEM(longer.ptr(), i, Py_NewRef(PyTuple_GET_ITEM(path.ptr(), i)));
  }
  PyTuple_SET_ITEM(longer.ptr(), length, Py_NewRef(key));
  return longer;
}

PyObject* tree_paths(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 2, "tree_paths")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object found = steal(PyList_New(0));
    Paths(found.ptr(), arguments[1]).add(arguments[0]);
    return found;
  });
}

}  // namespace artifex_devices::bindings::trees
