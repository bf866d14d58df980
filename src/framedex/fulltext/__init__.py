"""Full-text search: a tokenizer, a query language, an inverted index of texts by their content, and BM25F.

A *text* is the content of one field of a row: a caption, all labels, or a file name. The index stores each text once,
under a hash of it, and no row numbers; the texts of rows are looked up for each generation of a dataset. So after an
edit, an addition, a deletion, a restore or a clone only new texts are indexed.

- :mod:`~framedex.fulltext.tokenizer`: words, stems, stop words.
- :mod:`~framedex.fulltext.query`: the syntax tree of a query.
- :mod:`~framedex.fulltext.segment`: an immutable part of the index, with its vocabulary and postings.
- :mod:`~framedex.fulltext.segment_file`, :mod:`~framedex.fulltext.store`: segments on the disk, and their merges.
- :mod:`~framedex.fulltext.rows`, :mod:`~framedex.fulltext.ranking`: the rows of a generation, and their scores.
"""
