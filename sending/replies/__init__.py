"""The tables behind ``sending.outcomes.classify``: what replies mean, and the words they use."""
