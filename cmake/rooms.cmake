# add_room(NAME USES rooms... LINK libraries... TEST_USES rooms...)
# One static library from src/NAME/*.cc, and one test program from src/NAME/*_test.cc. A room may
# be in a family: src/agent/acp is the room agent/acp, with the targets room_agent_acp and
# agent_acp_test. All rooms share the precompiled header of base.
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

function(add_room room)
  cmake_parse_arguments(ROOM "" "" "USES;LINK;TEST_USES" ${ARGN})
  string(REPLACE "/" "_" name ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(room_${name} STATIC ${sources})
  if(NOT room STREQUAL "ledger/rows")
    compile_together(room_${name})
  endif()
  # The sources of Asio and Beast, and one that asks OpenSSL's headers for more than others do.
  set_source_files_properties(src/base/asio_impl.cc src/base/secret.cc
                              src/http/message/beast_impl.cc PROPERTIES
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
    # The precompiled header holds the checkout's path, so its bytes differ in each, and the
    # compiler cache would never hit in another. It goes by this sum instead: of all that the
    # header is made from. It includes nothing of ours.
    file(SHA256 ${CMAKE_SOURCE_DIR}/src/base/pch.h pch_sum)
    file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/room_base.dir/cmake_pch.hxx.pch.sum
         "${pch_sum} ${CMAKE_CXX_COMPILER_VERSION} ${Boost_VERSION} ${fmt_VERSION}\n")
  else()
    target_precompile_headers(room_${name} REUSE_FROM room_base)
  endif()

  if(CLAWDFORGE_TESTS AND tests)
    find_package(GTest REQUIRED)
    find_package(rapidcheck REQUIRED)
    add_executable(${name}_test ${tests})
    compile_together(${name}_test)
    target_link_libraries(${name}_test PRIVATE room_${name} ${ROOM_TEST_USES} rapidcheck GTest::gtest GTest::gmock
                                               GTest::gtest_main)
    target_precompile_headers(${name}_test REUSE_FROM room_base)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
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
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/launcher/*.cc)
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
