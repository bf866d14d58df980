"""A package whose contributions to Framedex cannot be used."""
