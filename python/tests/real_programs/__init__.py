"""Real producers of events, as processes of their own: what installs, starts and stops them."""
