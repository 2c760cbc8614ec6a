"""The process: its settings, its storage, its wiring, its jobs and its API document."""
