"""The version, read by the build and by the package alike."""

__version__ = "0.1.0"
