"""Call sequences of real clients, as plain requests that know nothing of this package."""
