"""Compiled SQL -> what each output column and the row set depend on, with fingerprints.

`lower` turns one query into a plain form that needs no parent (by the modules of `lowering`); `link` looks
up its names among the columns of the parents (by those of `clauses`). This room is the only one that imports sqlglot.
"""
