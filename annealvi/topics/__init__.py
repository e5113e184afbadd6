"""From texts to topics that people can read."""
