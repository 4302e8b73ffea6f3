"""Assets that dbt does not build, over the graph of a dbt project."""
