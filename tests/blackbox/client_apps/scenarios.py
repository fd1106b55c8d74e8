"""What an app does with the Python client; scenarios.mjs does the same with the TypeScript client. Prints JSON.

    scenarios.py NAME [JSON]
"""
import io
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
import clawdforge  # noqa: E402

forge = clawdforge.Client()


def refusal(call):
    try:
        call()
    except clawdforge.ApiError as error:
        return {"status": error.status, "code": error.code, "retry_after": error.retry_after,
                "has_id": error.request_id != ""}
    return None


def basics(_):
    return {"version": forge.health()["version"], "ready": forge.is_ready(), "name": forge.whoami()["name"],
            "has_demo": "demo" in [agent["name"] for agent in forge.agents()],
            "workspaces": forge.workspaces(), "asks": forge.usage(by=["agent"])["totals"]["asks"],
            "steps": forge.usage(step=3600)["step"]}


def runs(_):
    key = clawdforge.new_key()
    first = forge.run("Hello", agent="demo", include=["usage"], idempotency_key=key)
    again = forge.run("Hello", agent="demo", include=["usage"], idempotency_key=key)
    listed = [run["run_id"] for run in forge.runs()]
    return {"result": first["result"], "is_same": first["run_id"] == again["run_id"], "count": len(listed),
            "state": forge.get_run(listed[0])["state"], "cancelled": forge.cancel_run(listed[0])}


def pages(_):
    return {"count": sum(1 for _ in forge.jobs()), "queued": sum(1 for _ in forge.jobs(state="queued"))}


def refusals(_):
    other = clawdforge.Client(token="cf_wrong")
    return {"token": refusal(other.whoami), "agent": refusal(lambda: forge.run("x", agent="no-such")),
            "session": refusal(lambda: forge.session("01a1e2bf-6b42-7000-b63e-519fb92cb2c1")),
            "rate": refusal(lambda: [forge.run("x", agent="demo") for _ in range(3)])}


def session(_):
    made = forge.create_session(agent="demo", permission_mode="ask", meta={"ticket": 7})
    token = forge.upload(b"Hello file", name="notes.txt", ttl_secs=600)["file_token"]
    done = made.turn("Remember the word heron.", files=[token])
    text = "".join(event.text for event in made.stream("What do you remember?"))
    listed = [file["path"] for file in made.files()]
    content = io.BytesIO()
    made.download(listed[0], content)
    decisions = []
    for event in made.stream("permission edit"):
        if event.event == "permission":
            asked = made.permissions()[0]["id"]
            made.answer_permission(asked, decision="allow")
        elif event.event == "permission_resolved":
            decisions.append([event.data["decision"], event.data["by"]])
    later = forge.session(made.id)
    failed = refusal(lambda: list(later.stream("crash")))
    state = later.state()
    told = [event.event for event in later.events(after=0)] if made.close() else []
    return {"turn": done["turn_index"], "text": text, "content": content.getvalue().decode(),
            "decisions": decisions, "failed": failed, "meta": state["meta"], "turns": state["turn_count"],
            "closings": told.count("done") + told.count("failed"), "cancelled": None,
            "closed_again": made.close(), "after": refusal(lambda: made.turn("x")),
            "listed": made.id in [row["session_id"] for row in forge.sessions(include_closed=True)]}


def workspace(_):
    made = forge.create_session(agent="demo", extra={"workspace": "tree"})
    replaced = [made.put_file("notes.txt", text) for text in (b"one\n", b"two\n")]
    changes, diff, archive = made.changes(), io.BytesIO(), io.BytesIO()
    made.diff(diff)
    made.archive(archive)
    commit = made.commit("Notes")
    made.close()
    return {"replaced": replaced, "changed": [file["path"] for file in changes["files"]],
            "diff": diff.getvalue().decode(), "archive": len(archive.getvalue()), "commit": len(commit)}


def cancelled(_):
    made = forge.create_session(agent="demo")
    stop = None
    for event in made.stream("slow"):
        if event.text and stop is None:
            stop = made.cancel()
        if event.event == "done":
            reason = event.data["stop_reason"]
    made.close()
    return {"cancelled": stop, "reason": reason}


def resumed(settings):
    """Streams through a connection that is cut now and then."""
    made = forge.session(settings["session_id"])
    events = list(made.stream(settings["prompt"]))
    return {"ids": [event.id for event in events], "text": "".join(event.text for event in events),
            "last": events[-1].event}


def interrupted(settings):
    """The gateway is killed in the middle; the marker says when."""
    made = forge.session(settings["session_id"])
    seen = []

    def read():
        for event in made.stream("slow 100"):
            seen.append(event.id)
            pathlib.Path(settings["marker"]).touch()
    return {"failed": refusal(read), "is_one_apart": seen == list(range(1, len(seen) + 1))}


def jobs(_):
    job = forge.submit_job(run={"prompt": "Hello", "agent": "demo"}, meta={"order": 7},
                           idempotency_key="the-same")
    again = forge.submit_job(run={"prompt": "Hello", "agent": "demo"}, meta={"order": 7},
                             idempotency_key="the-same")
    ended = forge.wait_for_job(job, timeout=60)
    states = [event.data["state"] for event in forge.job_events(job) if event.event == "state"]
    later = forge.submit_job(run={"prompt": "x", "agent": "demo"}, run_at=int(time.time()) + 3600)
    return {"is_same": job == again, "state": ended["state"], "result": ended["answer"]["result"],
            "meta": ended["meta"], "states": states, "cancelled": forge.cancel_job(later),
            "cancelled_again": forge.cancel_job(later), "count": len(list(forge.jobs()))}


def webhook(call):
    try:
        event = clawdforge.verify_webhook(call["secret"], call["headers"], call["body"].encode())
        return {"type": event["type"]}
    except clawdforge.WebhookRefused as refused:
        return {"refused": str(refused)}


def absent(_):
    try:
        clawdforge.Client(os.environ["ABSENT_URL"], retries=1).whoami()
    except clawdforge.ConnectionFailed:
        return {"failed": True}


print(json.dumps(globals()[sys.argv[1]](json.loads(sys.argv[2]) if len(sys.argv) > 2 else None)))
