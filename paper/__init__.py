"""The paper's experiments, one package each; ``python -m paper`` runs them."""
