"""Collected events as a part of the graph: what other programs tell of their jobs, datasets and runs.

`stored_events` reads a store and keeps of each job what it last read and wrote; `lineage_facets` says what
that means column by column; `dataset_identities` finds the relation of dbt, or the declared asset, that a
dataset is; `collected_assets` makes declared assets of it all, so that the graph has one kind of node for
what dbt does not build. The same events give the same assets in any order, however often each comes.
"""
