"""Whole experiments: a typed config in, a Result out."""
