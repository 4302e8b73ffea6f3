"""dbt_ripple: column by column, what breaks if I change this dbt project?

dbt imports every top-level module named ``dbt_*`` at each of its commands, so this file must stay
instant and free of side effects: nothing is imported here.
"""

__version__ = "0.1.0"
