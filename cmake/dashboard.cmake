# add_dashboard(ROOM): bundles the page in `dashboard` with Debian's esbuild and compiles it into the room, as the
# table of src/api/dashboard/assets.h. React, marked and jsdiff come from Debian's packages as well, so there is no Node,
# no npm, and nothing of others in the repository (docs/adr/0088-a-page-built-by-debians-esbuild.md).
#
# dashboard/main.tsx and dashboard/style/main.css are the two entries; what they import is found by esbuild. The page
# names "ui/main.js", "ui/main.css" and "ui/icon.svg", for which cmake/embed.py puts the names with their hashes.
find_program(ESBUILD esbuild)

function(add_dashboard room)
  if(NOT ESBUILD)
    message(FATAL_ERROR "esbuild is missing, which the dashboard is built with: scripts/install-packages installs it.")
  endif()
  set(page ${CMAKE_SOURCE_DIR}/dashboard)
  set(built ${CMAKE_BINARY_DIR}/dashboard)
  set(source ${CMAKE_BINARY_DIR}/generated/${room}/assets.cc)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${page}/*.ts ${page}/*.tsx ${page}/*.css)
  list(FILTER sources EXCLUDE REGEX "/dashboard/tests/")
  set(files ${built}/main.js ${built}/main.css)
  add_custom_command(OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs ${ESBUILD}
            main=${page}/main.tsx --bundle --minify --format=esm --target=es2022 --jsx=automatic --charset=utf8
            --legal-comments=eof --alias:marked=/usr/share/javascript/marked/marked.umd.js
            "--define:process.env.NODE_ENV=\"production\"" --log-level=warning --outdir=${built}
    COMMAND ${ESBUILD} main=${page}/style/main.css --bundle --minify --charset=utf8 --log-level=warning
            --outdir=${built}
    DEPENDS ${sources} VERBATIM)
  add_custom_command(OUTPUT ${source}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py assets ${source}
            ${page}/index.html ${page}/icon.svg ${files}
    DEPENDS ${page}/index.html ${page}/icon.svg ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
  # Alone, so that a change of the page compiles nothing else.
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  string(REPLACE "/" "_" name ${room})
  target_sources(room_${name} PRIVATE ${source})
endfunction()
