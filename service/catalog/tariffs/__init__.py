"""What electricity is charged by."""
