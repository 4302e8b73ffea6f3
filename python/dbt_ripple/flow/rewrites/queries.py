"""Rules of queries: what stands in FROM, WHERE, GROUP BY and set operations."""
