"""Folders of tables: many files with the same columns, read as one table or one by one.

Without an engine a :class:`~variegate.tables.FolderTable` is read as one table, file
after file.  On an :class:`~variegate.partitions.Engine` every file is a partition, so
that a group must lie in one file: :func:`~variegate.tables.gather` sees to that.
Groups are numbered as in the one table, in the order of the files' names, so that the
same groups are held out and drawn, and the same is learned.
"""
