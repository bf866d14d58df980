"""The HTTP service: it translates requests into calls of the hub and the library, and their answers into responses."""
