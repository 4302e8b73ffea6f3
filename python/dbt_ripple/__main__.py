"""`python -m dbt_ripple`: the command line of this very Python's installation."""

from dbt_ripple.cli import main

if __name__ == "__main__":
    main()
