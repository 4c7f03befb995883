"""Ways to make an encoder smaller or faster, and how that is measured."""
