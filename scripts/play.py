"""Play an environment with the keyboard: ``python -m gym_custom play``."""

import sys

from extras import extra, run

with extra(""):
    from gym_custom.programs import play

if __name__ == "__main__":
    sys.exit(run(lambda: play.main(prog="python scripts/play.py")))
