"""What models, macros and hooks say before Jinja is rendered: parsed once, asked by visitors."""
