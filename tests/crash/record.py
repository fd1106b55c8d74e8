"""What the clients know: all that was answered, and what they cannot be sure of.

Each app, with all that belongs to it, is used by one worker alone, so that what it knows is exact.
"""
import collections
import time

CLOSING = ("done", "failed")


class Findings:
    """What is wrong. Collected, because one loss often explains the next."""

    def __init__(self):
        self.all = []

    def add(self, text):
        self.all.append(text)

    def check(self, is_well, text):
        if not is_well:
            self.add(text)
        return is_well


class Figures(collections.Counter):
    """How often something was answered, found or done."""


class App:
    def __init__(self, name, token):
        self.name = name
        self.token = token
        self.dead_tokens = []
        self.is_gone = False
        self.is_revoke_unsure = False
        self.is_token_unsure = False
        self.lost_creates = 0  # sessions that may be there without our knowing their ids
        self.sessions = []
        self.uploads = []
        self.told = set()  # questions that a reader was told, of sessions with a webhook
        self.jobs = []  # accepted, and not looked at since
        self.asked = 0  # runs whose agents log what they use
        self.answered = set()  # the numbers of those that were answered
        self.logged = self.cut_off = 0  # asks in the logs of its agents, as of the last look

    def log_of(self, gateway, what):
        """A file that its agents write."""
        return gateway.root / f"{self.name}-{what}.log"

    def open_sessions(self):
        return [session for session in self.sessions if session.is_usable()]


class Upload:
    def __init__(self, token, content):
        self.token = token
        self.content = content
        self.made_at = time.monotonic()
        self.is_checked = False


class Job:
    def __init__(self, job_id, log):
        self.id = job_id
        self.log = log  # of the starts of its agent


class Run:
    def __init__(self, run_id, state, outcome):
        self.id = run_id
        self.state = state
        self.outcome = outcome


class Key:
    """A run that was sent with an idempotency key."""

    def __init__(self, app, key, body):
        self.app = app
        self.key = key
        self.body = body
        self.answer = None  # None: none has come, or none that is kept

    @property
    def header(self):
        return f"Idempotency-Key: {self.key}"


class Session:
    def __init__(self, session_id, app, agent, mode):
        self.id = session_id
        self.app = app
        self.agent = agent
        self.mode = mode
        self.made_at = time.monotonic()
        self.is_closed = False
        self.is_close_unsure = False
        self.is_touched = True  # since the last check
        self.turns = 0          # the highest index given, as far as is known
        self.lost_turns = 0     # further ones that may have been accepted
        self.answers = {}       # index -> the body of a plain answer
        self.prompts = []       # of turns that were answered as done
        self.cancelled = set()  # indexes of turns whose cancel was answered
        self.permitted = {}     # id of a question -> the decision that was answered
        self.received = {}      # id -> (name, data), as told by streams
        self.replayed = {}      # the same, as told after a restart
        self.last_id = 0        # the newest event that was told or replayed
        self.checked_turns = 0
        self.cut_streams = []   # (last id, index) of streams that broke off

    @property
    def path(self):
        return f"/sessions/{self.id}"

    def is_usable(self):
        return not (self.is_closed or self.is_close_unsure or self.app.is_gone
                    or self.app.is_revoke_unsure or self.app.is_token_unsure)

    def take_event(self, event, findings):
        """One that a stream has told; two streams must tell the same."""
        number, name, data = event
        known = self.received.setdefault(number, (name, data))
        findings.check(known == (name, data),
                       f"session {self.id}: event {number} was told as {known} and as {event}")
        self.last_id = max(self.last_id, number)
