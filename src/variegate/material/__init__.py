"""Data as groups of items, to show, to learn from and to choose from.

====================  ================================================================
``opening``           opens a table, documents, videos or pictures as a ``Material``
``base``              the interface of all materials
``selecting``         chooses items of new data by a model
``contact_sheet``     a page of chosen items
====================  ================================================================
"""
