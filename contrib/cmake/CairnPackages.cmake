# `cpack` in a build whose CMAKE_INSTALL_PREFIX is /usr (the preset `package`) makes these packages, as .deb, or as .rpm with `-G RPM`:
#
#     cairn                what jobs need: libcairn.so, libcairn_cuda.so, libcairn_mpi.so, the shim, the command   on every node
#     slurm-plugin-cairn   the SPANK plugin, for the Slurm that the release of the packages names: no other loads it
#     libcairn-dev         headers, pkg-config and CMake files (cairn-devel)         where programs are built
#     python3-cairn        the Python package, and a .pth file that shows it to the system's Python
#     cairn-examples       programs with their sources
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cairn)
set(CPACK_PACKAGE_VENDOR "The Cairn authors")
set(CAIRN_PACKAGE_CONTACT "root <root@localhost>" CACHE STRING "Who builds packages, as their maintainer")
set(CPACK_PACKAGE_CONTACT ${CAIRN_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL runtime dev python examples)
set(_release 1)
if(TARGET spank_cairn)
  list(APPEND CPACK_COMPONENTS_ALL plugin)
  math(EXPR _major "(${CAIRN_SLURM_VERSION_NUMBER} >> 16) & 0xff")
  math(EXPR _minor "(${CAIRN_SLURM_VERSION_NUMBER} >> 8) & 0xff")
  math(EXPR _next "${_minor} + 1")
  foreach(_part _minor _next)
    if(${_part} LESS 10)
      set(${_part} "0${${_part}}")
    endif()
  endforeach()
  set(_release 1.slurm${_major}.${_minor})
endif()
set(_same "${PROJECT_VERSION}-${_release}")

# Debian
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${_release})
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME cairn)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# Not a dependency: it is opened when checkpoints lie in a bucket of S3.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libcairn-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "cairn (= ${_same})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-cairn)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "cairn (= ${_same}), python3 (>= 3.9)")
set(CPACK_DEBIAN_EXAMPLES_PACKAGE_NAME cairn-examples)
set(CPACK_DEBIAN_EXAMPLES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_EXAMPLES_PACKAGE_DEPENDS "cairn (= ${_same})")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/runtime)
set(CPACK_DEBIAN_PLUGIN_PACKAGE_NAME slurm-plugin-cairn)
set(CPACK_DEBIAN_PLUGIN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PLUGIN_PACKAGE_DEPENDS "cairn (= ${_same})")
# Not a dependency: many sites build Slurm under other names.
set(CPACK_DEBIAN_PLUGIN_PACKAGE_ENHANCES "slurm-client, slurmd")
foreach(_slurm slurm-client slurmd slurm-wlm-basic-plugins)
  list(APPEND _breaks "${_slurm} (<< ${_major}.${_minor})" "${_slurm} (>= ${_major}.${_next}~)")
endforeach()
list(JOIN _breaks ", " CPACK_DEBIAN_PLUGIN_PACKAGE_BREAKS)

# RPM
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_RELEASE ${_release})
set(CPACK_RPM_RUNTIME_PACKAGE_NAME cairn)
set(CPACK_RPM_RUNTIME_PACKAGE_RECOMMENDS "libcurl >= 7.88")
set(CPACK_RPM_DEV_PACKAGE_NAME cairn-devel)
set(CPACK_RPM_DEV_PACKAGE_REQUIRES "cairn = ${_same}")
set(CPACK_RPM_PYTHON_PACKAGE_NAME python3-cairn)
set(CPACK_RPM_PYTHON_PACKAGE_REQUIRES "cairn = ${_same}, python3 >= 3.9")
set(CPACK_RPM_EXAMPLES_PACKAGE_NAME cairn-examples)
set(CPACK_RPM_PLUGIN_PACKAGE_NAME slurm-plugin-cairn)
set(CPACK_RPM_PLUGIN_PACKAGE_REQUIRES "cairn = ${_same}")
set(CPACK_RPM_PLUGIN_PACKAGE_CONFLICTS "slurm < ${_major}.${_minor}, slurm >= ${_major}.${_next}~")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/pkgconfig /usr/lib/python3 /usr/lib/python3/dist-packages /usr/share/man /usr/share/man/man1 /usr/share/man/man3 /usr/share/man/man5 /usr/share/man/man7
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d)

include(CPack)
