"""Makes what is installed beside the program from what the program says of itself: man pages from its help, the default
configuration from its table of keys, completions. So none of them can differ from the program.

    make_share.py PROGRAM TARGET

Gives below TARGET: man/man1/*.1.gz, man/man5/clawdforge.toml.5.gz, clawdforge.toml, completions/{bash,zsh,fish}, and
changelog.gz, which the Debian package must have; SOURCE_DATE_EPOCH is the time in it.
"""
import email.utils
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def say(program, *arguments):
    """What the program prints, with nothing of the builder's own settings."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([str(program), *arguments], env={"HOME": home, "PATH": "/usr/bin:/bin"}, text=True,
                              capture_output=True, check=True, timeout=60)
    return done.stdout


# The configuration

def keys_of(program):
    """(key, meaning, default as told, value as TOML or none)"""
    shown = dict(re.findall(r"^(?:# )?(\w+) *= (.*?) +#", say(program, "config"), re.M))
    rows = re.findall(r"^  --([a-z-]+) +(.*) \(default: (.*)\)$", say(program, "serve", "--help"), re.M)
    assert len(rows) > 40, "serve --help has another form than packaging/make_share.py reads"
    for flag, meaning, default in rows:
        key = flag.replace("-", "_")
        value = shown[key]
        # What follows from the machine, or from another key, has no value of its own.
        yield key, meaning, default, value if value in (default, f'"{default}"', "[]") else None


def default_configuration(program):
    lines = ["# The configuration of the clawdforge gateway. Every key is here with its default; take the # away to change one.",
             "# Environment variables CLAWDFORGE_KEY and flags --key of `clawdforge serve` win over this file.",
             "# `clawdforge config --config FILE` shows what holds; man clawdforge.toml and docs/operations.md have more.", ""]
    for key, meaning, default, value in keys_of(program):
        lines.append(f"# {meaning}")
        if value is None:
            lines.append(f"# Default: {default}")
        lines += [f"#{key} = {value}" if value is not None else f"#{key} =", ""]
    return "\n".join(lines)


# Man pages

def roff(text):
    """A line as roff shows it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def page(title, section, version, name, meaning, text):
    """Help is text of fixed columns, and is shown as such."""
    synopsis, _, rest = text.partition("\n")
    head = (f'.TH {title.upper()} {section} "" "clawdforge {version}" "clawdforge"\n.SH NAME\n{roff(name)} \\- {roff(meaning)}\n'
            f".SH SYNOPSIS\n.B {roff(synopsis)}\n.SH DESCRIPTION\n.nf\n")
    body = "\n".join(roff(line) for line in rest.strip("\n").split("\n"))
    return head + body + "\n.fi\n.SH SEE ALSO\n.BR clawdforge (1),\n.BR clawdforge.toml (5)\n"


def commands_of(overview):
    """(words, meaning) of each command that the overview lists."""
    joined = re.sub(r"^(  [a-z][^\n]*)\n {10,}(\S)", r"\1  \2", overview, flags=re.M)
    for call, meaning in re.findall(r"^  ([a-z][a-z-]*(?: \S+)*)  +(\S.*)$", joined, re.M):
        yield [word for word in call.split() if re.fullmatch(r"[a-z][a-z-]*", word)], meaning


def man_pages(program, version):
    overview = say(program, "--help")
    pages = {"man1/clawdforge.1": page("clawdforge", 1, version, "clawdforge", "a gateway in front of coding agents, and its client",
                                       overview)}
    commands = list(commands_of(overview))
    assert ["token", "mint"] in [words for words, _ in commands], "the overview has another form than this reads"
    for words, meaning in commands:
        name = "-".join(["clawdforge", *words])
        text = say(program, *words, "--help")
        if words == ["serve"]:
            text = text.partition("\n\n")[0] + "\n\nRun the gateway. Its keys are in clawdforge.toml(5).\n"
        pages[f"man1/{name}.1"] = page(name, 1, version, name, meaning, text)
    pages["man5/clawdforge.toml.5"] = keys_page(program, version)
    return pages


def keys_page(program, version):
    text = (f'.TH CLAWDFORGE.TOML 5 "" "clawdforge {version}" "clawdforge"\n.SH NAME\nclawdforge.toml \\- configuration of the '
            "clawdforge gateway\n.SH DESCRIPTION\nA TOML file, named by\n.B \\-\\-config\nor\n.BR CLAWDFORGE_CONFIG .\n"
            "Each key is also a flag of\n.B clawdforge serve\nand an environment variable\n.BR CLAWDFORGE_ KEY;\n"
            "flags win over variables, which win over the file.\n")
    for key, meaning, default, _ in keys_of(program):
        text += f".TP\n.B {roff(key)}\n{roff(meaning)}\nDefault: {roff(default)}.\n"
    return text + ".SH SEE ALSO\n.BR clawdforge (1)\n"


def main():
    program, target = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    version = say(program, "version").split()[1]
    files = {"clawdforge.toml": default_configuration(program)}
    for shell in ("bash", "zsh", "fish"):
        files[f"completions/{shell}"] = say(program, "completion", shell)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, text in man_pages(program, version).items():
        path = target / "man" / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    date = email.utils.formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    (target / "changelog.gz").write_bytes(gzip.compress(
        (f"clawdforge ({version}) unstable; urgency=medium\n\n  * See /usr/share/doc/clawdforge/CHANGELOG.md.\n\n"
         f" -- The clawdforge authors <clawdforge@localhost>  {date}\n").encode(), 9, mtime=0))


main()
