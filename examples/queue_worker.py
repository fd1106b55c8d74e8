#!/usr/bin/env python3
"""Turns the tasks of a directory into jobs, and writes their answers beside them.

  queue_worker.py [--once] DIRECTORY

A task is a file NAME.json with the body of POST /run. It becomes NAME.job, which holds the job's id, and
at last NAME.answer. The worker may be killed at any time: the files say how far each task is, and the
gateway keeps the jobs. With --once it ends when all tasks have their answers.
"""
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

URL, TOKEN = os.environ["CLAWDFORGE_URL"], os.environ["CLAWDFORGE_TOKEN"]
WAIT_SECS = 20


def ask(method, path, body=None, **headers):
    """The status and the JSON of the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, method=method, headers={
        "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECS + 30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def write(path, text):
    """Whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def submit(task):
    run = json.loads(task.read_text())
    run.setdefault("agent", os.environ.get("AGENT", "claude"))
    status, answer = ask("POST", "/jobs", {"run": run, "attempts": 3, "meta": {"task": task.stem}})
    if status == 429 or status >= 500:
        return  # the next round tries again
    if status == 202:
        write(task.with_suffix(".job"), answer["job_id"])
    else:
        write(task.with_suffix(".answer"), json.dumps({"state": "refused", "answer": answer}))
    task.unlink()


def collect(kept):
    status, job = ask("GET", f"/jobs/{kept.read_text()}", Prefer=f"wait={WAIT_SECS}")
    if status == 404:
        job = {"state": "lost", "answer": job}
    elif status != 200 or job["state"] in ("queued", "running"):
        return
    write(kept.with_suffix(".answer"), json.dumps(job))
    kept.unlink()


def main():
    is_once = "--once" in sys.argv
    spool = pathlib.Path(sys.argv[-1])
    while True:
        tasks, jobs = sorted(spool.glob("*.json")), sorted(spool.glob("*.job"))
        if is_once and not tasks and not jobs:
            return
        try:
            for task in tasks:
                submit(task)
            for kept in jobs:
                collect(kept)
        except urllib.error.URLError as lost:
            print(f"the gateway does not answer: {lost.reason}", file=sys.stderr)
        time.sleep(0.1 if is_once else 2)


main()
