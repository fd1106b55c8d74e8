# Everything comes from the distribution; scripts/install-packages has the list.
# What is C++ is linked statically or compiled in, what is C (OpenSSL, SQLite) is shared:
# see docs/adr/0011-few-shared-libraries.md.
set(Boost_USE_STATIC_LIBS ON)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(SQLite3 3.40 REQUIRED)
find_package(fmt 9 REQUIRED)
# Debian has md4c only as a shared library; libedit, with what it needs, is linked statically: see
# docs/adr/0040-libraries-of-the-chat.md.
find_path(MD4C_INCLUDE md4c.h REQUIRED)
find_library(MD4C_LIBRARY md4c REQUIRED)
foreach(archive edit bsd md tinfo)
  find_library(LIBEDIT_${archive} lib${archive}.a REQUIRED)
  list(APPEND LIBEDIT_LIBRARIES ${LIBEDIT_${archive}})
endforeach()
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)  # compiled in
find_package(Python3 REQUIRED COMPONENTS Interpreter)
