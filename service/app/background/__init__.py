"""Background work of the service: its kinds of jobs, its workers and the operations on jobs."""
