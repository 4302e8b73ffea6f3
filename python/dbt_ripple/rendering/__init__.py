"""Answers as text, JSON, Markdown, GitHub's annotations, SARIF and pictures."""
