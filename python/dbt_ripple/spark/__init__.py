"""The load pipeline: rows of a snapshot into Spark tables, and the session it runs on."""
