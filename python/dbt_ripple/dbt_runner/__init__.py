"""Running dbt: both sides of a comparison compiled, and selections built and tested."""
