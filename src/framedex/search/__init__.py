"""Questions about a dataset's media: what clusters there are, what is wrong, what repeats."""
