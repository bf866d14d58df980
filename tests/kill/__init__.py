"""Kills of processes in the middle of their work: what was there is there afterwards, and the rest can be done.

A trial kills a process at a moment that its name draws, checks what it left, finishes the work, and compares the end
with that of an undisturbed run. Where the work ended before its kill, the kill is tried again earlier, and fails after
some tries: so each trial that passes had one. ``make test-all`` runs few trials, ``make soak`` many; a trial runs alone
by its name: ``pytest --hypothesis-profile=soak "tests/kill/test_jobs.py::test_job__killed[tag-7]"``.
"""
