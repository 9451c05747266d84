"""Linear algebra in log space, and the ways to hold a kernel.

``determinants`` is the heart; ``psd`` tells what is positive semidefinite, ``spectrum``
eigenpairs, ``lapack`` and ``scratch`` keep large matrices in place, ``cosine`` compares
directions, and ``representations`` hold the kernel of an ensemble.
"""
