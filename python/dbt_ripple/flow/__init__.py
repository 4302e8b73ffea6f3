"""Compiled SQL -> what each output column and the row set depend on, with fingerprints.

`lower` turns one query into a plain, parent-free form; `link` resolves that form against the
columns of the parents. This room is the only one that imports sqlglot.
"""
