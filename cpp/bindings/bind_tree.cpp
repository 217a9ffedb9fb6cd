// SPDX-License-Identifier: Apache-2.0
// Trees of plain dicts, lists, tuples and None, taken apart in one call from Python. Whatever else is
// a node goes back to the Python functions that are given (python/artifex_devices/_tree_flatten.py, _tree_def.py),
// which also say what is wrong. Structures are the tuples of _tree_def.py: (type, data, children).
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bindings.h"
#include "recent_cache.h"
#include "tree_node.h"

namespace artifex_devices::bindings {
namespace trees {
namespace {

/// Throws RecursionError where a structure has too many levels below `depth`.
void check_levels(PyObject* structure, int* depth) {
  if (structure == Py_None) return;
  const Node node(structure);
  if (node.is_of_none()) return;
  const Level level(depth);
  if (node.children_are_leaves()) return;
  for (Py_ssize_t i = 0; i < node.count; ++i) check_levels(node.child(i), depth);
}

/// Whether two structures are equal, as their tuples would be.
bool are_equal(PyObject* first, PyObject* second, int* depth) {
  if (first == second) return true;
  if (first == Py_None || second == Py_None) return false;
  const Node a(first);
  const Node b(second);
  if (a.type != b.type || a.count != b.count || a.children_are_leaves() != b.children_are_leaves()) return false;
  const int is_same = PyObject_RichCompareBool(a.data, b.data, Py_EQ);
  check(is_same >= 0);
  if (is_same == 0) return false;
  if (a.is_of_none() || a.children_are_leaves()) return true;
  const Level level(depth);
  for (Py_ssize_t i = 0; i < a.count; ++i) {
    if (!are_equal(a.child(i), b.child(i), depth)) return false;
  }
  return true;
}

/// What _tree_flatten.py gives.
struct Opener {
  PyObject* plain;       // set of types that surely are leaves
  PyObject* is_node;     // of a type
  PyObject* open_other;  // (tree, leaves) -> node
  PyObject* sorted_keys;
};

/// Sorted keys of dicts that came before, all of them texts, by the very keys in the order in which they stand: the
/// dicts of a big tree repeat, and neither sorting nor tuples of keys need to.
struct KnownKeys {
  static constexpr size_t kMost = 16;
  py::object sorted;                           // null: none yet; keeps the keys alive
  py::object node_of_leaves;                   // the node of a dict with these keys and nothing but leaves
  std::array<PyObject*, kMost> standing = {};  // borrowed from `sorted`
  std::array<size_t, kMost> order = {};        // where each of the sorted ones stands

  bool is_empty() const { return !sorted; }
  static bool is_of(const Client&) { return false; }
};

auto& g_known_keys = make_recent_cache<KnownKeys, 64>("sorted keys of dicts");

class Flattening {
 public:
  Flattening(const Opener& opener, PyObject* leaves) : opener_(opener), leaves_(leaves) {}

  /// The node of a tree, None for a leaf, which is appended.
  py::object open(PyObject* tree) {
    PyTypeObject* type = Py_TYPE(tree);
    if (type == last_leaf_) return leaf(tree);
    if (type == &PyDict_Type) return open_dict(tree);
    if (type == &PyList_Type || type == &PyTuple_Type) return open_sequence(tree, type);
    if (tree == Py_None) return none_node();
    const int is_plain = PySet_Contains(opener_.plain, as_object(type));
    check(is_plain >= 0);
    if (is_plain == 0) {
      const int is_node = PyObject_IsTrue(steal(PyObject_CallOneArg(opener_.is_node, as_object(type))).ptr());
      check(is_node >= 0);
      if (is_node != 0) return open_other(tree);
    }
    last_leaf_ = type;
    return leaf(tree);
  }

 private:
  py::object open_other(PyObject* tree) {
    py::object node = steal(PyObject_CallFunctionObjArgs(opener_.open_other, tree, leaves_, nullptr));
    check_levels(node.ptr(), &depth_);
    return node;
  }

  /// The children of one node: counted as long as all are leaves.
  class Children {
   public:
    explicit Children(Py_ssize_t most) : most_(most) {}
    void add(py::object node) {
      if (!node.is_none() && !nodes_) {
        nodes_ = steal(PyTuple_New(most_));
        for (Py_ssize_t i = 0; i < most_; ++i) PyTuple_SET_ITEM(nodes_.ptr(), i, Py_NewRef(Py_None));
      }
      if (!node.is_none()) {
        Py_DECREF(PyTuple_GET_ITEM(nodes_.ptr(), count_));
        PyTuple_SET_ITEM(nodes_.ptr(), count_, node.release().ptr());
      }
      ++count_;
    }
    bool are_leaves() const { return !nodes_; }
    /// Fewer than expected where a list shrank meanwhile.
    py::object take() {
      if (!nodes_) return steal(PyLong_FromSsize_t(count_));
      return count_ == most_ ? std::move(nodes_) : steal(PyTuple_GetSlice(nodes_.ptr(), 0, count_));
    }

   private:
    Py_ssize_t most_;
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

  py::object open_sequence(PyObject* tree, PyTypeObject* type) {
    const Level level(&depth_);
    Children children(PySequence_Fast_GET_SIZE(tree));
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(tree);
    // A list may change while functions of registered types run.
    for (Py_ssize_t i = 0; i < size && i < PySequence_Fast_GET_SIZE(tree); ++i) {
      const py::object child = borrow(PySequence_Fast_GET_ITEM(tree, i));
      children.add(open(child.ptr()));
    }
    return node(type, Py_None, children.take());
  }

  py::object open_dict(PyObject* tree) {
    const Level level(&depth_);
    const Py_ssize_t size = PyDict_GET_SIZE(tree);
    if (size > static_cast<Py_ssize_t>(KnownKeys::kMost)) return open_big_dict(tree);
    std::array<PyObject*, KnownKeys::kMost> keys{};
    std::array<py::object, KnownKeys::kMost> values;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t place = 0;
    size_t count = 0;
    while (count < KnownKeys::kMost && PyDict_Next(tree, &place, &key, &value) != 0) {
      keys[count] = key;
      values[count++] = borrow(value);
    }
    KnownKeys& known = g_known_keys.place(count + (keys[0] == nullptr ? 0 : hash_pointer(keys[0])));
    if (!is_of(known, keys, count) && !learn(&known, tree, keys, count)) return open_big_dict(tree);
    // What is opened below may take the place of `known`.
    const py::object sorted = known.sorted;
    const py::object node_of_leaves = known.node_of_leaves;
    const std::array<size_t, KnownKeys::kMost> order = known.order;
    Children children(size);
    for (size_t i = 0; i < count; ++i) children.add(open(values[order[i]].ptr()));
    if (!children.are_leaves()) return node(&PyDict_Type, sorted.ptr(), children.take());
    if (node_of_leaves) return node_of_leaves;
    py::object made = node(&PyDict_Type, sorted.ptr(), children.take());
    if (known.sorted.is(sorted)) known.node_of_leaves = made;
    return made;
  }

  py::object open_big_dict(PyObject* tree) {
    const py::object sorted = sorted_keys(tree);
    const Py_ssize_t size = PyTuple_GET_SIZE(sorted.ptr());
    std::vector<py::object> values;
    values.reserve(static_cast<size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) values.push_back(value_at(tree, PyTuple_GET_ITEM(sorted.ptr(), i)));
    Children children(size);
    for (const py::object& value : values) children.add(open(value.ptr()));
    return node(&PyDict_Type, sorted.ptr(), children.take());
  }

  static py::object value_at(PyObject* tree, PyObject* key) {
    PyObject* value = PyDict_GetItemWithError(tree, key);
    if (value == nullptr && PyErr_Occurred() == nullptr) PyErr_SetObject(PyExc_KeyError, key);
    check(value != nullptr);
    return borrow(value);
  }

  static bool is_of(const KnownKeys& known, const std::array<PyObject*, KnownKeys::kMost>& keys, size_t count) {
    if (!known.sorted || PyTuple_GET_SIZE(known.sorted.ptr()) != static_cast<Py_ssize_t>(count)) return false;
    return std::equal(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count), known.standing.begin());
  }

  /// False where a key is no text, as only texts are compared without running Python code that may change the dict;
  /// and where it has changed all the same.
  bool learn(KnownKeys* known, PyObject* tree, const std::array<PyObject*, KnownKeys::kMost>& keys, size_t count) {
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
    if (!std::all_of(keys.begin(), end, [](PyObject* key) { return PyUnicode_CheckExact(key); })) return false;
    const py::object sorted = sorted_keys(tree);
    // Making the tuple may run the collector, and with it any code.
    if (PyTuple_GET_SIZE(sorted.ptr()) != static_cast<Py_ssize_t>(count)) return false;
    KnownKeys fresh;
    for (size_t i = 0; i < count; ++i) {
      const auto* stands = std::find(keys.begin(), end, PyTuple_GET_ITEM(sorted.ptr(), static_cast<Py_ssize_t>(i)));
      if (stands == end) return false;
      fresh.order[i] = static_cast<size_t>(stands - keys.begin());
    }
    fresh.sorted = sorted;
    fresh.standing = keys;
    const KnownKeys gone = std::exchange(*known, std::move(fresh));
    return true;
  }

  /// A tuple. Raises what the Python function says of keys that cannot be sorted.
  py::object sorted_keys(PyObject* tree) {
    const py::object keys = steal(PyDict_Keys(tree));
    if (!are_ascending_texts(keys.ptr()) && PyList_Sort(keys.ptr()) < 0) {
      if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
      PyErr_Clear();
      steal(PyObject_CallOneArg(opener_.sorted_keys, tree));  // raises
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
  PyTypeObject* last_leaf_ = nullptr;  // alive as long as its leaf, which stands in the list
  py::object none_node_;
  int depth_ = 0;
};

PyObject* tree_open(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "_tree_open";
  if (!has_count(count, 5, kName) || !is_exact(arguments[1], &PySet_Type, kName)) return nullptr;
  return guarded([&]() -> py::object {
    const Opener opener{arguments[1], arguments[2], arguments[3], arguments[4]};
    const py::object leaves = steal(PyList_New(0));
    const py::object node = Flattening(opener, leaves.ptr()).open(arguments[0]);
    return steal(PyTuple_Pack(2, leaves.ptr(), node.ptr()));
  });
}

PyObject* tree_check_levels(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "_tree_check_levels")) return nullptr;
  return guarded([&]() -> py::object {
    int depth = 0;
    check_levels(arguments[0], &depth);
    return py::none();
  });
}

PyObject* tree_equal(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 2, "_tree_equal")) return nullptr;
  return guarded([&]() -> py::object {
    int depth = 0;
    return py::bool_(are_equal(arguments[0], arguments[1], &depth));
  });
}

template <auto function>
PyCFunction as_method() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

std::array<PyMethodDef, 7> g_functions = {{
    {"_tree_open", as_method<&tree_open>(), METH_FASTCALL,
     "_tree_open(tree: object, plain: set, is_node: collections.abc.Callable, open_other: collections.abc.Callable, "
     "sorted_keys: collections.abc.Callable) -> tuple\n\nLeaves and node of a tree; the node of a leaf is None."},
    {"_tree_build", as_method<&tree_build>(), METH_FASTCALL,
     "_tree_build(node: object, leaves: list, make_node: collections.abc.Callable) -> typing.Any\n\nThe tree of a node "
     "with these leaves."},
    {"_tree_collect", as_method<&tree_collect>(), METH_FASTCALL,
     "_tree_collect(node: object, tree: object, children_of: collections.abc.Callable) -> list | None\n\nWhat stands "
     "in the tree at the leaves of the node; None where it has another structure."},
    {"_tree_paths", as_method<&tree_paths>(), METH_FASTCALL,
     "_tree_paths(node: object, keys_of: collections.abc.Callable) -> list\n\nThe path of each leaf, a tuple of keys."},
    {"_tree_check_levels", as_method<&tree_check_levels>(), METH_FASTCALL,
     "_tree_check_levels(node: object) -> None\n\nRaises RecursionError where a node has too many levels."},
    {"_tree_equal", as_method<&tree_equal>(), METH_FASTCALL,
     "_tree_equal(first: object, second: object) -> bool\n\nWhether two nodes are equal."},
    {nullptr, nullptr, 0, nullptr},
}};

}  // namespace
}  // namespace trees

void bind_tree(py::module_& module) {
  trees::check(PyModule_AddFunctions(module.ptr(), trees::g_functions.data()) == 0);
}

}  // namespace artifex_devices::bindings
