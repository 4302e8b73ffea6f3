"""OpenLineage events that other programs send: checked, and kept on disk for `load`.

`intake` reads bytes that may be hostile, `event_schemas` checks events against the published JSON
schemas, `event_store` keeps them. `app` and `serve` are the HTTP server; only these two import
uvicorn, starlette and prometheus-client, and `event_schemas` jsonschema-rs: the extra ``collect``.

Nothing here knows dbt or our lineage.
"""
