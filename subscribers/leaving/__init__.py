"""Leaving: the preferences page, a change of address."""
