"""For all tests: an interrupt raises KeyboardInterrupt, also where the tests were started in the background with interrupts ignored."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
