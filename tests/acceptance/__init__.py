"""The app from outside: a server and commands in processes of their own, a browser, and the library beside them.

The tests of ``tests/browser`` look at more cases, with the service in their own process; here are those that need
another process, or many rows.
"""
