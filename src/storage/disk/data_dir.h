// DataDir is the gateway's own directory: it holds the ledger, the admin token, the port
// file and, later, everything agents leave on disk. Opening it takes its lock, which
// ends with the process: one gateway per directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

class DataDir {
 public:
  // Makes the directory (0700) and its parents if they are not there. Errc::conflict when
  // another gateway has it and keeps it for a second, Errc::unavailable when it cannot be made or
  // written.
  static Result<DataDir> open(std::string path);
  DataDir(DataDir&& other) noexcept;
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;
  ~DataDir();

  const std::string& path() const { return path_; }
  bool is_private() const;  // only its owner can look inside
  std::string admin_token_path() const;
  std::string admin_socket_path() const;

  // What the file holds; Errc::not_found when there is none.
  Result<Secret> read_admin_token() const;
  // Takes the right to read the file from all but its owner. True: others had it.
  bool close_admin_token() const;
  // Writes it so that it is there whole or not at all, 0600.
  Result<void> write_admin_token(const Secret& token) const;

  Result<void> write_port(std::uint16_t port) const;
  // For clients on this machine, beside the port: where they reach the gateway, and the certificate
  // (PEM) that it shows there; empty: it does not speak TLS.
  Result<void> write_address(std::string_view url, std::string_view certificate) const;
  void remove_port_and_address() const;

 private:
  DataDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // a descriptor; -1 when moved from
};

// For a client on the same machine: whether a gateway has the directory now, and its
// files, which may be left over from one that was killed.
bool is_data_dir_in_use(const std::string& data_dir);
// The gateway's Unix socket; empty: there is none.
std::string find_admin_socket_in(const std::string& data_dir);
Result<Secret> read_admin_token_in(const std::string& data_dir);
// What write_address() wrote; Errc::not_found when no gateway is ready.
struct WrittenAddress {
  std::string url;
  std::string certificate;
};
Result<WrittenAddress> read_address_in(const std::string& data_dir);

}  // namespace clawdforge
