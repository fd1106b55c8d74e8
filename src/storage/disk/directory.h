// Directory is an open directory whose entries are read one by one. It closes itself.
#pragma once

#include <dirent.h>

#include <memory>
#include <utility>

#include "base/descriptor.h"

namespace clawdforge {

class Directory {
 public:
  Directory() = default;  // not open
  // Takes over what is open; if its entries cannot be read it is closed, and errno says why.
  explicit Directory(Descriptor opened)
      : number_(opened.number()), entries_(::fdopendir(opened.number())) {
    if (entries_) opened.release();
  }

  bool is_open() const { return entries_ != nullptr; }
  int number() const { return number_; }  // only if it is open
  // Null after the last one, and with errno if that cannot be read.
  const dirent* next() { return ::readdir(entries_.get()); }
  void rewind() { ::rewinddir(entries_.get()); }

 private:
  struct Close {
    void operator()(DIR* entries) const { ::closedir(entries); }
  };

  int number_ = -1;
  std::unique_ptr<DIR, Close> entries_;
};

}  // namespace clawdforge
