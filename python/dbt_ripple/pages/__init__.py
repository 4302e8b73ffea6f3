"""Pages that people read: one document of a project, and what is made of it."""

from __future__ import annotations
