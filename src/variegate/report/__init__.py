"""How results are shown: the words of pages and the look of figures."""
