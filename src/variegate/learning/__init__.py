"""The objective of learning: from quality and similarity to one function of a vector.

``quality`` and a kernel give ``L``; ``objective`` is the loss and its gradient, with
``compiled_loss`` for larger problems and ``dual`` for similarities of low rank;
``problem`` and ``batched_problem`` put data, kernel and loss together over the
``parameters`` that solvers see.
"""
