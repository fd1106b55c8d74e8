"""After a restart: everything that was answered is there, exactly once."""
import itertools
import json
import os
import time

import client
from census import CAP, check_directories, check_rows, count_asks, ledger_of
from gateway import SECONDS_MAX, wait_until
from record import CLOSING, Session

SOURCES = itertools.count()
DEAD_TOKENS_MAX = 10   # asked in one round: more would look like guessing
LIVE_TOKENS_MAX = 20
WOKEN_MAX = 2          # sessions that are asked in one round what they remember


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


class Check:
    def __init__(self, gateway, workers, findings, figures, choice):
        self.gateway = gateway
        self.workers = workers
        self.findings = findings
        self.figures = figures
        self.choice = choice

    def all(self):
        """In this order: first what must hold before anything new begins."""
        self.jobs_end()
        check_rows(self.gateway, self.findings)
        check_directories(self.gateway, self.findings)
        self.runs()
        self.agents_logs()
        self.apps()
        self.jobs()
        self.keys()
        for app in self.apps_there():
            self.sessions(app)
        for app in self.apps_gone():
            self.sessions_of_gone(app)
        self.tokens()
        self.uploads()
        self.memory()
        self.webhooks()

    # How to ask

    def get(self, token, path):
        answer = client.call(self.gateway, token, "GET " + path)
        assert answer.status == 200, f"GET {path}: {answer}"
        return answer.body

    def admin(self, path):
        return self.get(self.gateway.admin_token, path)

    def hold(self, is_well, text):
        return self.findings.check(is_well, text)

    def apps_there(self):
        return [app for worker in self.workers for app in worker.apps if not app.is_gone]

    def apps_gone(self):
        return [app for worker in self.workers for app in worker.apps if app.is_gone]

    # Webhooks

    def webhooks(self):
        """What a reader was told is committed, and so is its delivery: it comes, at least once."""
        told = set()
        for app in self.apps_there():
            if not app.is_revoke_unsure:
                told |= app.told
        if not told:
            return
        receiver = self.workers[0].receiver
        end = time.monotonic() + SECONDS_MAX
        while (missing := told - receiver.questions()) and time.monotonic() < end:
            time.sleep(0.02)
        self.hold(not missing, f"questions were not told to their webhook: {missing}")
        self.figures["deliveries checked"] += len(told)
        for app in self.apps_there():
            app.told.clear()

    # Jobs

    def jobs_end(self):
        """The gateway goes on with them by itself; then it is quiet, and nothing of them is left."""
        def are_over():
            with ledger_of(self.gateway) as ledger:
                left, = ledger.execute("SELECT count(*) FROM jobs WHERE ended_at IS NULL").fetchone()
            return left == 0 and not os.listdir(self.gateway.data_dir / "runs")
        wait_until(are_over, "all accepted jobs are done")

    def jobs(self):
        """None is lost, and none was begun more often than it says."""
        for app in self.apps_there():
            for job in app.jobs:
                shown = self.get(app.token, f"/jobs/{job.id}")
                starts = len(job.log.read_text().splitlines()) if job.log.exists() else 0
                what = f"{starts} starts of {shown}"
                self.hold(starts <= shown["attempts"] <= shown["max_attempts"], what)
                self.hold(shown["state"] in ("succeeded", "failed", "interrupted"), what)
                self.hold(shown["state"] != "succeeded" or starts > 0, what)
                self.figures[f"jobs {shown['state']}, begun {shown['attempts']} times"] += 1
            app.jobs = []

    # Runs

    def runs(self):
        expected = {run.id: run for worker in self.workers for run in worker.runs}
        found = {}
        cursor = None
        while expected.keys() - found.keys():
            page = self.admin("/admin/runs?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            found.update({row["run_id"]: row for row in page["runs"]})
            cursor = page["next_cursor"]
            if cursor is None:
                break
        for run in expected.values():
            row = found.get(run.id)
            self.hold(row is not None, f"the answered run {run.id} is not in the audit")
            self.hold(row is None or (row["state"], row["outcome"]) == (run.state, run.outcome),
                       f"the run {run.id} was answered as {run.state}, {run.outcome}: {row}")
        for worker in self.workers:
            worker.runs = []

    # What the agents say themselves

    def agents_logs(self):
        """Usage is what the agents logged, but for those that were cut off before their word was
        heard; and no agent was asked over a cap. Usage rows are the sum of the rows of asks: see
        check_rows()."""
        for app in self.apps_there():
            if app.name.endswith("-capped"):
                starts = lines_of(app.log_of(self.gateway, "starts"))
                self.hold(len(starts) <= CAP, f"{app.name} may ask {CAP} times, and {len(starts)} "
                                              "agents were asked")
                self.figures["asks of capped apps, by their agents"] += len(starts) - app.logged
                app.logged = len(starts)
            if app.name.endswith("-logged"):
                self.agents_log(app)

    def agents_log(self, app):
        starts = len(lines_of(app.log_of(self.gateway, "starts")))
        logged = [int(line.split()[2]) for line in lines_of(app.log_of(self.gateway, "uses"))]
        with ledger_of(self.gateway) as ledger:
            rows = ledger.execute(
                "SELECT state, input_tokens, output_tokens, cost_usd FROM runs WHERE app_name = ? "
                "AND agent_ms IS NOT NULL", (app.name,)).fetchall()
            used = ledger.execute(
                "SELECT COALESCE(SUM(asks), 0), COALESCE(SUM(input_tokens), 0), "
                "COALESCE(SUM(output_tokens), 0), COALESCE(SUM(nano_usd), 0) FROM usage_minutes "
                "WHERE app_name = ?", (app.name,)).fetchone()
        heard = [row[2] for row in rows if row[2] is not None]
        what = f"{app.name}: logged {sorted(logged)}, heard {sorted(heard)}, used {used}"
        self.hold(len(set(logged)) == len(logged), f"an agent was asked twice: {what}")
        self.hold(len(set(heard)) == len(heard) and set(heard) <= set(logged),
                  f"the ledger has what no agent has used: {what}")
        self.hold(app.answered <= set(heard), f"what was answered is not in the ledger: {what}")
        self.hold(used == (len(rows), sum(1000 + number for number in heard), sum(heard),
                           sum(heard) * 1_000_000), f"usage is not what the agents used: {what}")
        cut_off = [row for row in rows if row[2] is None]
        self.hold(len(logged) - len(heard) <= len(cut_off), f"words of agents are lost: {what}")
        self.hold(starts <= len(rows) <= app.asked,
                  f"{starts} agents started, {len(rows)} asks are counted of {app.asked}: {what}")
        self.figures["asks logged by their agents"] += len(logged) - app.logged
        self.figures["asks cut off before they were heard"] += len(cut_off) - app.cut_off
        app.logged, app.cut_off = len(logged), len(cut_off)

    # Keys

    def keys(self):
        """One that is sent again gets what was answered, and starts nothing a second time."""
        for worker in self.workers:
            for key in worker.keys:
                self.key(key)
            for app in {key.app for key in worker.keys}:
                asks = count_asks(self.gateway, app.name)
                known = len([key for key in worker.keys if key.app is app])
                self.hold(asks <= known, f"{app.name} sent {known} keys, and {asks} agents were asked")

    def key(self, key):
        def send():
            return client.call(self.gateway, key.app.token, "POST /run", key.body, key.header)
        first = send()
        if key.answer is not None:
            self.hold((first.status, first.raw) == (key.answer.status, key.answer.raw),
                      f"the key {key.key} was answered {key.answer}, and now {first}")
            self.hold(first.headers.get("idempotency-replayed") == "true",
                      f"the key {key.key} was answered, and is done again: {first}")
        elif first.code == "interrupted":
            self.figures["keys that a kill has interrupted"] += 1
        second = send()
        self.hold((second.status, second.raw) == (first.status, first.raw),
                  f"the key {key.key} gets {first} and {second}")
        key.answer = second

    # Apps

    def apps(self):
        listed = {row["name"] for row in self.admin("/admin/tokens")["tokens"]}
        known = set()
        for worker in self.workers:
            known |= worker.lost_names
            for app in worker.apps:
                known.add(app.name)
                self.app(app, app.name in listed)
        self.hold(listed <= known, f"apps that the load has not made: {listed - known}")

    def app(self, app, is_listed):
        if app.is_revoke_unsure:
            app.is_gone = not is_listed
            app.is_revoke_unsure = False
            if app.is_gone:
                app.dead_tokens.append(app.token)
        self.hold(is_listed != app.is_gone,
                   f"app {app.name} is {'' if is_listed else 'not '}listed; gone: {app.is_gone}")
        if app.is_token_unsure and is_listed:
            # Whether it was rotated is not known; once more, and it is.
            answer = client.call(self.gateway, self.gateway.admin_token,
                                 f"POST /admin/tokens/{app.name}/rotate")
            app.dead_tokens.append(app.token)
            app.token = answer.body["token"]
            app.is_token_unsure = False

    def tokens(self):
        live = self.apps_there()
        for app in self.choice.sample(live, min(len(live), LIVE_TOKENS_MAX)):
            status = self.status(app.token)
            self.hold(status == 200, f"the token of {app.name} gets {status}")
        dead = [(app.name, token) for worker in self.workers for app in worker.apps
                for token in app.dead_tokens]
        for name, token in self.choice.sample(dead, min(len(dead), DEAD_TOKENS_MAX)):
            status = self.status(token)
            self.hold(status == 401, f"a dead token of {name} gets {status}")

    def status(self, token):
        number = next(SOURCES)
        source = f"127.9.{number // 250 % 250}.{number % 250 + 1}"
        return client.status_from(self.gateway, token, source)

    # Sessions

    def sessions(self, app):
        states = {state["session_id"]: state for state in
                  self.get(app.token, "/sessions?include_closed=true")["sessions"]}
        known = {session.id for session in app.sessions}
        strange = states.keys() - known
        self.hold(len(strange) <= app.lost_creates,
                   f"{len(strange)} sessions of {app.name} that the load does not know, "
                   f"{app.lost_creates} were asked for without an answer")
        for session_id in strange:
            # Its caller was not answered before the kill. From now on it is one like the others.
            app.sessions.append(Session(session_id, app, states[session_id]["agent"], "unknown"))
            self.figures["sessions made, and not heard of"] += 1
        app.lost_creates = 0
        for session in app.sessions:
            if not self.hold(session.id in states,
                              f"the session {session.id} of {app.name} is gone"):
                continue
            self.state(session, states[session.id], "closed")
            if session.is_touched:
                self.events(session, app.token)
                session.is_touched = False

    def sessions_of_gone(self, app):
        """Their token is gone, so the admin looks."""
        fresh = [session for session in app.sessions if session.is_touched or not session.is_closed]
        if not fresh and not app.lost_creates:
            return
        listed = self.admin(f"/admin/sessions?app={app.name}&limit=1000")["sessions"]
        states = {state["session_id"]: state for state in listed}
        for session in app.sessions:
            if self.hold(session.id in states, f"the session {session.id} of {app.name} is gone"):
                was_closed = session.is_closed
                session.is_close_unsure = session.is_close_unsure or not was_closed
                self.state(session, states[session.id], "closed" if was_closed else None)
                self.hold(session.is_closed, f"{session.id} is open and its app is gone")
                session.is_touched = False
        self.hold(all(state["closed_at"] for state in listed),
                   f"a session of {app.name}, which is gone, is open")
        app.lost_creates = 0

    def state(self, session, state, reason):
        is_closed = state["closed_at"] is not None
        if session.is_close_unsure:
            session.is_closed = is_closed
            session.is_close_unsure = False
        else:
            self.hold(session.is_closed == is_closed,
                       f"{session.id} was answered closed: {session.is_closed}, and is {state}")
            self.hold(not is_closed or reason is None or state["close_reason"] == reason,
                       f"{session.id} was closed, and is {state}")
        self.hold(not state["busy"] and not state["live"],
                   f"{session.id} is at work after a restart: {state}")
        count = state["turn_count"]
        self.hold(session.turns <= count <= session.turns + session.lost_turns,
                   f"{session.id} has {count} turns; {session.turns} were answered or accepted, "
                   f"{session.lost_turns} asked for without an answer")
        session.turns = count
        session.lost_turns = 0

    # Events

    def events(self, session, token):
        self.cut_streams(session, token)
        after = max(session.replayed, default=0)
        fresh = {}
        while True:
            page = self.get(token, f"{session.path}/events?after={after}&limit=1000")
            for event in page["events"]:
                self.hold(event["id"] == after + 1,
                           f"{session.id}: after event {after} comes {event['id']}")
                after = event["id"]
                fresh[after] = event
            if not page["events"]:
                break
        self.figures["replayed events"] += len(fresh)
        for number, event in fresh.items():
            session.replayed[number] = (event["event"], event["data"])
        for number, told in session.received.items():
            again = session.replayed.get(number)
            self.hold(told == again,
                       f"{session.id}: event {number} was told as {told} and is now {again}")
        session.last_id = max(session.last_id, after)
        self.turns(session, list(fresh.values()))
        self.permissions(session)

    def cut_streams(self, session, token):
        """Each stream that broke off goes on, with the next event, to its end."""
        for last, index in session.cut_streams:
            # A turn that is not there has been found missing already, and has no end to wait for.
            if index <= session.turns:
                self.go_on(session, token, last, index)
        session.cut_streams = []

    def go_on(self, session, token, last, index):
        stream = client.stream_events(self.gateway, token, session.id, last)
        try:
            if not self.hold(stream.refusal is None,
                              f"{session.id}: going on after {last}: {stream.refusal}"):
                return
            name = data = None
            while name not in CLOSING or data["turn_index"] < index:
                number, name, data = stream.next() or (None, "the end", None)
                if number is None:
                    self.findings.add(f"{session.id}: after {last} came {name}")
                    return
                self.hold(number == last + 1, f"{session.id}: after {last} came {number}")
                last = number
                session.take_event((number, name, data), self.findings)
            self.hold(data["turn_index"] == index, f"{session.id}: turn {index} has no end")
            self.figures["streams gone on with after a restart"] += 1
        except client.Lost as lost:
            self.findings.add(f"{session.id}: turn {index} was accepted and its stream does not "
                              f"go on after {last}: {lost}")
        finally:
            stream.close()

    def turns(self, session, fresh):
        closings = {}
        told = {}
        for event in fresh:
            index = event["turn_index"]
            if event["event"] in CLOSING:
                self.hold(index not in closings and index > session.checked_turns,
                           f"{session.id}: turn {index} has two closing events")
                closings[index] = event
            elif index not in closings:
                told.setdefault(index, []).append(event)
        expected = list(range(session.checked_turns + 1, session.turns + 1))
        self.hold(sorted(closings) == expected,
                   f"{session.id}: turns {expected} have closing events {sorted(closings)}")
        for index, event in closings.items():
            self.hold(event["data"]["turn_index"] == index, f"{session.id}: {event}")
            # What it was asked comes first, also of one that waited when the gateway was killed.
            names = [one["event"] for one in told.get(index, [])]
            self.hold(names[:1] == ["turn"] and "turn" not in names[1:],
                       f"{session.id}: turn {index} begins with {names[:2]}")
            asked = told[index][0]["data"] if names else {}
            self.hold(asked.get("turn_index") == index and asked.get("prompt"),
                       f"{session.id}: turn {index} was asked {asked}")
            if event["data"].get("code") == "interrupted":
                self.figures["turns interrupted"] += 1
            if index in session.answers:
                self.answer(session, index, event, told.get(index, []))
            elif index in session.cancelled:
                data = event["data"]
                self.hold(data["stop_reason"] == "cancelled" or data.get("code") == "interrupted",
                           f"{session.id}: turn {index} was cancelled, and ended as {data}")
        session.answers = {}
        session.checked_turns = session.turns

    def answer(self, session, index, closing, told):
        """The journal has what was answered."""
        body = dict(session.answers[index])
        events = body.pop("events", [])
        body.pop("request_id", None)
        self.hold(body == closing["data"], f"{session.id}: turn {index} was answered as {body} "
                                            f"and is closed as {closing['data']}")
        kept = [event["data"]["message"] if event["event"] == "permission" else event["data"]
                for event in told if event["event"] not in ("turn", "permission_resolved")]
        self.hold(kept == events, f"{session.id}: turn {index} was answered with "
                                   f"{len(events)} events, and {len(kept)} are kept")

    def permissions(self, session):
        resolved = {data["id"]: data for name, data in session.replayed.values()
                    if name == "permission_resolved"}
        for question, decision in session.permitted.items():
            data = resolved.get(question)
            self.hold(data is not None and (data["decision"], data["by"]) == (decision, "app"),
                       f"{session.id}: question {question} was answered with {decision}, "
                       f"and is {data}")
        session.permitted = {}

    # What works again

    def uploads(self):
        """All that are new, of one app in one run, which tells what is in them."""
        for app in self.apps_there():
            fresh = [upload for upload in app.uploads if not upload.is_checked][:32]
            if not fresh:
                continue
            body = {"prompt": json.dumps({"report": True}),
                    "files": [upload.token for upload in fresh]}
            answer = client.call(self.gateway, app.token, "POST /run", body)
            if not self.hold(answer.status == 200, f"a run with uploads of {app.name}: {answer}"):
                continue
            contents = answer.body["result"]["contents"]
            for number, upload in enumerate(fresh, 1):
                upload.is_checked = True
                self.hold(contents.get(f"attachment-{number}.txt") == upload.content.decode(),
                           f"an upload of {app.name} has another content")

    def memory(self):
        """A session wakes with its conversation."""
        found = [session for app in self.apps_there() for session in app.open_sessions()
                 if session.prompts and session.agent in ("demo", "fake", "acpx")]
        for session in self.choice.sample(found, min(len(found), WOKEN_MAX)):
            recall = ("what do you remember" if session.agent == "demo" else '[{"recall": true}]')
            answer = client.call(self.gateway, session.app.token, f"POST {session.path}/turn",
                                 {"prompt": recall})
            session.is_touched = True
            if not self.hold(answer.status == 200 and answer.body.get("resumed") is True,
                              f"{session.id} does not wake: {answer}"):
                session.turns = max(session.turns, answer.body.get("turn_index", 0))
                continue
            session.turns = answer.body["turn_index"]
            session.answers[session.turns] = answer.body
            self.figures["sessions woken"] += 1
            self.remembers(session, answer.body["text"])

    def remembers(self, session, text):
        if session.agent in ("fake", "acpx"):
            heard = json.loads(text)
        else:
            heard = [line.partition(". ")[2] for line in text.split("\n")]
        left = iter(heard)
        forgotten = [prompt for prompt in session.prompts if prompt not in left]
        self.hold(not forgotten, f"{session.id} has forgotten {forgotten}, of {heard}")
