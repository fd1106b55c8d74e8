"""How long the client takes: `version`, and `health` beyond the request's own time.

CLAWDFORGE_BIN names the program. Prints medians over many starts.
"""
import http.client
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ["CLAWDFORGE_BIN"]
STARTS = 200


def median_ms(call):
    times = []
    for _ in range(STARTS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def main():
    with tempfile.TemporaryDirectory(prefix="cli-bench-") as home:
        env = {"PATH": "/usr/bin:/bin", "HOME": home}
        data = pathlib.Path(home) / "data"
        gateway = subprocess.Popen([PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data-dir", data],
                                   env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            port = int(gateway.stdout.readline().rsplit(b":", 1)[1])

            def start(*arguments):
                subprocess.run([PROGRAM, *arguments], env=env, check=True, stdout=subprocess.DEVNULL)

            def request():
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/healthz")
                connection.getresponse().read()
                connection.close()

            nothing = median_ms(lambda: subprocess.run(["/bin/true"], check=True))
            version = median_ms(lambda: start("version"))
            health = median_ms(lambda: start("health", "--data-dir", str(data)))
            asked = median_ms(request)
        finally:
            gateway.terminate()
            gateway.wait(timeout=60)
    print(f"/bin/true, the cost of a start from here   {nothing:6.2f} ms")
    print(f"clawdforge version                         {version:6.2f} ms")
    print(f"clawdforge health                          {health:6.2f} ms")
    print(f"the request itself, from this program      {asked:6.2f} ms")
    print(f"health beyond the request                  {health - asked:6.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
