"""The C that Python calls, declared to cffi once for all libraries.

It stands here as cffi's generator for modules without a compiler (`emit_python_code`) writes it:
so that no process has to import a parser of C before its first call. A test generates it anew.

    typedef struct tf_pool tf_pool;
    typedef int tf_entry(void *const *arrays, void *scratch, const tf_pool *pool);
    typedef const tf_pool *tf_pool_of(int threads);
    void *dlopen(const char *path, int flags);
    void *dlsym(void *library, const char *symbol);
    int dlclose(void *library);
    char *dlerror(void);
"""

from __future__ import annotations

import _cffi_backend

# fmt: off
ffi = _cffi_backend.FFI('tinyfuse.runtime.declarations',
    _version = 0x2601,
    _types = b'\x00\x00\x15\x0D\x00\x00\x00\x0F\x00\x00\x0B\x0D\x00\x00\x04\x03\x00\x00\x18\x03\x00\x00\x17\x03\x00\x00\x00\x0F\x00\x00\x0B\x0D\x00\x00\x04\x11\x00\x00\x00\x0F\x00\x00\x05\x0D\x00\x00\x07\x01\x00\x00\x00\x0F\x00\x00\x04\x0D\x00\x00\x16\x03\x00\x00\x07\x01\x00\x00\x00\x0F\x00\x00\x04\x0D\x00\x00\x04\x11\x00\x00\x0E\x11\x00\x00\x00\x0F\x00\x00\x16\x03\x00\x00\x02\x01\x00\x00\x00\x09\x00\x00\x00\x01',
    _globals = (b'\x00\x00\x07\x23dlclose',0,b'\x00\x00\x00\x23dlerror',0,b'\x00\x00\x0D\x23dlopen',0,b'\x00\x00\x11\x23dlsym',0),
    _struct_unions = ((b'\x00\x00\x00\x17\x00\x00\x00\x10tf_pool',),),
    _typenames = (b'\x00\x00\x00\x02tf_entry',b'\x00\x00\x00\x17tf_pool',b'\x00\x00\x00\x0Atf_pool_of'),
)
