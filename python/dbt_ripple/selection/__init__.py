"""Which tests a change can break, what CI must build for them, and why."""
