# What `cmake --install` and CPack put under a prefix. Nothing there refers to the source or build folder: tools find
# k2rt-run beside themselves, transports in ../lib, and carry families, topologies and configurations within,
# so the prefix may be moved.
include(GNUInstallDirs)

install(TARGETS k2rt-run RUNTIME COMPONENT k2c)
install(TARGETS k2rt k2rt-text k2rt-sampling k2rt-exchange k2rt-transport k2c-base ARCHIVE COMPONENT k2c)
# Opened by name, where k2c looks for them: in ../lib. Packages have none, since dpkg-shlibdeps would make every MPI
# library of the build, and UCX, a dependency of the .deb.
get_property(K2RT_TRANSPORT_LIBRARIES GLOBAL PROPERTY K2RT_TRANSPORT_LIBRARIES)
if(K2RT_TRANSPORT_LIBRARIES)
  install(TARGETS ${K2RT_TRANSPORT_LIBRARIES} LIBRARY DESTINATION lib COMPONENT mpi)
endif()
install(FILES runtime/include/k2rt/k2rt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/k2rt COMPONENT k2c)
configure_file(cmake/k2rt.pc.in k2rt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/k2rt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT k2c)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT k2c)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT k2c)
if(K2C_BUILD_COMPILER)
  install(TARGETS k2c-cuda LIBRARY DESTINATION lib COMPONENT k2c)
  install(TARGETS k2c k2c-plan k2c-opt k2c-lsp-server RUNTIME COMPONENT k2c)
  install(DIRECTORY models/bundled models/configs models/families models/topologies
    DESTINATION ${CMAKE_INSTALL_DATADIR}/k2c/models COMPONENT k2c)
  # The installed program writes its manual and its shells' completion.
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    set(data \"\${prefix}/${CMAKE_INSTALL_DATADIR}\")
    set(k2c \"\${prefix}/${CMAKE_INSTALL_BINDIR}/k2c\")
    execute_process(COMMAND \"\${k2c}\" man -o \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1\" COMMAND_ERROR_IS_FATAL ANY)
    foreach(script bash-completion/completions/k2c zsh/site-functions/_k2c fish/vendor_completions.d/k2c.fish)
      string(REGEX MATCH \"^[a-z]*\" shell \${script})
      get_filename_component(folder \"\${data}/\${script}\" DIRECTORY)
      file(MAKE_DIRECTORY \"\${folder}\")
      execute_process(COMMAND \"\${k2c}\" completion \${shell} OUTPUT_FILE \"\${data}/\${script}\"
        COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
  " COMPONENT k2c)
endif()

# `cpack -G TGZ` and `cpack -G DEB`, from a built tree.
set(CPACK_PACKAGE_NAME k2c)
set(CPACK_PACKAGE_VENDOR k2c)
set(CPACK_PACKAGE_CONTACT "the k2c developers <k2c@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler of sparse mixture-of-experts transformers")
set(CPACK_PACKAGE_FILE_NAME k2c-${PROJECT_VERSION}-x86_64)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL k2c)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# LLVM's and MLIR's shared libraries from what the tools link, and beside them what is started or opened by name.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "lld-22, libonig5")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "llvm-22") # the assembly of k2c explain --kernel
include(CPack)
