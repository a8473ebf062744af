"""What pyproject.toml cannot say: the C that ships lies in the package, and one part is compiled.

tinyfuse works without the extension module, which only makes calls cheaper. So where there is no C
compiler, or no headers of Python's, it is left out.
"""

from __future__ import annotations

import numpy as np
from setuptools import Extension, find_packages, setup

SOURCES = ("dispatch", "direct_call", "call", "memory")

setup(
    packages=[*find_packages(include=["tinyfuse", "tinyfuse.*"]), "tinyfuse.runtime_c"],
    package_dir={"tinyfuse.runtime_c": "runtime_c"},
    ext_modules=[
        Extension(
            "tinyfuse._dispatch",
            [f"runtime_c/{name}.c" for name in SOURCES],
            depends=["runtime_c/dispatch.h"],
            include_dirs=[np.get_include()],
            extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
            optional=True,
        )
    ],
)
