"""Imported by each Python below the emulator (tools/driver_lab.py run --execute):
the processes that it starts run there, too."""

import os
import sys

sys.executable = os.environ["RDNA_PYTHON"]
