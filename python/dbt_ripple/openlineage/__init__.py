"""What we know, as OpenLineage events: of dbt's runs, of a project without runs, of Python code.

Everything but `track` reads artifacts and an analysis and makes events of the client's classes
(`openlineage.client.event_v2`), so the extra ``openlineage`` has to be installed. `track` imports
the client when the first event is sent.

Events are the same whenever they are made of the same artifacts: a run's id is computed from dbt's
invocation and the node (`invocation.run_id`), and times are dbt's. Whoever sends them twice sends
the same events twice.
"""
