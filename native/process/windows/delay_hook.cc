// node.exe may be called anything (a renamed copy, a program with Node.js in it). The imports of the addon are bound at
// their first use; this names the module that they come from: the program that we are loaded into.
#include <windows.h>

#include <cstring>

// The linker of mingw-w64 fills this in; its headers do not declare it.
struct DelayLoadInfo {
  DWORD bytes;
  const void* descriptor;
  FARPROC* slot;
  const char* library;
};

using DelayLoadHook = FARPROC(WINAPI*)(unsigned notification, DelayLoadInfo* info);

namespace {

constexpr unsigned before_load_library = 1;

FARPROC WINAPI find_node(unsigned notification, DelayLoadInfo* info) {
  if (notification != before_load_library || _stricmp(info->library, "node.exe") != 0) return nullptr;
  return reinterpret_cast<FARPROC>(reinterpret_cast<void*>(GetModuleHandleW(nullptr)));
}

}  // namespace

extern "C" {
extern DelayLoadHook __pfnDliNotifyHook2;
DelayLoadHook __pfnDliNotifyHook2 = find_node;
}
