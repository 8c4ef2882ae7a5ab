"""The suppression list: files in and out, and letting go."""
