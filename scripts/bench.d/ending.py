"""How a script ends that has started servers: in order, also where a signal ends it."""

import signal


def in_order():
    """Lets SIGTERM and SIGHUP unwind the program, so that what it has started is stopped."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup a hang-up is to be survived.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def end(number, _frame):
    # Another one must not break off the stopping.
    for other in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)
