"""Forms of the admin: every entrance stores an address in its one written form."""
