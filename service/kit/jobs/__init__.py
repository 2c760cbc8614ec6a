"""Background jobs: rows of one table, leased to any number of processes and run in short chunks."""
