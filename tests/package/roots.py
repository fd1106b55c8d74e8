"""Other roots in which the packages are tried, and ways into them.

Roots of Debian are made by debootstrap in build/roots, once; a test gets a copy. One root has musl, and no other C library.
"""
import os
import pathlib
import shutil
import subprocess

import pytest

from gateway import REPO

PACKAGES = REPO / "build/packages"
ROOTS = REPO / "build/roots"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
WHEN = "PACKAGE_ROOTS=yes ./test package tries it: it needs root and a network, and takes minutes"
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}


def run(*command, timeout=300, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def the(pattern):
    found = sorted(PACKAGES.glob(pattern))
    assert len(found) == 1, f"{pattern} in build/packages: {found}; ./package all makes them"
    return found[0]


def why_no_roots():
    if os.getuid() != 0:
        return "only root may enter another root"
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"this machine does not allow it: {done.stderr.strip()}"


def skip_without_roots():
    if os.environ.get("PACKAGE_ROOTS") != "yes":
        pytest.skip(WHEN)
    if reason := why_no_roots():
        pytest.skip(reason)


# The root is exchanged and not only changed: the kernel makes no user namespace for a process after chroot, and agents would get a
# weaker jail than on a machine that has this root. `umount` is that of the other root already.
ENTER = """mount --bind "$1" "$1" && cd "$1" && mount -t proc proc proc && mount --rbind /dev dev && shift &&
pivot_root . . && umount -l . && cd / && exec "$@"
"""


def within(root, *command, timeout=600):
    """A command in another root, with a /proc and a mount namespace of its own: nothing is left mounted."""
    return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", root, *command, timeout=timeout, env=PATH)


def debian_root(suite):
    made = ROOTS / suite
    if not (made / "etc/os-release").exists():
        ROOTS.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(made, ignore_errors=True)
        run("debootstrap", "--variant=minbase", suite, made, MIRROR, timeout=900)
    return made


def copy_of(made, target):
    run("cp", "-a", "--reflink=auto", made, target)
    return target


def empty_root(target, busybox):
    """What a shell needs, and nothing else: busybox under all its names."""
    for name in ("bin", "proc", "dev", "tmp", "etc", "lib", "opt", "usr/bin"):
        (target / name).mkdir(parents=True)
    shutil.copy(busybox, target / "bin/busybox")
    (target / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    return target


# musl

LOADER = pathlib.Path("/lib/ld-musl-x86_64.so.1")  # where Alpine has it, too


def source_of_busybox(place):
    """Debian's own, fetched and checked by apt, with lists of its own: the machine's may have no sources."""
    (place / "lists/partial").mkdir(parents=True)
    # "trusted" would leave the check out; apt takes the machine's keys of Debian.
    (place / "sources").write_text(f"deb-src {MIRROR} bookworm main\n")
    (place / "apt.conf").write_text(f'Dir::Etc::SourceList "{place}/sources";\nDir::Etc::SourceParts "/dev/null";\n'
                                    f'Dir::State::Lists "{place}/lists";\nAPT::Sandbox::User "root";\n')
    environment = os.environ | {"APT_CONFIG": str(place / "apt.conf")}
    run("apt-get", "update", "-qq", env=environment)
    run("apt-get", "source", "-qq", "--download-only", "busybox", env=environment, cwd=place)
    archive, = place.glob("busybox_*.orig.tar.*")
    (place / "source").mkdir()
    run("tar", "-xf", archive, "-C", place / "source", "--strip-components=1")
    return place / "source"


def busybox_with_musl():
    """busybox that needs musl's loader and nothing else, as Alpine's does. Debian has none, so it is compiled, once."""
    made = ROOTS / "busybox-musl"
    if made.exists():
        return made
    place = ROOTS / "busybox-build"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    source = source_of_busybox(place)
    headers = place / "headers"  # the kernel's alone: those beside them are glibc's
    headers.mkdir()
    for name in ("linux", "asm-generic", "mtd"):
        (headers / name).symlink_to(f"/usr/include/{name}")
    (headers / "asm").symlink_to("/usr/include/x86_64-linux-gnu/asm")
    run("make", "-s", "defconfig", cwd=source)
    config = (source / ".config").read_text()
    # It wants an older kernel's headers than Debian 12 has.
    config = config.replace("CONFIG_TC=y\n", "# CONFIG_TC is not set\n").replace("CONFIG_FEATURE_TC_INGRESS=y\n", "")
    (source / ".config").write_text(config)
    run("make", "-s", "-j2", "CC=musl-gcc", f"EXTRA_CFLAGS=-isystem {headers}", "busybox", cwd=source, timeout=900)
    shutil.copy(source / "busybox", made)
    shutil.rmtree(place)
    return made


def musl_root(target):
    busybox = busybox_with_musl()
    assert f"interpreter {LOADER}," in run("file", "-L", busybox), "it is to be linked with musl, dynamically"
    root = empty_root(target, busybox)
    shutil.copy(LOADER, root / "lib", follow_symlinks=True)
    run("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    return root
