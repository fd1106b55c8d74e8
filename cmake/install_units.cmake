# Run by `cmake --install`: units with the paths of this prefix, and the default configuration. Below /usr the configuration is
# in /etc, below any other prefix in its own etc.
set(bin ${CMAKE_INSTALL_PREFIX}/bin)
set(libexec ${CMAKE_INSTALL_PREFIX}/libexec)
set(etc ${CMAKE_INSTALL_PREFIX}/etc/clawdforge)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(etc /etc/clawdforge)
endif()
foreach(unit clawdforge.service clawdforge-user.service clawdforge-backup.service)
  configure_file(${source}/${unit}.in ${build}/units/${unit} @ONLY)
endforeach()
file(INSTALL ${build}/units/clawdforge.service ${build}/units/clawdforge-backup.service ${source}/clawdforge-backup.timer
     ${source}/clawdforge.socket
     DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
file(INSTALL ${build}/units/clawdforge-user.service DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/user)
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/user")
file(RENAME ${root}/clawdforge-user.service ${root}/clawdforge.service)
# An owner's own configuration stays.
if(NOT EXISTS "$ENV{DESTDIR}${etc}/clawdforge.toml" OR etc STREQUAL "/etc/clawdforge")
  file(INSTALL ${build}/share/clawdforge.toml DESTINATION ${etc})
endif()
