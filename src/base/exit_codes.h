// The exit codes that all commands of the program share; scripts may rely on them.
#pragma once

namespace clawdforge {

inline constexpr int kExitNoAnswer = 1;  // there is no gateway, or it did not answer
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoToken = 3;
inline constexpr int kExitRefused = 4;
inline constexpr int kExitFailed = 5;
inline constexpr int kExitInterrupted = 130;

}  // namespace clawdforge
