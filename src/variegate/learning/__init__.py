"""The objective of learning: from quality and similarity to one function of a vector.

``quality`` and a kernel give ``L``; ``objective`` is the loss and its gradient, with
``large_set`` and ``dual`` for one large ground set and for similarities of low rank;
``problem`` and ``streamed_problem`` put data, kernel and loss together over the
``parameters`` that solvers see.
"""
