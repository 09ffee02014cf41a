"""A line between a client and a server that breaks off after so many bytes, and can show what passed."""

import contextlib
import socket
import threading


class Proxy:
    """Passes connections on to a port; ``limits`` says for each new one after how many bytes it breaks off.

    Attributes
    ----------
    limits : list of (int or None, int or None)
        Bytes upwards and downwards; without an entry left, none is cut.
    passed : list of bytearray
        What each connection sent upwards.
    """

    def __init__(self):
        self.target, self.limits, self.passed, self.n_cut = None, [], [], 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            up, down = self.limits.pop(0) if self.limits else (None, None)
            passed = bytearray()
            self.passed.append(passed)
            for pair in ((client, server, up, passed), (server, client, down, bytearray())):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source, target, limit, passed):
        left = limit
        with contextlib.suppress(OSError):
            while data := source.recv(2**16):
                piece = data if left is None else data[:left]
                passed += piece
                target.sendall(piece)
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        self.n_cut += 1
                        break
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
