"""What a transformer encoder is; how one is loaded, trained and judged."""
