"""Pages of the fleet: nodes, their results beside what is expected, and the calibrations that follow."""
