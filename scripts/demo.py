"""Show an environment in a window, or write a GIF or an MP4 of it: ``python -m gym_custom demo``."""

import sys

from extras import extra, run

with extra(""):
    from gym_custom.programs import demo

if __name__ == "__main__":
    sys.exit(run(lambda: demo.main(prog="python scripts/demo.py")))
