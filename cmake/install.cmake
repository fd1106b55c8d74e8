# What is put below a prefix, by `cmake --install` and by the packages of ./package: the program, and beside it what is made
# from what the program says of itself (packaging/make_share.py), units, clients and documents.
include(GNUInstallDirs)

set(share ${CMAKE_BINARY_DIR}/share)
set(made ${share}/clawdforge.toml)
add_custom_command(OUTPUT ${made}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/packaging/make_share.py $<TARGET_FILE:clawdforge> ${share}
  DEPENDS clawdforge ${CMAKE_SOURCE_DIR}/packaging/make_share.py VERBATIM)
add_custom_target(share DEPENDS ${made})

file(READ LICENSE LICENSE_TEXT)
string(REGEX REPLACE "\n\n" "\n.\n" LICENSE_TEXT "${LICENSE_TEXT}")
string(REGEX REPLACE "\n" "\n " LICENSE_TEXT " ${LICENSE_TEXT}")
string(STRIP "${LICENSE_TEXT}" LICENSE_TEXT)
string(PREPEND LICENSE_TEXT " ")
configure_file(packaging/debian/copyright.in ${CMAKE_BINARY_DIR}/debian/copyright @ONLY)

install(TARGETS clawdforge RUNTIME)
install(DIRECTORY ${share}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${share}/completions/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME clawdforge)
install(FILES ${share}/completions/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _clawdforge)
install(FILES ${share}/completions/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        RENAME clawdforge.fish)
install(PROGRAMS packaging/backup DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/clawdforge)
# The units name the prefix, which is known only when they are installed.
install(CODE "set(source \"${CMAKE_SOURCE_DIR}/packaging/systemd\")\nset(build \"${CMAKE_BINARY_DIR}\")")
install(SCRIPT cmake/install_units.cmake)
install(FILES packaging/systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME clawdforge.conf)
install(FILES packaging/systemd/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME clawdforge.conf)
install(DIRECTORY clients examples contrib DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
        PATTERN __pycache__ EXCLUDE PATTERN dist EXCLUDE)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN adr EXCLUDE)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${share}/changelog.gz CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES packaging/debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME clawdforge)
install(FILES ${CMAKE_BINARY_DIR}/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The Debian package; ./package makes it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME clawdforge)
set(CPACK_PACKAGE_CONTACT "The clawdforge authors <clawdforge@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "HTTP gateway in front of the coding agents of one machine")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Apps on the network call the gateway, each with its own token, and need no
login and no agent program of their own. It runs one-shot prompts, sessions,
streams and jobs, within limits for each app, and keeps a record of them.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "npm")
# So that what is installed sees its real prefix, and /etc is /etc; ./package configures with the prefix /usr.
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
set(scripts ${CMAKE_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm ${scripts}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
