"""A mixed load. Each worker has apps of its own, chooses by its own seed, notes what was answered,
and ends when the gateway does not answer any more."""
import json
import random
import threading

import client
from census import CAP
from client import Lost
from record import CLOSING, App, Figures, Findings, Job, Key, Run, Session, Upload

AGENTS = ("demo", "demo", "fake")
# What becomes of work whose agent, or its launcher, was killed.
AGENT_DEATHS = {"agent_exited", "agent_signal", "agent_exit", "agent_silent", "agent_nonsense",
                "agent_lost", "agent_not_started", "agent_not_reading", "agent_protocol",
                "acpx_queue"}
WEIGHTS = {"turn": 14, "streamed_turn": 12, "cut_stream": 8, "two_turns": 4, "cancelled_turn": 5,
           "asked_turn": 6, "create": 7, "close": 3, "close_while_busy": 1, "run": 5,
           "left_run": 1, "capped_run": 3, "logged_run": 5, "job": 6, "keyed_run": 8, "upload": 5, "mint": 5,
           "rotate": 3, "revoke": 4, "tail": 3, "look": 3}


# So large that they refuse nothing: each ask reserves, and is settled, under kills.
BUDGETS = [{"window": "total", "unit": "asks", "limit": 1_000_000},
           {"window": "month", "unit": "usd", "limit": 1_000_000}]


# Ends of the names of apps that do one thing only.
OF_ONE_KIND = ("-capped", "-keyed", "-logged")


class Worker:
    apps_max = 5
    sessions_max = 5
    upload_secs = 3600

    def __init__(self, number, name, agents=AGENTS, receiver=None):
        self.agents = agents
        self.receiver = receiver  # of webhooks; none: there are none
        self.number = number
        self.name = name
        self.apps = []
        self.lost_names = set()  # of apps whose minting got no answer
        self.runs = []
        self.keys = []
        self.findings = Findings()
        self.figures = Figures()
        self.minted = 0
        self.logs = 0

    def start(self, gateway, seed, are_agents_killed, is_over=None):
        self.gateway = gateway
        self.choice = random.Random(f"{seed}/{self.number}")
        self.are_agents_killed = are_agents_killed
        self.is_over = is_over or (lambda: False)
        self.thread = threading.Thread(target=self._work, name=f"{self.name}-{self.number}")
        self.thread.start()

    def join(self, seconds):
        self.thread.join(seconds)
        self.findings.check(not self.thread.is_alive(), f"worker {self.number} does not end")

    def _work(self):
        names, weights = zip(*WEIGHTS.items())
        try:
            while not self.is_over():
                name, = self.choice.choices(names, weights)
                getattr(self, "do_" + name)()
        except Lost:
            self.figures["calls without an answer"] += 1
        except Exception as error:  # pylint: disable=broad-except
            self.findings.add(f"worker {self.number}: {type(error).__name__}: {error}")

    # The parts

    def call(self, token, line, body=None):
        return client.call(self.gateway, token, line, body)

    def admin(self, line, body=None):
        return self.call(self.gateway.admin_token, line, body)

    def note(self, what):
        self.figures["answered: " + what] += 1

    def is_death(self, answer):
        """Whether the work has failed because its agent was killed."""
        return self.are_agents_killed and answer.code in AGENT_DEATHS

    def expect(self, answer, status, what):
        return self.findings.check(answer.status == status, f"{what}: {answer}")

    def app(self):
        apps = [app for app in self.apps
                if not (app.is_gone or app.is_token_unsure or app.is_revoke_unsure
                        or app.name.endswith(OF_ONE_KIND))]
        return self.choice.choice(apps) if apps else self.do_mint()

    def session(self, mode=None):
        """An open one; makes one if there is none."""
        found = [session for app in self.apps for session in app.open_sessions()
                 if mode in (None, session.mode)]
        return self.choice.choice(found) if found else self.do_create(mode)

    def prompt_for(self, session):
        number = self.choice.randrange(1000)
        if session.agent == "demo":
            kind = self.choice.choice(["plain", "plain", "think plan tool", f"long {number % 60}",
                                       "fail"])
            return f"number {number}" if kind == "plain" else kind
        kind = self.choice.randrange(6)
        steps = {0: [{"count": number % 80}],
                 1: [{"children": ["plain", "setsid", "daemon", "bare"]}, {"text": "children"}],
                 2: [{"tool": {"result": {"n": number}}}, {"text": "tool"}],
                 3: [{"thought": "hm"}, {"cost": 0.25}, {"text": f"number {number}"}]}.get(kind)
        return json.dumps(steps) if steps else f"number {number}"

    # Apps

    def do_mint(self):
        if len([app for app in self.apps if not app.is_gone]) >= self.apps_max:
            return None
        self.minted += 1
        name = f"{self.name}-{self.number}-{self.minted}"
        self.lost_names.add(name)
        body = {"name": name, "budgets": BUDGETS}
        if self.receiver:
            body["webhook_urls"] = [self.receiver.url]
        answer = self.admin("POST /admin/tokens", body)
        self.lost_names.discard(name)
        if not self.expect(answer, 200, f"mint {name}"):
            raise Lost("there is no app to go on with")
        self.apps.append(App(name, answer.body["token"]))
        self.note("mint")
        return self.apps[-1]

    def do_rotate(self):
        app = self.app()
        app.is_token_unsure = True
        answer = self.admin(f"POST /admin/tokens/{app.name}/rotate")
        app.is_token_unsure = False
        if self.expect(answer, 200, f"rotate {app.name}"):
            app.dead_tokens.append(app.token)
            app.token = answer.body["token"]
            self.note("rotate")

    def do_revoke(self):
        if len([app for app in self.apps if not app.is_gone]) < 2:
            return
        app = self.app()
        app.is_revoke_unsure = True
        answer = self.admin(f"DELETE /admin/tokens/{app.name}")
        app.is_revoke_unsure = False
        if self.expect(answer, 200, f"revoke {app.name}"):
            app.is_gone = True
            app.dead_tokens.append(app.token)
            self.note("revoke")

    # Runs and files

    def do_run(self):
        app = self.app()
        kind = self.choice.choice(["demo", "demo", "claude", "error", "file"])
        body = {"agent": "demo", "prompt": f"run {self.choice.randrange(1000)}"}
        if kind == "claude":
            body = {"prompt": json.dumps({"result": "well"})}
        elif kind == "error":
            body = {"prompt": json.dumps({"stderr": "no", "exit": 3, "silent": True})}
        elif kind == "file" and app.uploads:
            body["files"] = [app.uploads[-1].token]
        answer = self.call(app.token, "POST /run", body)
        if kind == "error" and answer.status == 502 and answer.code == "agent_exit":
            self.take_run(answer, "failed", "agent_exit")
        elif self.is_death(answer):
            self.figures["work that died with its agent"] += 1
            self.take_run(answer, "failed", answer.code)
        elif self.expect(answer, 502 if kind == "error" else 200, f"a run of {app.name}"):
            self.take_run(answer, "succeeded", "ok")

    def app_of_one_kind(self, kind, budgets):
        """The worker's only app of this kind; made if there is none."""
        for app in self.apps:
            if app.name.endswith(f"-{kind}") and not (
                    app.is_gone or app.is_token_unsure or app.is_revoke_unsure):
                return app
        self.minted += 1
        name = f"{self.name}-{self.number}-{self.minted}-{kind}"
        self.lost_names.add(name)
        answer = self.admin("POST /admin/tokens", {"name": name, "budgets": budgets})
        self.lost_names.discard(name)
        if not self.expect(answer, 200, f"mint {name}"):
            raise Lost(f"there is no app that is {kind}")
        self.apps.append(App(name, answer.body["token"]))
        return self.apps[-1]

    def do_logged_run(self):
        """Its agent writes down what it used, a number of its own: see Check.agents_logs()."""
        app = self.app_of_one_kind("logged", BUDGETS)
        app.asked += 1
        number = app.asked
        script = {"log": str(app.log_of(self.gateway, "starts")),
                  "use_log": str(app.log_of(self.gateway, "uses")),
                  "sleep": self.choice.choice([0, 0, 0.02, 0.1]),
                  "keys": {"total_cost_usd": number / 1000,
                           "usage": {"input_tokens": 1000 + number, "output_tokens": number}}}
        answer = self.call(app.token, "POST /run", {"prompt": json.dumps(script)})
        if self.is_death(answer):
            self.take_run(answer, "failed", answer.code)
        elif self.expect(answer, 200, f"a run of {app.name}"):
            self.take_run(answer, "succeeded", "ok")
            app.answered.add(number)

    def do_capped_run(self):
        """Of an app with few asks, which has no more of them over all kills."""
        app = self.app_of_one_kind("capped", [{"window": "total", "unit": "asks", "limit": CAP}])
        script = {"log": str(app.log_of(self.gateway, "starts"))}
        answer = self.call(app.token, "POST /run", {"prompt": json.dumps(script)})
        if answer.status == 429:
            self.findings.check(answer.code == "budget_exhausted", f"a capped run: {answer}")
            self.note("a run over its budget")
        elif self.is_death(answer):
            self.take_run(answer, "failed", answer.code)
        elif self.expect(answer, 200, f"a run of {app.name}"):
            self.take_run(answer, "succeeded", "ok")

    def do_job(self):
        """Done by the gateway itself, before or after the next kill; its agent notes each start."""
        app = self.app()
        self.logs += 1
        log = self.gateway.root / f"job-{self.name}-{self.number}-{self.logs}.log"
        script = {"log": str(log), "sleep": self.choice.choice([0, 0, 0.05, 0.2])}
        answer = self.call(app.token, "POST /jobs", {
            "run": {"prompt": json.dumps(script)}, "attempts": self.choice.choice([1, 1, 2])})
        if self.expect(answer, 202, f"a job of {app.name}"):
            app.jobs.append(Job(answer.body["job_id"], log))
            self.note("job")

    def do_keyed_run(self):
        """Sent with a key, perhaps twice at once: see Check.keys()."""
        app = self.app_of_one_kind("keyed", BUDGETS)
        body = self.choice.choice([{"agent": "demo", "prompt": f"keyed {len(self.keys)}"},
                                   {"prompt": json.dumps({"result": "keyed"})}])
        key = Key(app, f"key-{self.number}-{self.minted}-{self.choice.random()}", body)
        self.keys.append(key)
        pending = [client.send(self.gateway, app.token, "POST /run", body, key.header)
                   for _ in range(self.choice.choice([1, 2]))]
        answers = [one.answer() for one in pending]
        for answer in answers:
            if not self.is_death(answer) and self.expect(answer, 200, "a run with a key"):
                key.answer = answer
        self.findings.check(len({answer.raw for answer in answers}) == 1 or self.are_agents_killed,
                            f"two answers to one key: {answers}")
        self.note("run with a key")

    def take_run(self, answer, state, outcome):
        run_id = answer.headers.get("x-clawdforge-run-id")
        if run_id is not None:
            self.runs.append(Run(run_id, state, outcome))
        self.note("run")

    def do_left_run(self):
        """A caller who hangs up cancels the run; its id was not told."""
        body = {"prompt": json.dumps({"children": ["plain", "daemon"], "sleep": 30})}
        pending = client.send(self.gateway, self.app().token, "POST /run", body)
        self.do_look()
        pending.hang_up()

    def do_upload(self):
        app = self.app()
        content = f"content {self.choice.random()}\n".encode() * self.choice.choice([1, 10, 1000])
        answer = client.upload(self.gateway, app.token, content, self.upload_secs)
        if self.expect(answer, 200, "an upload"):
            app.uploads.append(Upload(answer.body["file_token"], content))
            self.note("upload")

    # Sessions

    def begin_with(self, gateway, seed, agent):
        """Before the load: a session that has had a turn, of an agent that takes long to start."""
        self.gateway = gateway
        self.choice = random.Random(f"{seed}/{self.number}")
        self.are_agents_killed = False
        session = self.do_create("approve_all", agent)
        answer = self.send_turn(session, {"prompt": "to begin with"}).answer()
        self.check_turn(answer, None, "a first turn")
        self.settle(session, answer, "to begin with")

    def do_create(self, mode=None, agent=None):
        app = self.app()
        if mode is None and len(app.open_sessions()) >= self.sessions_max:
            return self.do_close()
        # acpx passes no question on.
        agent = agent or self.choice.choice([name for name in self.agents
                                             if mode is None or name != "acpx"])
        if mode is None:
            mode = "approve_all" if agent == "acpx" else self.choice.choice(["ask", "approve_all"])
        app.lost_creates += 1
        body = {"agent": agent, "permission_mode": mode}
        if self.receiver and mode == "ask":
            body |= {"webhook": self.receiver.url + "/asked", "webhook_events": ["permission"]}
        answer = self.call(app.token, "POST /sessions", body)
        app.lost_creates -= 1
        if self.is_death(answer):
            return self.do_create(mode)
        if not self.expect(answer, 200, "a session"):
            raise Lost("there is no session to go on with")
        session = Session(answer.body["session_id"], app, agent, mode)
        app.sessions.append(session)
        self.note("session made")
        return session

    def do_close(self):
        self.close(self.session())

    def close(self, session):
        session.is_close_unsure = True
        answer = self.call(session.app.token, f"DELETE {session.path}")
        session.is_close_unsure = False
        if self.expect(answer, 200, "a close"):
            session.is_closed = True
            self.note("session closed")

    def do_close_while_busy(self):
        session = self.session()
        prompt = "slow 5" if session.agent == "demo" else '[{"sleep_until_cancel": true}]'
        pending = self.send_turn(session, {"prompt": prompt})
        self.close(session)
        answer = pending.answer()
        # It may have come too late to be a turn at all.
        if not self.is_death(answer):
            self.expect(answer, 410, "a turn of a session that is being closed")
        self.settle(session, answer, None)

    def send_turn(self, session, body):
        session.is_touched = True
        self.figures["turns asked of acpx"] += session.agent == "acpx"
        session.lost_turns += 1
        return client.send(self.gateway, session.app.token, f"POST {session.path}/turn", body)

    def settle(self, session, answer, prompt):
        """Notes a plain answer to a turn."""
        session.lost_turns -= 1
        index = answer.body.get("turn_index")
        if index is None:
            return None
        self.findings.check(index not in session.answers and index > session.checked_turns,
                            f"session {session.id}: the index {index} was given twice")
        session.turns = max(session.turns, index)
        session.answers[index] = answer.body
        if answer.status == 200 and prompt is not None:
            session.prompts.append(prompt)
        self.figures["turns done through acpx"] += answer.status == 200 and session.agent == "acpx"
        self.note("turn")
        return index

    def check_turn(self, answer, prompt, what, stop_reason="end_turn"):
        if prompt == "fail":
            return self.is_death(answer) or self.expect(answer, 502, what)
        if self.is_death(answer):
            self.figures["work that died with its agent"] += 1
            return False
        return self.expect(answer, 200, what) and self.findings.check(
            answer.body["stop_reason"] == stop_reason, f"{what}: {answer}")

    def do_turn(self):
        session = self.session()
        prompt = self.prompt_for(session)
        body = {"prompt": prompt}
        if session.app.uploads and self.choice.random() < 0.2:
            body["files"] = [session.app.uploads[-1].token]
        answer = self.send_turn(session, body).answer()
        self.check_turn(answer, prompt, "a turn")
        self.settle(session, answer, prompt if "files" not in body else None)

    def do_two_turns(self):
        """The second waits for the first."""
        session = self.session()
        prompts = [self.prompt_for(session) for _ in range(2)]
        pending = [self.send_turn(session, {"prompt": prompt}) for prompt in prompts]
        for prompt, one in zip(prompts, pending):
            answer = one.answer()
            self.check_turn(answer, prompt, "one of two turns")
            self.settle(session, answer, None)  # which came first is not known

    def do_cancelled_turn(self):
        session = self.session()
        prompt = "slow 5" if session.agent == "demo" else '[{"sleep_until_cancel": true}]'
        pending = self.send_turn(session, {"prompt": prompt})
        # The turn has to be there before it can be cancelled.
        while not pending.is_answered():
            answer = self.call(session.app.token, f"POST {session.path}/cancel")
            if not self.expect(answer, 200, "a cancel"):
                break
            if answer.body["cancelled"]:
                session.cancelled.add(session.turns + 1)
                self.note("cancel")
                break
        answer = pending.answer()
        self.check_turn(answer, prompt, "a cancelled turn", "cancelled")
        self.settle(session, answer, None)

    # Streams

    def begin_stream(self, session, prompt):
        """A streamed turn: the stream and the turn's index."""
        session.is_touched = True
        self.figures["turns asked of acpx"] += session.agent == "acpx"
        session.lost_turns += 1
        stream = client.stream_turn(self.gateway, session.app.token, session.id,
                                    {"prompt": prompt})
        session.lost_turns -= 1
        if stream.refusal:
            self.findings.add(f"a streamed turn: {stream.refusal}")
            raise Lost("there is no stream")
        session.turns += 1
        self.note("streamed turn accepted")
        return stream, session.turns

    def read_stream(self, session, stream, index, last, on_event=None):
        """To the closing event of turn `index`, from the event after `last` on. Gives that event;
        none if `on_event` has had enough. Remembers where it broke off."""
        place = last
        try:
            while (event := stream.next()) is not None:
                number, name, data = event
                self.findings.check(number is not None and place in (None, number - 1),
                                    f"session {session.id}: after {place} came {event}")
                place = number
                session.take_event(event, self.findings)
                self.figures["streamed events"] += 1
                if name in CLOSING and index is not None and data["turn_index"] >= index:
                    self.findings.check(data["turn_index"] == index,
                                        f"session {session.id}: not turn {index}: {event}")
                    self.note("streamed turn")
                    return event
                if on_event and on_event(event) is False:
                    return None
            self.findings.add(f"session {session.id}: the stream of turn {index} has no end event")
        except Lost:
            if index is not None:
                session.cut_streams.append((session.last_id if place is None else place, index))
            raise
        finally:
            stream.close()

    def check_end(self, session, prompt, end):
        """A turn that was told to its end must have ended well."""
        if end is None or prompt == "fail":
            return
        if end[1] == "done":
            self.findings.check(end[2]["stop_reason"] == "end_turn", f"session {session.id}: {end}")
            session.prompts.append(prompt)
            self.figures["turns done through acpx"] += session.agent == "acpx"
            return
        is_death = self.are_agents_killed and end[2]["code"] in AGENT_DEATHS
        self.findings.check(is_death, f"session {session.id}: {end}")

    def do_streamed_turn(self):
        session = self.session()
        prompt = self.prompt_for(session)
        stream, index = self.begin_stream(session, prompt)
        self.check_end(session, prompt, self.read_stream(session, stream, index, None))

    def do_cut_stream(self):
        """Cut by the caller after a few events, and gone on with by Last-Event-ID."""
        session = self.session()
        prompt = self.prompt_for(session)
        left = self.choice.randrange(6)
        stream, index = self.begin_stream(session, prompt)

        def count(_):
            nonlocal left
            left -= 1
            return left > 0
        end = None
        if left > 0:
            end = self.read_stream(session, stream, index, None, count)
        stream.close()
        if end is None:
            stream = self.go_on(session)
            end = self.read_stream(session, stream, index, session.last_id)
            self.note("stream gone on with")
        self.check_end(session, prompt, end)

    def go_on(self, session, after=None):
        after = session.last_id if after is None else after
        stream = client.stream_events(self.gateway, session.app.token, session.id, after)
        if stream.refusal:
            self.findings.add(f"going on with a stream after {after}: {stream.refusal}")
            raise Lost("there is no stream")
        return stream

    def do_asked_turn(self):
        """The agent asks, and another caller of the app answers."""
        session = self.session("ask")
        prompt = ("permission edit" if session.agent == "demo"
                  else '[{"permission": {"kind": "edit"}}]')
        stream, index = self.begin_stream(session, prompt)

        def answer_it(event):
            if event[1] == "permission":
                if self.receiver and event[2]["expires_at"] is not None:
                    session.app.told.add(event[2]["id"])
                self.answer_question(session, event[2]["id"])
        self.check_end(session, prompt,
                       self.read_stream(session, stream, index, None, answer_it))

    def answer_question(self, session, question):
        decision = self.choice.choice(["allow", "deny"])
        answer = self.call(session.app.token, f"POST {session.path}/permissions/{question}",
                           {"decision": decision})
        # A question is gone with an agent that was killed.
        if self.are_agents_killed and answer.status in (404, 409):
            return
        if self.expect(answer, 200, "an answer to a question"):
            session.permitted[question] = decision
            self.note("permission")

    def do_tail(self):
        """All that was told before must be told again."""
        session = self.session()
        after = self.choice.randrange(session.last_id + 1)
        last = session.last_id
        if after < last:
            self.read_stream(session, self.go_on(session, after), None, after,
                             lambda event: event[0] < last)
            self.note("tail")

    def do_look(self):
        app = self.app()
        answer = self.call(app.token, "GET /sessions")
        if self.expect(answer, 200, "a list"):
            listed = {state["session_id"] for state in answer.body["sessions"]}
            missing = {session.id for session in app.open_sessions()} - listed
            self.findings.check(not missing, f"sessions of {app.name} are not listed: {missing}")
            self.note("list")
