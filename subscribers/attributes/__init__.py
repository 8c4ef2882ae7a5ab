"""Attributes: their kinds, typed values."""
