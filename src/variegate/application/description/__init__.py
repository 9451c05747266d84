"""What a learned model is like: its weights and its kernel, in words and pictures."""

from variegate.application.description.model import Description, describe

__all__ = ["Description", "describe"]
