"""System checks: what would lose work or confuse people later is said at start, with what to do."""
