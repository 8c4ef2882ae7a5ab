"""``python -m sending.sink``: the sink as a process of its own, without Django."""

import sys

from .cli import main

sys.exit(main())
