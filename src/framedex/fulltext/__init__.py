"""Full-text search: words, the query language, an index of texts by content, and BM25F over them.

A *text* is the content of one field of a row: a caption, all labels, or a file name. The index holds each text once, by
a hash of it, and knows nothing of rows; which rows have which texts is looked up for each state of a table. So edits,
additions, deletions and restores need nothing of the index but that new texts be added to it.
"""
