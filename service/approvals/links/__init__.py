"""Links for a single decision by an approver without credentials."""
