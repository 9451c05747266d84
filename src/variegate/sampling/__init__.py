"""Samplers, one algorithm a file."""

from variegate.sampling.spectral import sample_spectral, sample_spectral_k

__all__ = ["sample_spectral", "sample_spectral_k"]
