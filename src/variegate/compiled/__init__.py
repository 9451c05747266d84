"""Inner loops that NumPy cannot express, compiled by Numba on first use.

Modules here are imported inside the functions that need them, so that importing the
package costs nothing.  Each has a plain NumPy twin in the tests.
"""
