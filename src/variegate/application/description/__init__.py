"""What a learned model is like: its weights and its kernel, in words and pictures."""
