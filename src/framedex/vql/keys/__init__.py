"""The keys of the language, a module for each: its test, and the function that makes it as an expression."""
