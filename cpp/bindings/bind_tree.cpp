// SPDX-License-Identifier: Apache-2.0
// Flattens a tree in one call from Python. Dicts, lists, tuples and None are opened here; a Python function passed by
// the caller (python/artifex_devices/_tree) opens one level of each other node and raises the errors. Structures are
// tuples (type, data, children).
#include <fmt/format.h>
#include <pybind11/critical_section.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings.h"
#include "pybind.h"
#include "python_text.h"
#include "recent_cache.h"
#include "tree_node.h"

namespace artifex_devices::bindings {
namespace trees {
namespace {

/// The types of static data, such as "(ndarray, str)".
std::string types_text(PyObject* data) {
  if (PyObject* const inner = PyObject_GetAttrString(data, "data"); inner != nullptr) {  // of nodes.py: Aux
    const py::object held = steal(inner);
    return types_text(held.ptr());
  }
  PyErr_Clear();
  if (!PyTuple_CheckExact(data)) return Py_TYPE(data)->tp_name;
  std::string text;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(data); ++i) {
    text += text.empty() ? "(" : ", ";
    text += Py_TYPE(PyTuple_GET_ITEM(data, i))->tp_name;
  }
  return text + ")";
}

/// Whether the static data of two nodes of a type are equal. ValueError where `==` fails, as for arrays.
bool is_same_data(const Node& a, const Node& b) {
  const int is_same = sleeping_at_exit([&] { return PyObject_RichCompareBool(a.data, b.data, Py_EQ); });
  if (is_same >= 0) return is_same == 1;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();  // Ctrl-C
  py::error_already_set error;
  const std::string text = fmt::format(
      "tree: the static data of two nodes of type {} cannot be compared, as == raised {}; expected data whose == returns "
      "True or False, got {}; register arrays as children (data_fields), or store tuples or bytes instead",
      a.type->tp_name, py::str(error.type().attr("__name__")).cast<std::string>(), types_text(a.data));
  error.restore();
  py::raise_from(PyExc_ValueError, text.c_str());
  throw py::error_already_set();
}

/// Whether two structures are equal as tuples.
bool are_equal(PyObject* first, PyObject* second) {
  Levels<std::pair<NodeVisit, NodeVisit>> open;
  for (;;) {
    if (first != second) {
      if (first == Py_None || second == Py_None) return false;
      const Node a(first);
      const Node b(second);
      if (a.type != b.type || a.count != b.count || a.children_are_leaves() != b.children_are_leaves()) return false;
      if (!is_same_data(a, b)) return false;
      if (!a.is_of_none() && !a.children_are_leaves()) open.enter({{a}, {b}});
    }
    while (!open.empty() && !open.innermost().first.has_next()) open.leave();
    if (open.empty()) return true;
    first = open.innermost().first.next_child();
    second = open.innermost().second.next_child();
  }
}

/// The Python functions and types that the caller passes.
struct Opener {
  PyObject* plain;      // set of types that are always leaves
  PyObject* one_level;  // node -> (children, data), or None for a leaf
  PyObject* is_leaf;    // node -> bool, or None
  PyObject* keys_of;    // (type, data, number of children) -> keys; None if is_leaf does not take the path
};

/// Sorted str keys of an earlier dict, found again by the same key objects in the same order: the dicts of a big tree
/// repeat, so their keys are sorted once.
struct KnownKeys {
  static constexpr size_t kMaxKeys = 16;
  py::object sorted;                              // null in an empty entry; keeps the keys alive
  py::object node_of_leaves;                      // the node of a dict with these keys and nothing but leaves
  std::array<PyObject*, kMaxKeys> unsorted = {};  // in the dict's order, borrowed from `sorted`
  std::array<uint8_t, kMaxKeys> order = {};       // position in the dict of each sorted key

  bool is_empty() const { return !sorted; }
  static bool is_of(const Client&) { return false; }
  /// Of the first and the last key, as keys that were created together have similar addresses.
  static size_t hash(const std::array<PyObject*, kMaxKeys>& keys, size_t count) {
    constexpr size_t kFactor = 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio (Knuth, volume 3, 6.4)
    if (count == 0) return 0;
    return (hash_pointer(keys[0]) * kFactor + hash_pointer(keys[count - 1])) * kFactor;
  }
};

auto& g_known_keys = make_recent_cache<KnownKeys, 256>();

class Flattening {
 public:
  Flattening(const Opener& opener, PyObject* leaves) : opener_(opener), leaves_(leaves) {}

  /// Returns the node of a tree. A leaf is appended to the leaves, and its node is None.
  py::object open(PyObject* tree) {
    const bool takes_path = opener_.keys_of != Py_None;
    py::object done = takes_path ? begin_with_path(tree, steal(PyTuple_New(0))) : begin(tree);
    while (!done || !open_.empty()) {
      Open& inner = open_.innermost();
      if (done) inner.children.add(std::exchange(done, {}));
      const Py_ssize_t i = inner.next++;
      // A list may change while functions of registered types run.
      const auto child = py::reinterpret_steal<py::object>(
          i < inner.children.max_count() ? sequence_item(inner.values.ptr(), i) : nullptr);
      if (!child) {
        done = end(&inner);
        open_.leave();
        continue;
      }
      if (is_known_leaf(child.ptr())) {
        leaf(child.ptr());
        inner.children.add_leaf();
        continue;
      }
      done = takes_path ? begin_with_path(child.ptr(), longer_path(inner.path, PyTuple_GET_ITEM(inner.keys.ptr(), i)))
                        : begin(child.ptr());
    }
    return done;
  }

 private:
  /// Returns the answer of is_leaf: a bool, or None as in JAX.
  static bool is_yes(const py::object& answer) {
    if (answer.ptr() == Py_True || answer.ptr() == Py_False || answer.is_none()) return answer.ptr() == Py_True;
    const py::object text = py::cast(safe_repr(answer));
    const py::object type = steal(PyObject_GetAttrString(as_object(Py_TYPE(answer.ptr())), "__name__"));
    PyErr_Format(PyExc_ValueError, "tree_flatten: is_leaf returned %U (%U); expected True or False; return bool(...)",
                 text.ptr(), type.ptr());
    throw py::error_already_set();
  }

  /// Returns the children that `one_level` returned.
  static PyObject* children_of(const py::object& level) {
    if (!PyTuple_CheckExact(level.ptr()) || PyTuple_GET_SIZE(level.ptr()) != 2) fail_structure();
    PyObject* const children = PyTuple_GET_ITEM(level.ptr(), 0);
    if (!PyTuple_CheckExact(children)) fail_structure();
    return children;
  }

  /// The children of one node: counted as long as all are leaves.
  class Children {
   public:
    explicit Children(Py_ssize_t max_count) : max_count_(max_count) {}
    void add(py::object node) {
      if (!node.is_none() && !nodes_) {
        nodes_ = steal(PyTuple_New(max_count_));
        for (Py_ssize_t i = 0; i < max_count_; ++i) PyTuple_SET_ITEM(nodes_.ptr(), i, Py_NewRef(Py_None));
      }
      if (!node.is_none()) {
        Py_DECREF(PyTuple_GET_ITEM(nodes_.ptr(), count_));
        PyTuple_SET_ITEM(nodes_.ptr(), count_, node.release().ptr());
      }
      ++count_;
    }
    void add_leaf() { ++count_; }
    Py_ssize_t max_count() const { return max_count_; }
    bool are_leaves() const { return !nodes_; }
    /// Has fewer children than expected if a list shrank meanwhile.
    py::object take() {
      if (!nodes_) return steal(PyLong_FromSsize_t(count_));
      return count_ == max_count_ ? std::move(nodes_) : steal(PyTuple_GetSlice(nodes_.ptr(), 0, count_));
    }

   private:
    Py_ssize_t max_count_;
    Py_ssize_t count_ = 0;
    py::object nodes_;
  };

  py::object leaf(PyObject* tree) {
    check(PyList_Append(leaves_, tree) == 0);
    return py::none();
  }

  static py::object node(PyTypeObject* type, PyObject* data, const py::object& children) {
    return steal(PyTuple_Pack(3, as_object(type), data, children.ptr()));
  }

  py::object none_node() {
    if (!none_node_) none_node_ = node(Py_TYPE(Py_None), Py_None, steal(PyLong_FromLong(0)));
    return none_node_;
  }

  /// A node whose children are being opened.
  struct Open {
    py::object type;
    py::object data;
    py::object values;     // list or tuple of the children
    size_t hash = 0;       // of a dict with known keys
    py::object path = {};  // only if is_leaf takes the path
    py::object keys = {};  // the same; of the children
    Children children;
    Py_ssize_t next = 0;
  };

  /// Whether it is a leaf because the last leaf had the same type.
  bool is_known_leaf(PyObject* tree) const { return opener_.is_leaf == Py_None && Py_TYPE(tree) == last_leaf_; }

  /// Returns the node of a leaf or of None. For other trees it begins a node and returns null; the children come next.
  py::object begin(PyObject* tree) {
    if (opener_.is_leaf != Py_None && is_yes(call(opener_.is_leaf, tree))) return leaf(tree);
    if (is_known_leaf(tree)) return leaf(tree);
    PyTypeObject* type = Py_TYPE(tree);
    if (type == &PyDict_Type) return begin_dict(tree);
    if (type == &PyList_Type || type == &PyTuple_Type) return enter(type, Py_None, borrow(tree));
    if (tree == Py_None) return none_node();
    const int is_plain = PySet_Contains(opener_.plain, as_object(type));
    check(is_plain >= 0);
    if (is_plain == 0) {
      const py::object level = call(opener_.one_level, tree);
      if (!level.is_none()) return enter(type, PyTuple_GET_ITEM(level.ptr(), 1), borrow(children_of(level)));
    }
    last_leaf_ = type;
    return leaf(tree);
  }

  py::object begin_with_path(PyObject* tree, const py::object& path) {
    if (is_yes(call(opener_.is_leaf, path.ptr(), tree))) return leaf(tree);
    if (tree == Py_None) return none_node();
    const py::object level = call(opener_.one_level, tree);
    if (level.is_none()) return leaf(tree);
    const py::object values = borrow(children_of(level));
    PyObject* const data = PyTuple_GET_ITEM(level.ptr(), 1);
    const py::object keys = keys_of_children(opener_.keys_of, Py_TYPE(tree), data, PyTuple_GET_SIZE(values.ptr()));
    enter(Py_TYPE(tree), data, values);
    open_.innermost().path = path;
    open_.innermost().keys = keys;
    return {};
  }

  py::object begin_dict(PyObject* tree) {
    constexpr auto kMaxSize = static_cast<Py_ssize_t>(KnownKeys::kMaxKeys);
    std::array<PyObject*, KnownKeys::kMaxKeys> keys{};
    std::array<py::object, KnownKeys::kMaxKeys> values;
#ifdef Py_GIL_DISABLED
    std::array<py::object, KnownKeys::kMaxKeys> held_keys;  // another thread may remove them from the dict
#endif
    size_t count = 0;
    bool is_big = false;
    {
      const py::scoped_critical_section lock(tree);
      PyObject* key = nullptr;
      PyObject* value = nullptr;
      Py_ssize_t place = 0;
      while (count < KnownKeys::kMaxKeys && PyDict_Next(tree, &place, &key, &value) != 0) {
        keys[count] = key;
#ifdef Py_GIL_DISABLED
        held_keys[count] = borrow(key);
#endif
        values[count++] = borrow(value);
      }
      is_big = PyDict_GET_SIZE(tree) > kMaxSize;
    }
    if (is_big) return begin_big_dict(tree);
    const size_t hash = KnownKeys::hash(keys, count);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(count);
    const bool are_leaves =
        std::all_of(values.begin(), end, [&](const py::object& each) { return is_known_leaf(each.ptr()); });
    if (are_leaves) open_.check_depth();
    py::object data;  // the sorted keys
    py::object node;
    std::array<uint8_t, KnownKeys::kMaxKeys> order{};
    const bool is_known = g_known_keys.at(hash, [&](const KnownKeys& entry) {
      if (!is_of(entry, keys, count)) return false;
      if (are_leaves) node = entry.node_of_leaves;
      if (!node) data = entry.sorted;
      order = entry.order;
      return true;
    });
    if (node) {  // as most dicts
      for (size_t i = 0; i < count; ++i) leaf(values[order[i]].ptr());
      return node;
    }
    if (!is_known && !learn(tree, keys, count, hash, &data, &order)) return begin_big_dict(tree);
    py::object sorted = steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(sorted.ptr(), static_cast<Py_ssize_t>(i), values[order[i]].release().ptr());
    }
    enter(&PyDict_Type, data.ptr(), std::move(sorted));
    open_.innermost().hash = hash;
    return {};
  }

  py::object begin_big_dict(PyObject* tree) {
#ifdef Py_GIL_DISABLED
    const py::object copy = steal(PyDict_Copy(tree));  // another thread may remove keys
    tree = copy.ptr();
#endif
    const py::object sorted = sorted_keys(tree);
    const Py_ssize_t size = PyTuple_GET_SIZE(sorted.ptr());
    py::object values = steal(PyTuple_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyTuple_SET_ITEM(values.ptr(), i, value_at(tree, PyTuple_GET_ITEM(sorted.ptr(), i)).release().ptr());
    }
    return enter(&PyDict_Type, sorted.ptr(), std::move(values));
  }

  /// Begins a node. Returns null.
  py::object enter(PyTypeObject* type, PyObject* data, py::object values) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(values.ptr());
    open_.enter({.type = borrow(as_object(type)),
                 .data = borrow(data),
                 .values = std::move(values),
                 .children = Children(count)});
    return {};
  }

  static py::object end(Open* open) {
    auto* const type = reinterpret_cast<PyTypeObject*>(open->type.ptr());
    const bool is_cached = open->hash != 0 && open->children.are_leaves();
    py::object result;
    // Opening the children may have replaced the entry.
    if (is_cached) {
      result = g_known_keys.at(open->hash, [&](const KnownKeys& entry) {
        return entry.sorted.is(open->data) ? entry.node_of_leaves : py::object();
      });
    }
    if (result) return result;
    result = node(type, open->data.ptr(), open->children.take());
    if (is_cached) {
      g_known_keys.at(open->hash, [&](KnownKeys& entry) {
        if (entry.sorted.is(open->data) && !entry.node_of_leaves) entry.node_of_leaves = result;
      });
    }
    return result;
  }

  static py::object value_at(PyObject* tree, PyObject* key) {
    PyObject* value = sleeping_at_exit([&] { return dict_item(tree, key); });
    if (value == nullptr && PyErr_Occurred() == nullptr) PyErr_SetObject(PyExc_KeyError, key);
    return steal(value);
  }

  static bool is_of(const KnownKeys& entry, const std::array<PyObject*, KnownKeys::kMaxKeys>& keys, size_t count) {
    if (!entry.sorted || PyTuple_GET_SIZE(entry.sorted.ptr()) != static_cast<Py_ssize_t>(count)) return false;
    return std::equal(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), entry.unsorted.begin());
  }

  /// Stores the keys of a dict under their hash. Returns false if a key is not a str, as comparing other keys may run
  /// Python code that changes the dict, or if the dict has changed anyway.
  [[gnu::noinline]] bool learn(PyObject* tree, const std::array<PyObject*, KnownKeys::kMaxKeys>& keys, size_t count,
                               size_t hash, py::object* data, std::array<uint8_t, KnownKeys::kMaxKeys>* order) {
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
    if (!std::all_of(keys.begin(), end, [](PyObject* key) { return PyUnicode_CheckExact(key); })) return false;
    const py::object sorted = sorted_keys(tree);
    // Creating the tuple may run the garbage collector, and with it any code.
    if (PyTuple_GET_SIZE(sorted.ptr()) != static_cast<Py_ssize_t>(count)) return false;
    KnownKeys new_entry;
    for (size_t i = 0; i < count; ++i) {
      const auto* position = std::find(keys.begin(), end, PyTuple_GET_ITEM(sorted.ptr(), static_cast<Py_ssize_t>(i)));
      if (position == end) return false;
      new_entry.order[i] = static_cast<uint8_t>(position - keys.begin());
    }
    new_entry.sorted = sorted;
    new_entry.unsorted = keys;
    *data = sorted;
    *order = new_entry.order;
    g_known_keys.store(hash, std::move(new_entry));
    return true;
  }

  /// Returns a tuple. For keys that cannot be sorted, the Python function raises.
  py::object sorted_keys(PyObject* tree) {
    const py::object keys = steal(PyDict_Keys(tree));
    if (!are_ascending_texts(keys.ptr()) && PyList_Sort(keys.ptr()) < 0) {
      if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
      const py::error_already_set error;
      call(opener_.one_level, tree);  // raises, unless the error was of a signal handler
      throw error;
    }
    return steal(PyList_AsTuple(keys.ptr()));
  }

  static bool are_ascending_texts(PyObject* keys) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); ++i) {
      PyObject* key = PyList_GET_ITEM(keys, i);
      if (!PyUnicode_CheckExact(key)) return false;
      if (i > 0 && PyUnicode_Compare(PyList_GET_ITEM(keys, i - 1), key) > 0) return false;
    }
    return true;
  }

  const Opener& opener_;
  PyObject* leaves_;
  PyTypeObject* last_leaf_ = nullptr;  // kept alive by its leaf in the list
  py::object none_node_;
  Levels<Open> open_;
};

PyObject* tree_open(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "tree_open";
  if (!has_count(count, 5, kName) || !is_exact(arguments[1], &PySet_Type, kName)) return nullptr;
  return guarded([&]() -> py::object {
    const Opener opener{arguments[1], arguments[2], arguments[3], arguments[4]};
    const py::object leaves = steal(PyList_New(0));
    try {
      const py::object node = Flattening(opener, leaves.ptr()).open(arguments[0]);
      return steal(PyTuple_Pack(2, leaves.ptr(), node.ptr()));
    } catch (const TooDeep&) {  // unlike a RecursionError of a function that the caller passed
      return py::none();
    }
  });
}

PyObject* tree_equal(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 2, "tree_equal")) return nullptr;
  return guarded([&]() -> py::object { return py::bool_(are_equal(arguments[0], arguments[1])); });
}

template <auto function>
PyCFunction as_method() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

std::array<PyMethodDef, 11> g_functions = {{
    {"tree_open", as_method<&tree_open>(), METH_FASTCALL,
     "tree_open(tree: object, plain: set, one_level: collections.abc.Callable, is_leaf: collections.abc.Callable | "
     "None, keys_of: collections.abc.Callable | None) -> tuple | None\n\n"
     "Returns (leaves, node) of a tree, or None for a tree of too many levels. The node of a leaf is None."},
    {"tree_build", as_method<&tree_build>(), METH_FASTCALL,
     "tree_build(node: object, leaves: list, make_node: collections.abc.Callable) -> typing.Any\n\nReturns the tree "
     "of a node with these leaves."},
    {"tree_collect", as_method<&tree_collect>(), METH_FASTCALL,
     "tree_collect(node: object, tree: object, children_of: collections.abc.Callable) -> list | None\n\nReturns the "
     "subtrees at the leaves of the node, or None if the tree has another structure."},
    {"tree_paths", as_method<&tree_paths>(), METH_FASTCALL,
     "tree_paths(node: object, keys_of: collections.abc.Callable) -> list\n\nReturns the path of each leaf (tuple of "
     "keys)."},
    {"tree_rows", as_method<&tree_rows>(), METH_FASTCALL,
     "tree_rows(node: object) -> list\n\nReturns the rows of a node for a pickle."},
    {"tree_of_rows", as_method<&tree_of_rows>(), METH_FASTCALL,
     "tree_of_rows(rows: list) -> typing.Any\n\n"
     "Returns the node from which tree_rows() made these rows. Raises TypeError for other lists."},
    {"tree_num_leaves", as_method<&tree_num_leaves>(), METH_FASTCALL,
     "tree_num_leaves(node: object) -> int\n\nReturns the number of leaves of a node. Raises RecursionError if it has "
     "too many levels."},
    {"tree_text", as_method<&tree_text>(), METH_FASTCALL,
     "tree_text(node: object) -> str\n\nReturns the text of a node, with * for each leaf."},
    {"tree_compose", as_method<&tree_compose>(), METH_FASTCALL,
     "tree_compose(node: object, inner: object) -> typing.Any\n\nReturns the node with `inner` in place of each "
     "leaf."},
    {"tree_equal", as_method<&tree_equal>(), METH_FASTCALL,
     "tree_equal(first: object, second: object) -> bool\n\nReturns whether two nodes are equal."},
    {nullptr, nullptr, 0, nullptr},
}};

}  // namespace
}  // namespace trees

void bind_tree(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  trees::check(PyModule_AddFunctions(internal.ptr(), trees::g_functions.data()) == 0);
}

}  // namespace artifex_devices::bindings
