"""DLPack: arrays of any library as a C structure in a capsule of Python's.

The structure is version 0 of https://dmlc.github.io/dlpack, which all libraries understand.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tinyfuse.errors import DeviceArrayError
from tinyfuse.records import dataclass

ON_CUDA = 2
_NAME, _USED = b"dltensor", b"used_dltensor"
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # of kinds of dtypes
_BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ManagedTensor))
_ManagedTensor._fields_ = (
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
)


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's own C interface."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = _python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_set_name = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_is_valid_at = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer_at = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@dataclass(frozen=True, slots=True)
class Managed:
    """An array to hand over. keeps: what owns its memory, until the consumer lets go of it."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    device: int
    keeps: object
    steps: tuple[int, ...]  # between elements of each axis, in elements


_exported: dict[int, tuple[Any, ...]] = {}  # by the address of the structure: what it needs


def export(array: Managed) -> Any:
    """A capsule with the array, to be consumed once."""
    axes = ctypes.c_int64 * max(len(array.shape), 1)
    shape, steps = axes(*array.shape), axes(*array.steps)
    code = _BFLOAT if array.dtype.name == "bfloat16" else _CODES[array.dtype.kind]
    tensor = _Tensor(
        *(array.address, ON_CUDA, array.device, len(array.shape)),
        *(code, array.dtype.itemsize * 8, 1, shape, steps, 0),
    )
    managed = _ManagedTensor(tensor, None, _delete)
    place = ctypes.addressof(managed)
    _exported[place] = (managed, shape, steps, array.keeps)
    return _new(place, _NAME, _destroy)


@_Deleter
def _delete(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


@_Destructor
def _destroy(capsule: int) -> None:
    if _is_valid_at(capsule, _NAME):  # nobody has consumed it
        _exported.pop(_pointer_at(capsule, _NAME), None)


class Imported:
    """Somebody else's array, given back when nothing refers to this any more.

    steps: between elements of each axis, in elements; None: those of C order.
    """

    def __init__(self, managed: Any) -> None:
        self._managed = managed
        tensor = managed.contents.tensor
        axes = range(tensor.ndim)
        self.address: int = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple([tensor.shape[axis] for axis in axes])
        self.steps = tuple([tensor.strides[axis] for axis in axes]) if tensor.strides else None
        self.dtype = _dtype(tensor.code, tensor.bits, tensor.lanes)

    def __del__(self) -> None:
        deleter = self._managed.contents.deleter
        if deleter:
            deleter(self._managed)


def imported(capsule: Any) -> Imported:
    """The array of a capsule, which is consumed by this.

    Raises DeviceArrayError where it is none that can be consumed, or of another kind of numbers.
    """
    if not _is_valid(capsule, _NAME):
        raise DeviceArrayError(
            f"{capsule!r} holds no array of DLPack, or one that was taken before"
        )
    managed = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_ManagedTensor))
    found = Imported(managed)
    _set_name(capsule, _USED)
    return found


def _dtype(code: int, bits: int, lanes: int) -> np.dtype:
    if code == _BFLOAT and (bits, lanes) == (16, 1):
        return _bfloat16()
    kinds = {number: kind for kind, number in _CODES.items()}
    if code not in kinds or lanes != 1 or bits % 8:
        raise DeviceArrayError(
            f"an array of DLPack's type ({code}, {bits}, {lanes}) is none of numpy's"
        )
    return np.dtype(f"{kinds[code]}{bits // 8}")


def _bfloat16() -> np.dtype:
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise DeviceArrayError(
            "arrays of bfloat16 need the package ml_dtypes: pip install 'tinyfuse[bfloat16]'"
        ) from None
    return np.dtype(ml_dtypes.bfloat16)
