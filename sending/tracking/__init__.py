"""What providers tell by webhook: ``webhooks`` takes it in, ``inbox`` stores and applies it."""
