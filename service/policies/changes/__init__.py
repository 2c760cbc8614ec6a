"""Changes of policies, budgets and settings that take effect by an approval or after a delay."""
