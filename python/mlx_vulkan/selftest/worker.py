"""The process that runs checks; runner.py starts it.

Reads jobs from standard input, each a line of JSON: ids, seed, repeats. Writes a
line of JSON before each check, {"begin": id}, one after it, {"end": id, ...}, and
{"idle": true} after a job. It ends where there are no more jobs, and early where
the device no longer works; the runner starts another.
"""

import json
import os
import sys
import time
import traceback

from . import check, plan


def works(mx) -> bool:
    """Whether the device still computes after an exception."""
    try:
        return mx.sum(mx.ones((4096,)) + 1).item() == 8192
    except Exception:
        return False


def where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno}"


def failure_of(error: Exception) -> dict:
    text = str(error)
    if isinstance(error, check.WrongValues):
        return {"kind": "values", "text": text}
    kind = "hang" if "MLX_VK_TIMEOUT" in text else "exception"
    return {"kind": kind, "text": f"{type(error).__name__} at {where(error)}: {text}"}


def run_check(mx, one: check.Check, seed: int, repeats: int) -> dict:
    """The event that ends the check; times in seconds."""
    started = time.perf_counter()
    failure, facts = None, {}
    try:
        facts = check.run(mx, one, seed, repeats)
    except Exception as error:
        failure = failure_of(error)
        facts = check.describe(one, seed)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "failure": failure, "facts": facts}


def main() -> int:
    # What libraries print must not come between the lines of the protocol.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**event):
        lines.write(json.dumps(event) + "\n")

    import mlx.core as mx

    mx.set_default_device(mx.gpu)
    known = plan.all_checks()
    for line in sys.stdin:
        job = json.loads(line)
        for check_id in job["ids"]:
            one = plan.find(check_id, known)
            say(begin=check_id)
            event = run_check(mx, one, job["seed"], job["repeats"])
            say(end=check_id, **event)
            failure = event["failure"]
            if failure and failure["kind"] != "values" and not works(mx):
                # The device is lost or stuck: nothing is left to be torn down.
                os._exit(0)
        # Other workers need memory on this GPU, too.
        mx.clear_cache()
        say(idle=True)
    # The ordinary way, which stores what the driver compiled for the next worker.
    return 0


if __name__ == "__main__":
    sys.exit(main())
