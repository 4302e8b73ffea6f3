"""OpenLineage events that other programs send: checked, and kept on disk for `load`.

`intake` reads bytes that may be hostile, `event_schemas` checks events against the published JSON
schemas, `event_store` keeps them. `serve` is the HTTP server. Uvicorn, starlette, prometheus-client and,
for `event_schemas`, jsonschema-rs are the extra ``collect``.

Nothing here knows dbt or our lineage.
"""
