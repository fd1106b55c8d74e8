"""A stand-in for the FastAPI original, as lean as that design can be, on one uvicorn worker.

  fastapi_standin.py FOLDER      (CLAUDE_BIN: the command line, APP_TOKEN: the one token)

POST /run checks a bearer token by its digest in SQLite, validates with pydantic, starts the
command line, hands it the prompt, parses its JSON, inserts a row and answers with the four keys.
POST /files copies an UploadFile to a file of its own. It is kinder to itself than a service may
be: no request log, no process tree to end, no directory per run, uploads are not synced to disk.
Prints its address in one line when it listens.
"""

import asyncio
import hashlib
import json
import os
import pathlib
import secrets
import socket
import sqlite3
import sys
import time
from typing import Literal, Optional

import uvicorn
from fastapi import Depends, FastAPI, File, Form, Header, HTTPException, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

FOLDER = pathlib.Path(sys.argv[1])
CLAUDE_BIN = os.environ["CLAUDE_BIN"]
PIECE_BYTES = 1024 * 1024

app = FastAPI()
ledger = sqlite3.connect(FOLDER / "standin.db")
ledger.executescript("""
    PRAGMA journal_mode=WAL;
    PRAGMA synchronous=FULL;
    CREATE TABLE tokens(digest TEXT PRIMARY KEY, app TEXT NOT NULL);
    CREATE TABLE runs(id INTEGER PRIMARY KEY, app TEXT, model TEXT, prompt_chars INTEGER,
                      response_chars INTEGER, duration_ms INTEGER, ok INTEGER, at INTEGER);
""")
ledger.execute("INSERT INTO tokens VALUES (?, 'bench')",
               (hashlib.sha256(os.environ["APP_TOKEN"].encode()).hexdigest(),))
ledger.commit()


class RunRequest(BaseModel):
    prompt: str = Field(min_length=1)
    model: Optional[str] = None
    system: Optional[str] = None
    system_mode: Optional[Literal["append", "replace"]] = "append"
    effort: Optional[Literal["low", "medium", "high", "xhigh", "max"]] = None
    files: Optional[list[str]] = None
    timeout_secs: Optional[int] = Field(default=None, ge=5, le=600)


async def caller(authorization: str = Header(default="")) -> str:
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).hexdigest()
    row = ledger.execute("SELECT app FROM tokens WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        raise HTTPException(401, "unknown token")
    return row[0]


@app.post("/run")
async def run(request: RunRequest, name: str = Depends(caller)):
    begin = time.monotonic()
    model = request.model or "sonnet"
    child = await asyncio.create_subprocess_exec(
        CLAUDE_BIN, "-p", "--output-format", "json", "--model", model,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    out, err = await asyncio.wait_for(child.communicate(request.prompt.encode()),
                                      request.timeout_secs or 120)
    duration_ms = int((time.monotonic() - begin) * 1000)
    if child.returncode != 0:
        return JSONResponse({"ok": False, "error": f"claude exit {child.returncode}",
                             "stderr": err.decode(errors="replace"), "duration_ms": duration_ms,
                             "stop_reason": "error"}, status_code=502)
    answer = json.loads(out)
    result = answer["result"]
    ledger.execute(
        "INSERT INTO runs(app, model, prompt_chars, response_chars, duration_ms, ok, at) "
        "VALUES (?, ?, ?, ?, ?, 1, ?)",
        (name, model, len(request.prompt), len(result), duration_ms, int(time.time())))
    ledger.commit()
    try:
        result = json.loads(result)
    except ValueError:
        pass
    return {"ok": True, "result": result, "duration_ms": duration_ms,
            "stop_reason": answer.get("stop_reason")}


@app.post("/files")
async def files(file: UploadFile = File(...), ttl_secs: int = Form(default=3600),
                name: str = Depends(caller)):
    token = "ff_" + secrets.token_urlsafe(32)
    size = 0
    with open(FOLDER / token, "wb") as kept:
        while piece := await file.read(PIECE_BYTES):
            kept.write(piece)
            size += len(piece)
    return {"file_token": token, "ttl_secs": ttl_secs, "size": size}


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(f"standin listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


main()
