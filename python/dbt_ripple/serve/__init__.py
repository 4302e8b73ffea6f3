"""`dbt-ripple serve`: the collector, the explorer and a small REST API, in one process.

`api` has the paths, `openapi` what is sent and answered, and describes both, `slack` is the slash
command. What is asked about is opened by the command line, which gives `api.Answers`.
"""
