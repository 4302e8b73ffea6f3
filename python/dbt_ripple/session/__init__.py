"""What is open while questions are answered: a project, its two sides, its assets; `project` is the door.

The command line and a program that imports `dbt_ripple.Project` ask here; nothing is printed on stdout.
"""
