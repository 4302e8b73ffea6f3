"""Vertices, fingerprints and edges of a whole project, and walks over them."""
