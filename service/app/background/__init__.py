"""The service's own work: its kinds of jobs, the processes that do them, and what callers see of them."""
