// SPDX-License-Identifier: Apache-2.0
// The frames of the running Python program. The public functions of CPython create an object for each frame that they
// return, which takes longer than all that is done with it here; so its internal structs are read, as greenlet does.
#pragma once

#include <pybind11/pybind11.h>
#if PY_VERSION_HEX >= 0x030B0000
#define Py_BUILD_CORE 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <internal/pycore_frame.h>
#pragma GCC diagnostic pop
#undef Py_BUILD_CORE
#else
#include <frameobject.h>
#endif

namespace artifex_devices::bindings {

#if PY_VERSION_HEX >= 0x030B0000
using PythonFrame = _PyInterpreterFrame;
#else
using PythonFrame = PyFrameObject;
#endif

/// The frame, or the first one outside it that has begun to run; null if there is none.
inline PythonFrame* first_complete(PythonFrame* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  while (frame != nullptr && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
#endif
  return frame;
}

/// The innermost frame of this thread or greenlet; null if there is none. Needs the GIL, as all of these.
inline PythonFrame* innermost_frame() {
  PyThreadState* const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
  return first_complete(thread->current_frame);
#elif PY_VERSION_HEX >= 0x030B0000
  return first_complete(thread->cframe->current_frame);
#else
  return thread->frame;
#endif
}

inline PythonFrame* outer_frame(const PythonFrame* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return first_complete(frame->previous);
#else
  return frame->f_back;
#endif
}

inline PyCodeObject* code_of(PythonFrame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
  return _PyFrame_GetCode(frame);
#else
  return frame->f_code;
#endif
}

inline PyObject* globals_of(const PythonFrame* frame) { return frame->f_globals; }

/// Place of the instruction that the frame executes, for PyCode_Addr2Line.
inline int instruction_of(PythonFrame* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
#else
  return frame->f_lasti * static_cast<int>(sizeof(_Py_CODEUNIT));
#endif
}

}  // namespace artifex_devices::bindings
