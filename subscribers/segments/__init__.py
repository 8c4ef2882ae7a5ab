"""Segments: who is in them, counts, history."""
