// PipedProgram is a program that a benchmark speaks to over its standard input and output. The
// destructor closes its input and waits for its end. All of it gives up where something
// fails or takes too long.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// As execve() and its like want them; they point into `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts);

class PipedProgram {
 public:
  // `environment` in the form NAME=VALUE is all that the program gets.
  PipedProgram(std::vector<std::string> argv, std::vector<std::string> environment);
  ~PipedProgram();
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;

  pid_t pid() const { return pid_; }
  void write(std::string_view bytes);
  void close_input();
  // The next line that it says, without its end; valid until the next call.
  std::string_view line();
  // Waits until it has ended; gives the microseconds of CPU that it has used.
  double end();

 private:
  void fill();

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string unread_;
  std::size_t place_ = 0;
};

}  // namespace clawdforge
