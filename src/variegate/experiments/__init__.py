"""The paper's experiments, one package each; the command line only calls them."""
