"""What Python calls of NVIDIA's compiler as a library, as in `declarations`.

A test generates it anew.

    int nvrtcVersion(int *major, int *minor);
    const char *nvrtcGetErrorString(int code);
    int nvrtcCreateProgram(void **program, const char *text, const char *name, int count, const char *const *headers, const char *const *names);
    int nvrtcCompileProgram(void *program, int count, const char *const *options);
    int nvrtcGetCUBINSize(void *program, size_t *size);
    int nvrtcGetCUBIN(void *program, char *cubin);
    int nvrtcGetProgramLogSize(void *program, size_t *size);
    int nvrtcGetProgramLog(void *program, char *log);
    int nvrtcDestroyProgram(void **program);
"""

from __future__ import annotations

import _cffi_backend

# fmt: off
ffi = _cffi_backend.FFI('tinyfuse.runtime.nvrtc_declarations',
    _version = 0x2601,
    _types = b'\x00\x00\x0C\x0D\x00\x00\x07\x01\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x01\x03\x00\x00\x04\x11\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x13\x03\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x08\x11\x00\x00\x1F\x03\x00\x00\x0C\x11\x00\x00\x07\x01\x00\x00\x0C\x03\x00\x00\x0F\x11\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x21\x03\x00\x00\x1F\x03\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x13\x11\x00\x00\x07\x01\x00\x00\x0F\x11\x00\x00\x00\x0F\x00\x00\x01\x0D\x00\x00\x13\x11\x00\x00\x20\x03\x00\x00\x00\x0F\x00\x00\x02\x01\x00\x00\x1C\x01\x00\x00\x00\x01',
    _globals = (b'\x00\x00\x16\x23nvrtcCompileProgram',0,b'\x00\x00\x0A\x23nvrtcCreateProgram',0,b'\x00\x00\x07\x23nvrtcDestroyProgram',0,b'\x00\x00\x12\x23nvrtcGetCUBIN',0,b'\x00\x00\x1B\x23nvrtcGetCUBINSize',0,b'\x00\x00\x00\x23nvrtcGetErrorString',0,b'\x00\x00\x12\x23nvrtcGetProgramLog',0,b'\x00\x00\x1B\x23nvrtcGetProgramLogSize',0,b'\x00\x00\x03\x23nvrtcVersion',0),
)
