"""The relations of a project, each linked after its parents: one module for each resource type."""
