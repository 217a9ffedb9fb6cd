// SPDX-License-Identifier: Apache-2.0
// Trees of plain dicts, lists, tuples and None, taken apart and put together in one call from Python. Whatever else is
// a node goes back to the Python functions that are given (python/artifex_devices/_tree_flatten.py, _tree_def.py),
// which also say what is wrong. Structures are the tuples of _tree_def.py: (type, data, children).
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bindings.h"
#include "recent.h"

namespace artifex_devices::bindings {
namespace {

constexpr int kMostLevels = 1000;  // as _tree_flatten.py says

py::object steal(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

void check(bool went_well) {
  if (!went_well) throw py::error_already_set();
}

PyObject* as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

/// One level of a tree. The limit is our own, so that it is the same in every Python and under any number of calls.
class Level {
 public:
  explicit Level(int* depth) : depth_(depth) {
    if (++*depth_ <= kMostLevels) return;
    --*depth_;
    PyErr_Format(
        PyExc_RecursionError,
        "a tree is nested too deep; expected at most %d levels, got more; put inner ones into a leaf of your own",
        kMostLevels);
    throw py::error_already_set();
  }
  ~Level() { --*depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int* depth_;
};

[[noreturn]] void fail_structure() {
  PyErr_SetString(
      PyExc_TypeError,
      "PyTreeDef: a node is not (type, data, children), or has other keys or leaves than it counts; expected "
      "a structure that tree.structure made, got another; do not make them by hand");
  throw py::error_already_set();
}

/// A node as it must be, so that no structure that somebody made up or unpickled can be read wrongly.
struct Node {
  PyTypeObject* type;
  PyObject* data;
  PyObject* children;
  Py_ssize_t count;

  explicit Node(PyObject* node) {
    if (!PyTuple_CheckExact(node) || PyTuple_GET_SIZE(node) != 3) fail_structure();
    if (!PyType_Check(PyTuple_GET_ITEM(node, 0))) fail_structure();
    type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(node, 0));
    data = PyTuple_GET_ITEM(node, 1);
    children = PyTuple_GET_ITEM(node, 2);
    if (PyTuple_CheckExact(children)) {
      count = PyTuple_GET_SIZE(children);
    } else {
      count = PyLong_CheckExact(children) ? PyLong_AsSsize_t(children) : -1;
      PyErr_Clear();
    }
    if (count < 0) fail_structure();
    if (type == &PyDict_Type && (!PyTuple_CheckExact(data) || PyTuple_GET_SIZE(data) != count)) fail_structure();
  }

  /// None for a leaf.
  PyObject* child(Py_ssize_t i) const { return children_are_leaves() ? Py_None : PyTuple_GET_ITEM(children, i); }
  bool children_are_leaves() const { return PyLong_CheckExact(children); }
  /// None is a node without a level of its own.
  bool is_of_none() const { return type == Py_TYPE(Py_None); }
};

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

auto& g_known_keys = make_recent<KnownKeys, 64>("sorted keys of dicts");

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

class Building {
 public:
  Building(PyObject* leaves, PyObject* make_node) : leaves_(leaves), make_node_(make_node) {}

  py::object build(PyObject* structure) {
    if (structure == Py_None) return next();
    const Node node(structure);
    if (node.is_of_none()) return py::none();
    const Level level(&depth_);
    if (node.children_are_leaves() && node.count > PyList_GET_SIZE(leaves_) - at_) fail_structure();
    if (node.type == &PyDict_Type) {
      py::object made = steal(PyDict_New());
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyObject* value = build_child(node.child(i)).release().ptr();
        const bool is_set = PyDict_SetItem(made.ptr(), PyTuple_GET_ITEM(node.data, i), value) == 0;
        Py_DECREF(value);
        check(is_set);
      }
      return made;
    }
    if (node.type == &PyTuple_Type) {
      py::object made = steal(PyTuple_New(node.count));
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyTuple_SET_ITEM(made.ptr(), i, build_child(node.child(i)).release().ptr());
      }
      return made;
    }
    py::object made = steal(PyList_New(node.count));
    for (Py_ssize_t i = 0; i < node.count; ++i) {
      PyList_SET_ITEM(made.ptr(), i, build_child(node.child(i)).release().ptr());
    }
    if (node.type == &PyList_Type) return made;
    return steal(PyObject_CallFunctionObjArgs(make_node_, as_object(node.type), node.data, made.ptr(), nullptr));
  }

 private:
  py::object build_child(PyObject* child) { return child == Py_None ? next() : build(child); }

  py::object next() {
    if (at_ >= PyList_GET_SIZE(leaves_)) fail_structure();
    return borrow(PyList_GET_ITEM(leaves_, at_++));
  }

  PyObject* leaves_;
  PyObject* make_node_;
  Py_ssize_t at_ = 0;
  int depth_ = 0;
};

class Collecting {
 public:
  Collecting(PyObject* found, PyObject* children_of) : found_(found), children_of_(children_of) {}

  /// False where the tree has another structure.
  bool collect(PyObject* structure, PyObject* tree) {
    if (structure == Py_None) {
      check(PyList_Append(found_, tree) == 0);
      return true;
    }
    const Node node(structure);
    if (Py_TYPE(tree) != node.type) return false;
    if (node.is_of_none()) return true;
    const Level level(&depth_);
    if (node.type == &PyDict_Type) {
      if (PyDict_GET_SIZE(tree) != node.count) return false;
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyObject* value = PyDict_GetItemWithError(tree, PyTuple_GET_ITEM(node.data, i));
        if (value == nullptr) {
          check(PyErr_Occurred() == nullptr);
          return false;
        }
        if (!collect(node.child(i), borrow(value).ptr())) return false;
      }
      return true;
    }
    if (node.type == &PyList_Type || node.type == &PyTuple_Type) return collect_each(node, tree);
    const py::object children = steal(PyObject_CallFunctionObjArgs(children_of_, tree, node.data, nullptr));
    return !children.is_none() && PyTuple_CheckExact(children.ptr()) && collect_each(node, children.ptr());
  }

 private:
  bool collect_each(const Node& node, PyObject* values) {
    for (Py_ssize_t i = 0; i < node.count && i < PySequence_Fast_GET_SIZE(values); ++i) {
      const py::object value = borrow(PySequence_Fast_GET_ITEM(values, i));
      if (!collect(node.child(i), value.ptr())) return false;
    }
    return PySequence_Fast_GET_SIZE(values) == node.count;
  }

  PyObject* found_;
  PyObject* children_of_;
  int depth_ = 0;
};

/// Runs `work`; what it throws becomes the Python error that it is.
template <class Work>
PyObject* guarded(Work&& work) noexcept {
  try {
    return work().release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

bool has_count(Py_ssize_t count, Py_ssize_t expected, const char* name) {
  if (count == expected) return true;
  PyErr_Format(PyExc_TypeError, "%s: %zd arguments; expected %zd", name, count, expected);
  return false;
}

bool is_exact(PyObject* object, PyTypeObject* type, const char* name) {
  if (Py_TYPE(object) == type) return true;
  PyErr_Format(PyExc_TypeError, "%s: got a %s; expected a %s", name, Py_TYPE(object)->tp_name, type->tp_name);
  return false;
}

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

PyObject* tree_build(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "_tree_build";
  if (!has_count(count, 3, kName) || !is_exact(arguments[1], &PyList_Type, kName)) return nullptr;
  return guarded([&] { return Building(arguments[1], arguments[2]).build(arguments[0]); });
}

PyObject* tree_collect(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 3, "_tree_collect")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object found = steal(PyList_New(0));
    const bool fits = Collecting(found.ptr(), arguments[2]).collect(arguments[0], arguments[1]);
    return fits ? found : py::none();
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

std::array<PyMethodDef, 6> g_functions = {{
    {"_tree_open", as_method<&tree_open>(), METH_FASTCALL,
     "_tree_open(tree: object, plain: set, is_node: collections.abc.Callable, open_other: collections.abc.Callable, "
     "sorted_keys: collections.abc.Callable) -> tuple\n\nLeaves and node of a tree; the node of a leaf is None."},
    {"_tree_build", as_method<&tree_build>(), METH_FASTCALL,
     "_tree_build(node: object, leaves: list, make_node: collections.abc.Callable) -> typing.Any\n\nThe tree of a node "
     "with these leaves."},
    {"_tree_collect", as_method<&tree_collect>(), METH_FASTCALL,
     "_tree_collect(node: object, tree: object, children_of: collections.abc.Callable) -> list | None\n\nWhat stands "
     "in "
     "the tree at the leaves of the node; None where it has another structure."},
    {"_tree_check_levels", as_method<&tree_check_levels>(), METH_FASTCALL,
     "_tree_check_levels(node: object) -> None\n\nRaises RecursionError where a node has too many levels."},
    {"_tree_equal", as_method<&tree_equal>(), METH_FASTCALL,
     "_tree_equal(first: object, second: object) -> bool\n\nWhether two nodes are equal."},
    {nullptr, nullptr, 0, nullptr},
}};

}  // namespace

void bind_tree(py::module_& module) { check(PyModule_AddFunctions(module.ptr(), g_functions.data()) == 0); }

}  // namespace artifex_devices::bindings
