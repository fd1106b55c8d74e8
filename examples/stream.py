#!/usr/bin/env python3
"""Asks an agent and prints its answer as it comes; Ctrl-C cancels the turn.

  stream.py [--agent NAME] PROMPT

A lost connection is healed by the client of clients/python: the answer goes on where it was.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients/python"))
import clawdforge  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Prints an agent's answer as it comes.")
    parser.add_argument("--agent", default="claude")
    parser.add_argument("prompt")
    arguments = parser.parse_args()
    forge = clawdforge.Client()
    try:
        with forge.create_session(agent=arguments.agent) as session:
            try:
                for event in session.stream(arguments.prompt):
                    print(event.text, end="", flush=True)
            except KeyboardInterrupt:
                session.cancel()
            print()
    except clawdforge.Error as error:
        sys.exit(f"stream.py: {error}")


main()
