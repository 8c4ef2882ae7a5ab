"""Limits that all workers share: rates, slow-downs, sessions.

``admission.Limits`` is the way in.
"""
