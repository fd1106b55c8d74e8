# add_docs(ROOM): makes the pages of /docs from the documents with Debian's cmark-gfm (site/build.py) and compiles them into the room,
# as the table of src/api/dashboard/assets.h (docs/adr/0095-the-documents-as-pages.md).
find_program(CMARK cmark-gfm)

function(add_docs room)
  if(NOT CMARK)
    message(FATAL_ERROR "cmark-gfm is missing, which the documents are built with: scripts/install-packages installs it.")
  endif()
  set(source ${CMAKE_BINARY_DIR}/generated/${room}/docs_assets.cc)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS docs/*.md clients/*.md clients/*.py clients/*.ts clients/*.json examples/* contrib/* site/*.py
       site/*.css site/*.js)
  list(FILTER sources EXCLUDE REGEX "/(__pycache__|dist|node_modules)/")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/site/build.py ${CMARK}
            ${CMAKE_BINARY_DIR}/docs ${PROJECT_VERSION}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py pages ${source} ${CMAKE_BINARY_DIR}/docs
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/docs/openapi.yaml ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
            ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/cmake/embed.py VERBATIM)
  # Alone, so that a change of a document compiles nothing else.
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  string(REPLACE "/" "_" name ${room})
  target_sources(room_${name} PRIVATE ${source})
endfunction()
