"""Cost centres, their budgets, what is committed of them, and what was spent."""
