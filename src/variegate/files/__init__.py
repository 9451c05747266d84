"""Files: atomic writes, run stores, model files and their schema."""
