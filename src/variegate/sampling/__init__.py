"""Samplers, one algorithm a file."""

from variegate.sampling.spectral import sample_spectral

__all__ = ["sample_spectral"]
