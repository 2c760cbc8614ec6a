"""Changes of what decides who has to approve: proposed now, effective by an approval or after a delay."""
