"""The plain form: four questions on one page, answered by a report, without scripts."""
