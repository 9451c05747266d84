"""Tables in folders: many files with the same columns, on one machine or on an engine.

At home a :class:`~variegate.tables.folder.files.FolderTable` is read as one table, file
after file.  On an :class:`~variegate.partitions.Engine` every file is a partition,
worked on by itself, so that a group must lie in one file:

- :mod:`~variegate.tables.folder.scan` counts groups, and refuses those that lie in
  several files (:mod:`~variegate.tables.folder.straddling`);
- :mod:`~variegate.tables.folder.learning` learns (:func:`learn_folder`) from examples,
  a :class:`~variegate.tables.folder.source.FolderSource`;
- :mod:`~variegate.tables.folder.selecting` chooses (:func:`select_folder`), one file
  for each that is there;
- :mod:`~variegate.tables.folder.judging` judges (:func:`evaluate_folder`), and
  :mod:`~variegate.tables.folder.reporting` reports (:func:`report_folder`);
- :mod:`~variegate.tables.folder.gather` writes a folder in which no group lies in
  several files (:func:`gather`).

Groups are numbered as in the one table that the files are at home, in the order of
their names, so that the same groups are held out and drawn, and the same is learned.
"""
