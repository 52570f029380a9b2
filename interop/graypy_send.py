"""Logs through graypy as told, one JSON object a line on standard input, and says what became of it, one a line on standard output.

Called with a host, a port and 0 or 1 for compression. {"text": T} logs T. {"payload": N} logs a text that makes the whole message N
bytes long. The answer holds the length of the message and the warnings.
"""

import json
import logging
import sys
import warnings

import graypy


class Strict(graypy.GELFUDPHandler):
    """A handler that does not hide its errors."""

    def handleError(self, record):
        raise


def record(text):
    return logging.makeLogRecord({"name": "graypy", "levelno": logging.INFO, "msg": text, "created": 1772368245.123})


handler = Strict(sys.argv[1], int(sys.argv[2]), debugging_fields=False, extra_fields=False, localname="graypy", compress=sys.argv[3] == "1")
for line in sys.stdin:
    order = json.loads(line)
    text = order.get("text")
    if text is None:
        text = "x" * (order["payload"] - len(handler.makePickle(record(""))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        handler.handle(record(text))
    answer = {"payload": len(handler.makePickle(record(text))), "warnings": [w.category.__name__ for w in caught]}
    print(json.dumps(answer), flush=True)
