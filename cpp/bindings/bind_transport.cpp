// SPDX-License-Identifier: Apache-2.0
// The core's Transport by artifex_devices.distributed.
#include <pybind11/stl.h>

#include <cstring>

#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/value_digest.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "python_modules.h"
#include "python_transport.h"

namespace artifex_devices::bindings {
namespace {

py::object config_value(const char* name) {
  return py::module_::import(python_modules::kConfig).attr("config").attr(name);
}

// Calls a function of an object of Python.
template <class... Arguments>
py::object call_method(const py::object& object, const char* name, const Arguments&... arguments) {
  return call_python(checked(PyObject_GetAttrString(object.ptr(), name)), arguments...);
}

class PythonExchange final : public Exchange {
 public:
  PythonExchange(py::object exchange) : exchange_(std::move(exchange)) {}
  PythonExchange(const PythonExchange&) = delete;
  PythonExchange& operator=(const PythonExchange&) = delete;
  ~PythonExchange() override {
    with_gil([&] { exchange_ = py::object(); });
  }

  void begin(const std::string& identity) override {
    with_gil([&] { call_method(exchange_, "begin", py::str(identity)); });
  }
  void send(BufferRef memory, int64_t bytes, ProcessIndex peer) override {
    start("send", std::move(memory), bytes, peer);
  }
  void receive(BufferRef memory, int64_t bytes, ProcessIndex peer) override {
    start("receive", std::move(memory), bytes, peer);
  }
  std::vector<int64_t> wait_some() override {
    return with_gil([&] { return call_method(exchange_, "wait_some").cast<std::vector<int64_t>>(); });
  }
  void finish() override {
    with_gil([&] { call_method(exchange_, "finish"); });
  }
  void give_up(const std::exception& error) override {
    with_gil([&] {
      const py::error_scope pending;  // the exception of a signal handler
      call_method(exchange_, "give_up", py::str(text_of_error(error, pending.type)));
    });
  }

 private:
  void start(const char* method, BufferRef memory, int64_t bytes, ProcessIndex peer) {
    with_gil([&] {
      const py::object view = ndarray_of_buffer(std::move(memory), Dims{bytes}, Dims{1}, DType::kUInt8, true);
      call_method(exchange_, method, view, py::int_(peer.number()));
    });
  }

  py::object exchange_;
};

class PythonTransport final : public Transport {
 public:
  std::vector<std::string> agree(const JointOperation& operation, const std::string& identity,
                                 const std::string& payload) override {
    return with_gil([&] {
      return call("agree", operation, py::str(identity), py::bytes(payload)).cast<std::vector<std::string>>();
    });
  }
  void refuse(const JointOperation& operation, const std::exception& error) override {
    with_gil([&] {
      const py::error_scope pending;  // the exception of a signal handler
      call("refuse", operation, py::str(text_of_error(error, pending.type)));
    });
  }
  std::unique_ptr<Exchange> exchange(const JointOperation& operation) override {
    return with_gil([&] { return std::make_unique<PythonExchange>(call("ReshardExchange", operation)); });
  }
  int64_t buffer_bytes() const override {
    return with_gil([] { return config_value("distributed_buffer_bytes").cast<int64_t>(); });
  }
  bool compares_values() const override {
    return with_gil([] { return config_value("distributed_checks").cast<bool>(); });
  }

 private:
  template <class... Arguments>
  static py::object call(const char* function, const JointOperation& operation, const Arguments&... arguments) {
    return call_python(python_modules::kExchange, function, py::cast(operation.client), py::str(operation.text),
                       py::cast(numbers(operation.processes)), arguments...);
  }
};

}  // namespace

Transport& python_transport() {
  static PythonTransport transport;
  return transport;
}

void bind_transport(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "value_digest",
      [](const py::object& array) {
        const HostView view = leaf_from_python(array, "value_digest").view;
        const auto digest = run_copy(is_brief_copy(view.nbytes()), [&] { return digest_of_value(view); });
        return py::bytes(reinterpret_cast<const char*>(digest.data()), sizeof(digest));
      },
      py::arg("array"), "Returns 16 bytes that are equal for ndarrays of equal shape, dtype and bits.");
}

}  // namespace artifex_devices::bindings
