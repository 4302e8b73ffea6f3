"""dbt_ripple: which columns, tests and people a change to a dbt project affects.

dbt imports every top-level module named ``dbt_*`` at each of its commands, so this file must be
fast and free of side effects: nothing is imported here.
"""

__version__ = "0.1.0"
