"""What can go wrong, one class for each cause: why, an example, and what to write instead.

Every message says what was attempted and where in the user's file. A class also derives from what
numpy (or Python) raises in the same place, so that `except ValueError` works as it does without
tracing.
"""

from __future__ import annotations

from tinyfuse.errors.base import TinyfuseError
from tinyfuse.errors.calling import (
    ArgumentError,
    NonFiniteError,
    OverlapError,
    SignatureMismatchError,
)
from tinyfuse.errors.compiling import (
    CacheError,
    CompilationError,
    CompilerNotFoundError,
    ScheduleError,
    ThreadCountError,
    VerificationError,
)
from tinyfuse.errors.devices import (
    CudaCompilerNotFoundError,
    CudaError,
    DeviceArrayError,
    DeviceMemoryError,
    EmulationError,
    NoGpuError,
)
from tinyfuse.errors.numpys import (
    ArgumentTypeError,
    AxisError,
    DtypeError,
    IndexingError,
    IntegerRangeError,
    InvalidArgumentError,
    MatrixError,
    NegativePowerError,
    ShapeError,
    ZeroWeightsError,
)
from tinyfuse.errors.tracing import (
    ArrayConversionError,
    BoolConversionError,
    CarryError,
    DataDependentShapeError,
    InPlaceWriteError,
    LeakedTracerError,
    NumberConversionError,
    SideEffectError,
    StageNameError,
    UnlistedAttributeError,
    UnlistedFunctionError,
    UnsupportedArgumentError,
    UnsupportedDtypeError,
)

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "ArrayConversionError",
    "AxisError",
    "BoolConversionError",
    "CacheError",
    "CarryError",
    "CompilationError",
    "CompilerNotFoundError",
    "CudaCompilerNotFoundError",
    "CudaError",
    "DataDependentShapeError",
    "DeviceArrayError",
    "DeviceMemoryError",
    "DtypeError",
    "EmulationError",
    "InPlaceWriteError",
    "IndexingError",
    "IntegerRangeError",
    "InvalidArgumentError",
    "LeakedTracerError",
    "MatrixError",
    "NegativePowerError",
    "NoGpuError",
    "NonFiniteError",
    "NumberConversionError",
    "OverlapError",
    "ScheduleError",
    "ShapeError",
    "SideEffectError",
    "SignatureMismatchError",
    "StageNameError",
    "ThreadCountError",
    "TinyfuseError",
    "UnlistedAttributeError",
    "UnlistedFunctionError",
    "UnsupportedArgumentError",
    "UnsupportedDtypeError",
    "VerificationError",
    "ZeroWeightsError",
]

# Tracebacks say the name that `except` clauses do.
for _name in __all__:
    globals()[_name].__module__ = __name__
