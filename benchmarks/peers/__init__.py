"""Other people's senders, each in an environment of its own, on the same server, sink and message.

A module is run by its environment's Python, as a small Django site in one process:

    python -m benchmarks.peers.post_office fill 5000       rows to send, nothing else in the queue
    python -m benchmarks.peers.post_office send SETTING    one drain with that setting, as JSON
    python -m benchmarks.peers.post_office left            how many were not sent

``SETTINGS`` are the candidates for its best setting, first the one that is likely; ``GUARANTEE``
says what is left after ``kill -9``, as its source has it. The packages and their versions are in
the ``.txt`` beside it. Modules import their peer in functions only: the harness reads them, too.
"""
