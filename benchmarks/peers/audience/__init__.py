"""The subscribers and segments that nuntius expects of its host."""
