"""Linear algebra in log space, and the ways to hold a kernel.

``determinants`` is the heart; ``representations`` hold the kernel of an ensemble, and
``compiled`` has the loops that Numba compiles.
"""
