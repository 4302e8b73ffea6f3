"""The load pipeline: from rows of plain types to Spark tables. Imports pyspark only when called."""
