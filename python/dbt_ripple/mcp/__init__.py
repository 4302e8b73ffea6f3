"""The same answers for agents, over the Model Context Protocol: `tools` says what can be asked, `server` serves it."""
