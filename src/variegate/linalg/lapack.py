"""LAPACK and BLAS: in place, without the GIL, in kept arrays, and on one thread.

SciPy's wrappers copy arrays that are not in Fortran's order and hold the interpreter
while they work.  These call the same routines on C-ordered arrays as they lie: the
lower triangle of one order is the upper of the other.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char, c_double, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas, cython_lapack

from variegate._typing import FloatArray

# The lower triangle in rows is the upper one in columns.
_LOWER, _TRANSPOSED = c_char(b"U"), c_char(b"T")


def _load_routine(module: Any, name: str, n_arguments: int) -> Any:
    """Return a routine of SciPy's LAPACK or BLAS as a ``ctypes`` function of pointers.

    ``module`` is ``scipy.linalg.cython_lapack`` or ``cython_blas``.
    """
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)


_POTRF = _load_routine(cython_lapack, "dpotrf", 5)
_POTRI = _load_routine(cython_lapack, "dpotri", 5)
_SYRK = _load_routine(cython_blas, "dsyrk", 10)

#: ``dsyev``, for compiled loops to call.  What NumPy's ``eigvalsh`` adds to it, checks
#: and copies, Numba takes seven times as long to compile.
SYMMETRIC_EIGENVALUES = _load_routine(cython_lapack, "dsyev", 9)

#: Columns that LAPACK takes together at most, with room to spare.
_BLOCK = 64


def dsyev_arguments(n: int) -> npt.NDArray[np.int32]:
    """Return the character and integer arguments of LAPACK's ``dsyev``.

    For matrices of up to ``n`` rows: ``"N"`` (no eigenvectors), ``"L"`` (the lower
    triangle), ``n``, the length of the workspace, and the error code.  A character is
    the first byte of its number.
    """
    return np.array([ord("N"), ord("L"), n, (_BLOCK + 2) * n, 0], dtype=np.int32)


def _data_pointer(array: FloatArray) -> int:
    """Return the address of a C-contiguous array; refuse any other."""
    if not array.flags.c_contiguous:
        raise ValueError("the array must be C-contiguous")
    return array.ctypes.data


def cholesky(M: FloatArray) -> bool:
    """Replace the lower triangle of ``M`` (N, N) by its Cholesky factor, in place.

    The rest of ``M`` stays.  Return whether ``M`` is positive definite; where it is
    not, the lower triangle is partly overwritten.
    """
    n, info = c_int(len(M)), c_int()
    _POTRF(byref(_LOWER), byref(n), _data_pointer(M), byref(n), byref(info))
    return bool(info.value == 0)


def inverse_from_cholesky(R: FloatArray) -> None:
    """Replace a lower factor ``R`` by the lower triangle of ``(R Rᵀ)⁻¹``, in place."""
    n, info = c_int(len(R)), c_int()
    _POTRI(byref(_LOWER), byref(n), _data_pointer(R), byref(n), byref(info))


def symmetric_rank_k_update(
    C: FloatArray, X: FloatArray, alpha: float, beta: float
) -> None:
    """Replace the lower triangle of ``C`` (N, N) by that of ``α X Xᵀ + β C``, in place.

    ``X`` is (N, K).  With K = 0 nothing is done: ``C`` is not multiplied by ``β``.
    """
    n, k = c_int(X.shape[0]), c_int(X.shape[1])
    if not k.value:
        return
    factor, share = byref(c_double(alpha)), byref(c_double(beta))
    scaled = factor, _data_pointer(X), byref(k), share, _data_pointer(C), byref(n)
    _SYRK(byref(_LOWER), byref(_TRANSPOSED), byref(n), byref(k), *scaled)


#: The largest number of entries of an array that is kept for reuse.
_LARGEST = 4_000_000

_kept = threading.local()


def scratch_array(name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return an uninitialized array that this thread reuses, for use within one call.

    The next call with the same name and shape returns the same memory, except that
    arrays of more than 4 million entries are new each time.
    """
    if np.prod(shape) > _LARGEST:
        return np.empty(shape)
    arrays: dict[str, FloatArray] = _kept.__dict__
    if name not in arrays or arrays[name].shape != shape:
        arrays[name] = np.empty(shape)
    return arrays[name]


# Threads inside limit_blas_to_one_thread, and the limit that the first of them set.
_limit_lock = threading.Lock()
_n_inside = 0
_limit: Any = None


@cache
def _threadpool_controller() -> Any:
    """Return the controller of BLAS threads, made once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def limit_blas_to_one_thread() -> Iterator[None]:
    """Hold BLAS to one thread for the block, and while other threads run such one."""
    global _n_inside, _limit
    with _limit_lock:
        if _n_inside == 0:
            _limit = _threadpool_controller().limit(limits=1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _limit_lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limit.restore_original_limits()
