# The compiler and the flags that hold for every target.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR
    "g++ below 13 destroys temporaries in co_await expressions twice, so clawdforge cannot be "
    "built with it: use clang++-19 (cmake --preset release picks it).")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  message(FATAL_ERROR
    "clang below 17 has no std::expected with libstdc++, so clawdforge cannot be built with it: "
    "use clang++-19 (cmake --preset release picks it).")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CLAWDFORGE_SANITIZE "" CACHE STRING "Sanitizers, comma separated (address,undefined or thread)")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wswitch-enum -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # A precompiled header carries its build time, which would defeat ccache.
  add_compile_options(-Wthread-safety -Xclang -fno-pch-timestamp)
  # Without CMake's second -include, whose absolute path ccache would take for a difference.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()
add_compile_options(-fstack-protector-strong -ffunction-sections -fdata-sections)
add_link_options(-fuse-ld=lld -Wl,--gc-sections -Wl,-z,relro,-z,now)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=2)
  # The same program wherever it is built: in names of files the checkout is ".". ccache makes paths below it relative to
  # the build's folder, so that form is mapped, too, and without ccache what is in that folder gets the form that ccache gives
  # it; see docs/adr/0094-releases-that-can-be-built-again.md.
  file(RELATIVE_PATH way_to_sources ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
  string(REGEX REPLACE "/$" "" way_to_sources "${way_to_sources}")
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${way_to_sources}=.
                      -ffile-prefix-map=${CMAKE_BINARY_DIR}/=)
  # Only the used part of the C++ library then counts to an idle gateway's memory.
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
if(CLAWDFORGE_SANITIZE)
  add_compile_options(-fsanitize=${CLAWDFORGE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CLAWDFORGE_SANITIZE})
endif()

# Asio and Beast are compiled once, in src/base/asio_impl.cc and src/base/beast_impl.cc.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
                        BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 ${CCACHE})
endif()
