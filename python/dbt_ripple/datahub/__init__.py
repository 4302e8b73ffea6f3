"""What is known of a project as DataHub's metadata, made by the classes of its own client.

Only `proposals` and `assertions` import that client (the extra ``datahub``), when they are asked for.
"""
