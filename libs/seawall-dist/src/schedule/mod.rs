//! Jobs that run once across all processes.
