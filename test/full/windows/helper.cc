// What a child on Windows can find out about itself and JavaScript cannot. Prints UTF-8, one thing per line.
#include <windows.h>
// After windows.h, which it needs.
#include <shellapi.h>

#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <string>

namespace {

void print(const std::wstring& text) {
  std::string bytes(text.size() * 3 + 1, '\0');
  const int length = WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), bytes.data(),
                                         static_cast<int>(bytes.size()), nullptr, nullptr);
  std::printf("%.*s\n", length, bytes.data());
}

void print_launch() {
  int count = 0;
  wchar_t** const arguments = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int at = 2; at < count; at++) print(std::wstring(L"argument ") + arguments[at]);
  for (const wchar_t* entry = GetEnvironmentStringsW(); *entry != L'\0'; entry += std::wcslen(entry) + 1) {
    print(std::wstring(L"environment ") + entry);
  }
  std::wstring directory(MAX_PATH, L'\0');
  directory.resize(GetCurrentDirectoryW(MAX_PATH, directory.data()));
  print(L"directory " + directory);
}

/// Handles are small multiples of four.
void print_pipes() {
  int pipes = 0;
  for (std::uintptr_t value = 4; value < 65536; value += 4) {
    if (GetFileType(reinterpret_cast<HANDLE>(value)) == FILE_TYPE_PIPE) pipes++;
  }
  std::printf("%d\n", pipes);
}

void print_job() {
  BOOL inside = FALSE;
  IsProcessInJob(GetCurrentProcess(), nullptr, &inside);
  std::printf("%s\n", inside != FALSE ? "in a job" : "in no job");
}

void print_breakaway() {
  std::wstring self(MAX_PATH, L'\0');
  self.resize(GetModuleFileNameW(nullptr, self.data(), MAX_PATH));
  std::wstring line = L"\"" + self + L"\" job";
  STARTUPINFOW startup{};
  startup.cb = sizeof startup;
  PROCESS_INFORMATION created{};
  if (CreateProcessW(self.c_str(), line.data(), nullptr, nullptr, FALSE, CREATE_BREAKAWAY_FROM_JOB, nullptr, nullptr,
                     &startup, &created) != 0) {
    std::printf("escaped\n");
    return;
  }
  std::printf("%s\n", GetLastError() == ERROR_ACCESS_DENIED ? "denied" : "failed otherwise");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "launch") print_launch();
  if (what == "pipes") print_pipes();
  if (what == "job") print_job();
  if (what == "breakaway") print_breakaway();
  // Keeps the services of Wine from ending and starting again between two scenarios.
  if (what == "stay") Sleep(INFINITE);
  return 7;
}
