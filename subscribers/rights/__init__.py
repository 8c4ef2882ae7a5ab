"""One person's rights: their data as JSON, and erasure."""
