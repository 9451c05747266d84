"""Samplers, one algorithm a file."""

from variegate.sampling.chain import ChainSamples, sample_chain
from variegate.sampling.spectral import sample_spectral, sample_spectral_k

__all__ = ["ChainSamples", "sample_chain", "sample_spectral", "sample_spectral_k"]
