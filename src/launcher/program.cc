#include "launcher/program.h"

#include <errno.h>
#include <linux/limits.h>
#include <stddef.h>

namespace launcher {

namespace {

bool has_slash(const char* name) {
  while (*name != '\0' && *name != '/') ++name;
  return *name == '/';
}

const char* path_in(char** environment) {
  for (; *environment != nullptr; ++environment) {
    const char* entry = *environment;
    const char* name = "PATH=";
    while (*name != '\0' && *entry == *name) {
      ++entry;
      ++name;
    }
    if (*name == '\0') return entry;
  }
  return "/bin:/usr/bin";
}

// The next directory of a search path and the name in it. False: it is too long. `rest`
// then stands after the directory.
bool next_candidate(const char*& rest, const char* name, char (&candidate)[PATH_MAX]) {
  size_t size = 0;
  bool fits = true;
  const auto add = [&](char character) {
    if (size < sizeof candidate)
      candidate[size++] = character;
    else
      fits = false;
  };
  if (*rest == '\0' || *rest == ':') add('.');  // an empty entry is the working directory
  while (*rest != '\0' && *rest != ':') add(*rest++);
  add('/');
  while (*name != '\0') add(*name++);
  add('\0');
  return fits;
}

// A place where it is not, as opposed to one where it is and does not run.
bool is_elsewhere(Answer answer) {
  return answer == -ENOENT || answer == -ENOTDIR || answer == -ESTALE || answer == -ENODEV ||
         answer == -ETIMEDOUT || answer == -ENAMETOOLONG;
}

}  // namespace

Answer execute(char** program, char** environment) {
  const char* name = program[0];
  if (*name == '\0') return -ENOENT;
  if (has_slash(name)) return call(SYS_execve, name, program, environment);
  Answer worst = -ENOENT;
  const char* rest = path_in(environment);
  while (true) {
    char candidate[PATH_MAX];
    const bool fits = next_candidate(rest, name, candidate);
    const Answer answer = fits ? call(SYS_execve, candidate, program, environment) : -ENAMETOOLONG;
    if (answer == -EACCES) worst = answer;
    if (answer != -EACCES && !is_elsewhere(answer)) return answer;
    if (*rest == '\0') return worst;
    ++rest;
  }
}

}  // namespace launcher
