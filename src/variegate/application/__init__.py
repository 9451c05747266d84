"""Base class, shared helpers and descriptions of text, video and tables."""
