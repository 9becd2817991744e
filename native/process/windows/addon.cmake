# The addon for Windows, made with mingw-w64. Included by CMakeLists.txt.
if(NOT MINGW)
  message(FATAL_ERROR "The addon for Windows is built with mingw-w64: see native/process/windows/mingw-w64.cmake")
endif()

# What node.exe exports, to be bound when it is used first: delay_hook.cc says which program has it.
node_path(NODE_API_DEF "require('node-api-headers').def_paths.node_api_def")
set(BRIDLE_NODE_LIBRARY ${CMAKE_BINARY_DIR}/libnode_delayed.a)
execute_process(
  COMMAND ${CMAKE_DLLTOOL} --input-def ${NODE_API_DEF} --output-delaylib ${BRIDLE_NODE_LIBRARY}
  COMMAND_ERROR_IS_FATAL ANY)

add_library(bridle MODULE ${BRIDLE_WINDOWS_SOURCES})
target_include_directories(bridle PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(bridle SYSTEM PRIVATE ${NODE_API_HEADERS_DIR} ${NODE_ADDON_API_DIR})
target_compile_definitions(bridle PRIVATE
  NAPI_VERSION=9 NAPI_CPP_EXCEPTIONS NODE_ADDON_API_DISABLE_DEPRECATED BUILDING_NODE_EXTENSION
  _WIN32_WINNT=0x0A00 WIN32_LEAN_AND_MEAN NOMINMAX UNICODE)
target_compile_options(bridle PRIVATE
  $<$<BOOL:${BRIDLE_WERROR}>:-Werror> -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wnull-dereference -Wformat=2 -Wimplicit-fallthrough -Wextra-semi
  -Wno-missing-field-initializers)
# One file: it needs no library of mingw-w64 beside it.
target_link_options(bridle PRIVATE -static)
target_link_libraries(bridle PRIVATE ${BRIDLE_NODE_LIBRARY} delayimp)
set_target_properties(bridle PROPERTIES
  PREFIX ""
  SUFFIX ".node"
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)
