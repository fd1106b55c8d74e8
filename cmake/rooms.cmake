# add_room(NAME USES rooms... LINK libraries... TEST_USES rooms... TEST_SHARDS count)
# One static library from src/NAME/*.cc, and one test program from src/NAME/*_test.cc. A room may
# be in a family: src/agent/acp is the room agent/acp, with the targets room_agent_acp and
# agent_acp_test. All rooms share the precompiled header of base, all test programs another one.
#
# The sources of a room are compiled together, a few at a time (a "unity build"): reading the
# headers costs more than all the rest, and so they are read once for many sources. The names in
# the unnamed namespaces of a room must differ for that. CLAWDFORGE_UNITY=OFF compiles each source
# by itself, which is quicker while one of them is being changed.
option(CLAWDFORGE_UNITY "Compile several sources of a room together" ON)
set(CLAWDFORGE_UNITY_SOURCES 12)

function(compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CLAWDFORGE_UNITY}
                        UNITY_BUILD_BATCH_SIZE ${CLAWDFORGE_UNITY_SOURCES})
endfunction()

# write_header_sum(TARGET files...): the precompiled header of a target holds the checkout's path, so
# its bytes differ in each, and the compiler cache would never hit in another. It goes by this sum
# instead: of all that the header is made from, which is these files of ours and libraries.
function(write_header_sum target)
  set(sums "")
  foreach(file IN LISTS ARGN)
    file(SHA256 ${CMAKE_SOURCE_DIR}/${file} sum)
    string(APPEND sums "${sum} ")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum
       "${sums}${CMAKE_CXX_COMPILER_VERSION} ${Boost_VERSION} ${fmt_VERSION} ${GTest_VERSION}\n")
endfunction()

# add_test_program(NAME sources...): with the test libraries. In the release build the rooms are
# optimised, and the tests themselves are not: they run once, so that would cost more than it saves.
function(add_test_program name)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  set(libraries rapidcheck GTest::gtest GTest::gmock)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(options -U_FORTIFY_SOURCE -O0 -g0)
  endif()
  if(NOT TARGET test_header)
    file(WRITE ${CMAKE_BINARY_DIR}/generated/test_header.cc "")
    add_library(test_header STATIC ${CMAKE_BINARY_DIR}/generated/test_header.cc)
    target_include_directories(test_header PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_compile_options(test_header PRIVATE ${options})
    target_link_libraries(test_header PRIVATE ${libraries} fmt::fmt-header-only)
    target_precompile_headers(test_header PRIVATE ${CMAKE_SOURCE_DIR}/tests/test_header.h)
    write_header_sum(test_header src/base/pch.h tests/test_header.h)
  endif()
  add_executable(${name} ${ARGN})
  compile_together(${name})
  target_compile_options(${name} PRIVATE ${options})
  target_link_libraries(${name} PRIVATE ${libraries} GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM test_header)
endfunction()

# add_shards(NAME [count]): runs NAME_test, in so many parts at the same time. For tests that mostly
# wait.
function(add_shards name)
  if(NOT ARGN OR ARGN EQUAL 1)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
    return()
  endif()
  math(EXPR last "${ARGN} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_${shard} COMMAND ${name}_test)
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 300
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARGN};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

function(add_room room)
  cmake_parse_arguments(ROOM "" "TEST_SHARDS" "USES;LINK;TEST_USES" ${ARGN})
  string(REPLACE "/" "_" name ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(room_${name} STATIC ${sources})
  compile_together(room_${name})
  # The sources of Asio and Beast, and one that asks OpenSSL's headers for more than others do.
  set_source_files_properties(src/base/asio_impl.cc src/base/secret.cc
                              src/base/beast_impl.cc PROPERTIES
                              SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src
                                                 ${CMAKE_BINARY_DIR}/generated)
  list(TRANSFORM ROOM_USES PREPEND room_)
  list(TRANSFORM ROOM_USES REPLACE "/" "_")
  list(TRANSFORM ROOM_TEST_USES PREPEND room_)
  list(TRANSFORM ROOM_TEST_USES REPLACE "/" "_")
  target_link_libraries(room_${name} PUBLIC ${ROOM_USES} ${ROOM_LINK})
  if(name STREQUAL "base")
    target_precompile_headers(room_base PRIVATE ${CMAKE_SOURCE_DIR}/src/base/pch.h)
    write_header_sum(room_base src/base/pch.h)
  else()
    target_precompile_headers(room_${name} REUSE_FROM room_base)
  endif()

  if(CLAWDFORGE_TESTS AND tests)
    add_test_program(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE room_${name} ${ROOM_TEST_USES})
    add_shards(${name} ${ROOM_TEST_SHARDS})
  endif()
endfunction()
enable_testing()

# embed_texts(ROOM glob): compiles text files into the room as string literals,
# listed in name order as `kSchemaFiles` in generated/<room>/schema_files.h.
function(embed_texts room pattern)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${pattern})
  set(header ${CMAKE_BINARY_DIR}/generated/${room}/schema_files.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py texts ${header} ${files}
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
  string(REPLACE "/" "_" name ${room})
  target_sources(room_${name} PRIVATE ${header})
endfunction()

# embed_openapi(ROOM file): the YAML contract as one JSON string literal,
# `kOpenApiJson` in generated/<room>/openapi_json.h.
function(embed_openapi room file)
  set(header ${CMAKE_BINARY_DIR}/generated/${room}/openapi_json.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py openapi ${header}
            ${CMAKE_SOURCE_DIR}/${file}
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
  string(REPLACE "/" "_" name ${room})
  target_sources(room_${name} PRIVATE ${header})
endfunction()

# add_launcher(ROOM): builds src/launcher as a static program of its own and compiles it into
# the room, as words in generated/<room>/launcher_words.h, so that one file is all there is to
# copy. It is the same program in every preset: without a C library, which it would take longer
# to start than all it does itself (src/launcher/kernel.h), and without sanitizers.
# (A generated header and not #embed: ccache does not see what #embed reads.)
function(add_launcher room)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/launcher/*.cc
       ${CMAKE_SOURCE_DIR}/src/launcher/bounds/*.cc)
  add_executable(clawdforge-launcher ${sources})
  target_include_directories(clawdforge-launcher PRIVATE ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(clawdforge-launcher PROPERTIES
    COMPILE_OPTIONS "-O2;-g0;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wswitch-enum;-Werror;\
-ffreestanding;-fno-exceptions;-fno-rtti;-fno-stack-protector;-fno-asynchronous-unwind-tables;\
-fno-pie;-ffunction-sections;-fdata-sections"
    LINK_OPTIONS "-static;-nostdlib;-fuse-ld=lld;-Wl,--gc-sections;-Wl,--strip-all")
  set(header ${CMAKE_BINARY_DIR}/generated/${room}/launcher_words.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py launcher ${header}
            $<TARGET_FILE:clawdforge-launcher>
    DEPENDS clawdforge-launcher ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
  string(REPLACE "/" "_" name ${room})
  target_sources(room_${name} PRIVATE ${header})
endfunction()
