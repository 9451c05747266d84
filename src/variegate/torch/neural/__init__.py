"""A determinantal point process whose quality and similarity are networks."""

from variegate.torch.neural.estimator import NeuralDPP
from variegate.torch.neural.training import Epoch

__all__ = ["Epoch", "NeuralDPP"]
