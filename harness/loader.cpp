// SPDX-License-Identifier: Apache-2.0
#include "harness/loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "harness/open_candidate.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

struct Library::State {
  std::string path;      // as found
  bool foreign = false;  // see foreign()
  double timeout = 0;    // seconds a call may take
  void* handle = nullptr;
  Functions functions;
  Description description;

  ~State() {
    if (handle == nullptr) return;
    const PluginCall guard(path.c_str(), "dlclose", foreign, timeout);
    dlclose(handle);
  }
};

namespace {

namespace fs = std::filesystem;

// Where our own candidate of that name lies, if it was built.
std::optional<fs::path> find_own(const std::string& name) {
  const fs::path lib =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib";
  const std::string file = "exact_topk_" + name + ".so";
  for (const fs::path& path : {lib / file, lib / "exact_topk" / file})
    if (fs::exists(path)) return path;
  return std::nullopt;
}

bool is_own(const std::string& candidate) {
  return candidate == "cpu" || candidate == "nvidia" || candidate == "amd";
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw UsageError(fmt::format("candidate {}: {}", path, what));
}

// dlopen would wait for the writer of a FIFO.
void check_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    refuse(
        path,
        errno == ENOENT
            ? "there is no such file, and it is none of cpu, nvidia, amd, auto"
            : fmt::format("it cannot be loaded: {}", std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) refuse(path, "it is no regular file");
}

template <typename Function>
void look_up(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

void look_up_all(void* handle, Functions& f) {
  look_up(handle, "xtk_abi_version", f.abi_version);
  look_up(handle, "xtk_describe", f.describe);
  look_up(handle, "xtk_open", f.open);
  look_up(handle, "xtk_last_error", f.last_error);
  look_up(handle, "xtk_close", f.close);
  look_up(handle, "xtk_tensor_bytes", f.tensor_bytes);
  look_up(handle, "xtk_write", f.write);
  look_up(handle, "xtk_read", f.read);
  look_up(handle, "xtk_launch", f.launch);
  look_up(handle, "xtk_wait", f.wait);
  look_up(handle, "xtk_score", f.score);
  look_up(handle, "xtk_select", f.select);
  look_up(handle, "xtk_view", f.view);
  look_up(handle, "xtk_replay", f.replay);
  look_up(handle, "xtk_witness", f.witness);
  look_up(handle, "xtk_prepare_replay", f.prepare_replay);
}

struct Needed {
  bool there;        // whether the library exports it
  const char* name;  // of the function
};

void require(const std::string& path, std::initializer_list<Needed> needed,
             const char* why) {
  for (const Needed& function : needed)
    if (!function.there)
      refuse(path, fmt::format("it does not export {}, which {} needs",
                               function.name, why));
}

void require_stages(const std::string& path, const Functions& f,
                    uint32_t stages) {
  if ((stages & (XTK_STAGE_LAUNCH | XTK_STAGE_SCORE | XTK_STAGE_SELECT)) == 0)
    refuse(path, fmt::format("it offers no stage (stages {:#x})", stages));
  if ((stages & XTK_STAGE_LAUNCH) != 0)
    require(path,
            {{f.tensor_bytes != nullptr, "xtk_tensor_bytes"},
             {f.write != nullptr, "xtk_write"},
             {f.read != nullptr, "xtk_read"},
             {f.launch != nullptr, "xtk_launch"},
             {f.wait != nullptr, "xtk_wait"}},
            "the launch stage");
  if ((stages & XTK_STAGE_SCORE) != 0)
    require(path, {{f.score != nullptr, "xtk_score"}}, "the score stage");
  if ((stages & XTK_STAGE_SELECT) != 0)
    require(path, {{f.select != nullptr, "xtk_select"}}, "the select stage");
}

std::string text(const std::string& path, const char* value,
                 const char* field) {
  if (value == nullptr)
    refuse(path, fmt::format("its description has no {}", field));
  return value;
}

Description copy(const std::string& path, const xtk_description& raw) {
  Description d;
  d.name = text(path, raw.name, "name");
  d.version = text(path, raw.version, "version");
  d.device = text(path, raw.device, "device");
  d.contract = text(path, raw.contract, "contract");
  if (!oracle::parse_contract(d.contract))
    refuse(path, fmt::format("its contract '{}' is unknown", d.contract));
  d.stages = raw.stages;
  d.wave_sizes = raw.wave_sizes;
  d.published = raw.published;
  d.clobbers_score_tail = raw.clobbers_score_tail != 0;
  d.repeatable = raw.repeatable != 0;
  d.devices = raw.devices;
  if (raw.arms != nullptr)
    for (const char* const* arm = raw.arms; *arm != nullptr; ++arm)
      d.arms.emplace_back(*arm);
  if (d.arms.empty()) refuse(path, "its description names no arm");
  return d;
}

// Whether the candidate of an automatic choice finds a device.
bool finds_device(const Library& library) {
  xtk_open_options options{};
  options.struct_size = sizeof options;
  options.geometry = {sizeof(xtk_geometry),
                      64,
                      64,
                      8,
                      128,
                      64,
                      64,
                      1,
                      XTK_ROPE_INTERLEAVED,
                      1,
                      XTK_SCALE_UE8M0,
                      XTK_FP8_E4M3FN,
                      XTK_PAGE_PLAIN,
                      1e-6f,
                      1e-5f};
  options.max_rows = options.max_partials = options.layers = 1;
  options.pages = 2;
  options.table_width = 1;
  options.max_keys = options.score_stride = options.rope_positions = 64;
  options.list_entries = 1;
  try {
    const Candidate candidate(library, options);
    return true;
  } catch (const CandidateError&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> candidate_files(const std::string& candidate) {
  if (candidate != "auto" && !is_own(candidate)) return {candidate};
  std::vector<std::string> files;
  for (const char* name : {"amd", "nvidia", "cpu"})
    if (candidate == name || candidate == "auto")
      if (const auto own = find_own(name)) files.push_back(own->string());
  return files;
}

Library Library::open(const std::string& candidate, double timeout_seconds) {
  if (candidate == "auto") {
    for (const char* name : {"amd", "nvidia"})
      if (find_own(name)) {
        Library library = open(name, timeout_seconds);
        if (finds_device(library)) return library;
      }
    return open("cpu", timeout_seconds);
  }
  auto state = std::make_shared<State>();
  state->timeout = timeout_seconds;
  state->foreign = !is_own(candidate);
  if (state->foreign) {
    check_file(candidate);
    state->path = fs::absolute(candidate).string();
  } else {
    const std::optional<fs::path> own = find_own(candidate);
    if (!own)
      refuse(candidate,
             fmt::format("exact_topk_{}.so is not beside the program: it was "
                         "not built",
                         candidate));
    state->path = own->lexically_normal().string();
  }
  const Library library(state);
  const std::string& path = state->path;
  std::string fault;
  state->handle = library.call("dlopen", [&] {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) fault = dlerror();
    return handle;
  });
  if (state->handle == nullptr) refuse(path, "it cannot be loaded: " + fault);

  Functions& f = state->functions;
  look_up_all(state->handle, f);
  require(path, {{f.abi_version != nullptr, "xtk_abi_version"}},
          "every candidate");
  const uint32_t version =
      library.call("xtk_abi_version", [&] { return f.abi_version(); });
  if (version != XTK_ABI_VERSION)
    refuse(path, fmt::format("its ABI version is {}, this program's is {}",
                             version, XTK_ABI_VERSION));
  require(path,
          {{f.describe != nullptr, "xtk_describe"},
           {f.open != nullptr, "xtk_open"},
           {f.last_error != nullptr, "xtk_last_error"},
           {f.close != nullptr, "xtk_close"}},
          "every candidate");
  xtk_description raw{};
  raw.struct_size = sizeof raw;
  const xtk_status status =
      library.call("xtk_describe", [&] { return f.describe(&raw); });
  if (status != XTK_OK)
    throw CandidateError(
        status, fmt::format("candidate {}: xtk_describe failed with status {}",
                            path, static_cast<int>(status)));
  state->description = copy(path, raw);
  require_stages(path, f, raw.stages);
  return library;
}

const Description& Library::describe() const { return state_->description; }
const std::string& Library::path() const { return state_->path; }
bool Library::foreign() const { return state_->foreign; }
const Functions& Library::functions() const { return state_->functions; }
double Library::timeout() const { return state_->timeout; }

CandidateError Library::threw(const char* name, const std::string& what) const {
  return CandidateError(
      XTK_FAILED,
      fmt::format("candidate {} threw from {}: {}", path(), name, what));
}

}  // namespace exact_topk::harness
