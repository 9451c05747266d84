"""Linear algebra in log space, and the ways to hold a kernel.

``determinants`` is the heart; ``psd`` tells what is positive semidefinite, ``spectrum``
eigenpairs, ``lapack`` works on large matrices in place, ``cosine`` compares directions,
``compiled`` has the loops that Numba compiles, and ``representations`` hold the kernel
of an ensemble.
"""
