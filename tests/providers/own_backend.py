"""A project's own backend, built on one of anymail's."""

from anymail.backends.resend import EmailBackend as Resend


class EmailBackend(Resend):
    pass
