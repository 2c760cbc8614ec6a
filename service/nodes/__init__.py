"""GPU nodes: enrolment, inventory and leases."""
