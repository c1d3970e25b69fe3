# Turns text files into a C++ source, so that installed programs need no source folder.
#
#   k2c_embed([FOLDERS] OUT generated.cpp HEADER "Embedded.h" FUNCTION embeddedFiles FILES a.yaml b.yaml ...)
#
# HEADER declares `struct EmbeddedFile { const char *name, *text; }` and `const std::vector<EmbeddedFile> &FUNCTION()`,
# both in namespace k2c. Files are named by their folders with FOLDERS (config.json of models/configs/X is X).
function(k2c_embed)
  cmake_parse_arguments(ARG "FOLDERS" "OUT;HEADER;FUNCTION" "FILES" ${ARGN})
  set(text "#include \"${ARG_HEADER}\"\n\nconst std::vector<k2c::EmbeddedFile> &k2c::${ARG_FUNCTION}() {\n")
  string(APPEND text "  static const std::vector<EmbeddedFile> files = {\n")
  foreach(file ${ARG_FILES})
    # A changed file runs cmake again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    if(ARG_FOLDERS)
      get_filename_component(folder ${file} DIRECTORY)
      get_filename_component(name ${folder} NAME)
    else()
      get_filename_component(name ${file} NAME)
    endif()
    file(READ ${file} content)
    string(APPEND text "      {\"${name}\", R\"k2c-text(${content})k2c-text\"},\n")
  endforeach()
  string(APPEND text "  };\n  return files;\n}\n")
  file(CONFIGURE OUTPUT ${ARG_OUT} CONTENT "${text}" @ONLY)
endfunction()
