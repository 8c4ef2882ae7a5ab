"""Joining: sign-up forms, double opt-in with evidence, limits against mail bombing."""
