// SPDX-License-Identifier: Apache-2.0
// The text of a structure, as in JAX, and structures composed of two.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

class Text {
 public:
  explicit Text(PyObject* parts) : parts_(parts) {}

  void add(PyObject* structure) {
    begin(structure);
    while (!open_.empty()) {
      Open& inner = open_.innermost();
      const Node& node = inner.visit.node;
      if (!inner.visit.has_next()) {
        add_text(inner.end);
        open_.leave();
        continue;
      }
      if (inner.visit.next > 0) add_text(", ");
      if (node.type == &PyDict_Type)
        add_part(steal(PyUnicode_FromFormat("%R: ", PyTuple_GET_ITEM(node.data, inner.visit.next))));
      begin(inner.visit.next_child());
    }
  }

 private:
  struct Open {
    NodeVisit visit;
    const char* end;
  };

  void begin(PyObject* structure) {
    if (structure == Py_None) return add_text("*");
    const Node node(structure);
    if (node.is_of_none()) return add_text("None");
    if (node.type == &PyDict_Type) return enter(node, "{", "}");
    if (node.type == &PyList_Type) return enter(node, "[", "]");
    if (node.type == &PyTuple_Type) return enter(node, "(", node.count == 1 ? ",)" : ")");
    const py::object name = steal(PyObject_GetAttrString(as_object(node.type), "__name__"));
    if (node.data == Py_None) {
      add_part(steal(PyUnicode_FromFormat("CustomNode(namedtuple[%U], ", name.ptr())));
    } else {
      add_part(steal(PyUnicode_FromFormat("CustomNode(%U[%S], ", name.ptr(), node.data)));
    }
    enter(node, "[", "])");
  }

  void enter(const Node& node, const char* begin, const char* end) {
    add_text(begin);
    open_.enter({{node}, end});
  }

  void add_text(const char* text) { add_part(steal(PyUnicode_FromString(text))); }
  void add_part(const py::object& part) { check(PyList_Append(parts_, part.ptr()) == 0); }

  PyObject* parts_;
  Levels<Open> open_;
};

class Composing {
 public:
  explicit Composing(PyObject* inner) : inner_(inner) {}

  py::object compose(PyObject* structure) {
    py::object done = begin(structure);
    while (!done || !open_.empty()) {
      Open& inner = open_.innermost();
      if (done) PyTuple_SET_ITEM(inner.children.ptr(), inner.visit.next - 1, done.release().ptr());
      if (inner.visit.has_next()) {
        done = begin(inner.visit.next_child());
      } else {
        const Node& node = inner.visit.node;
        done = steal(PyTuple_Pack(3, as_object(node.type), node.data, inner.children.ptr()));
        open_.leave();
      }
    }
    return done;
  }

 private:
  struct Open {
    NodeVisit visit;
    py::object children;
  };

  /// Returns the node of a leaf or of a node without children; otherwise begins the node, and returns null.
  py::object begin(PyObject* structure) {
    if (structure == Py_None) return borrow(inner_);
    const Node node(structure);
    if (node.count == 0) return borrow(structure);
    open_.enter({{node}, steal(PyTuple_New(node.count))});
    return {};
  }

  PyObject* inner_;
  Levels<Open> open_;
};

}  // namespace

PyObject* tree_text(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "tree_text")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object parts = steal(PyList_New(0));
    Text(parts.ptr()).add(arguments[0]);
    return steal(PyUnicode_Join(py::str("").ptr(), parts.ptr()));
  });
}

PyObject* tree_compose(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 2, "tree_compose")) return nullptr;
  return guarded([&]() -> py::object {
    if (arguments[1] != Py_None) static_cast<void>(Node(arguments[1]));
    return arguments[1] == Py_None ? borrow(arguments[0]) : Composing(arguments[1]).compose(arguments[0]);
  });
}

}  // namespace artifex_devices::bindings::trees
