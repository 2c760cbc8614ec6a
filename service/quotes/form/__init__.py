"""Form for the four questions on one page without scripts, answered by a report."""
