#include "process/launch/launch_order.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace clawdforge {
namespace {

constexpr int kOrderVersion = 1;  // as src/launcher/order.h has it

class Fields {
 public:
  void add(std::string_view name, std::string_view value) {
    append(name);
    append(value);
  }
  void add(std::string_view name, std::string_view value, std::string_view more) {
    add(name, value);
    append(more);
  }
  void add(std::string_view name, long long number) { add(name, std::to_string(number)); }

  std::string take() { return std::move(text_); }

 private:
  void append(std::string_view text) {
    text_ += text;
    text_ += '\0';
  }

  std::string text_;
};

std::string_view field_of(JailPlace::Kind kind) {
  switch (kind) {
    case JailPlace::Kind::read:
      return "ro";
    case JailPlace::Kind::read_if_there:
      return "ro?";
    case JailPlace::Kind::write:
      return "rw";
    case JailPlace::Kind::cover:
      return "cover";
    case JailPlace::Kind::temporary:
      return "tmp";
    case JailPlace::Kind::link:
      return "link";
  }
  return "";
}

void add_places(Fields& fields, const JailPlan& jail) {
  for (const JailPlace& place : jail.places) {
    if (place.kind == JailPlace::Kind::link) {
      fields.add(field_of(place.kind), place.path, place.target);
    } else {
      fields.add(field_of(place.kind), place.path);
    }
  }
}

void add_hidden(Fields& fields, const HiddenDir& hidden, const ChildPlan& plan) {
  if (hidden.path.empty() || plan.sees_hidden) return;
  fields.add("hide", hidden.path);
  for (const std::string& dir : hidden.kept) fields.add("keep", dir);
  if (!plan.own_dir.empty()) fields.add("keep", plan.own_dir);
  if (plan.also_kept.starts_with(hidden.path + "/")) fields.add("keep", plan.also_kept);
}

void add_bounds(Fields& fields, const TreeBounds& bounds) {
  for (const std::string& dir : bounds.cgroups) fields.add("cgroup", dir);
  if (!bounds.oom_count.empty()) {
    fields.add("oom-count", bounds.oom_count);
    fields.add("oom-polled", bounds.is_oom_polled ? 1 : 0);
  }
  const auto add = [&](std::string_view name, std::uint64_t most) {
    if (most > 0) fields.add(name, static_cast<long long>(most));
  };
  add("pages-max", bounds.pages_max);
  add("count-max", bounds.count_max);
  add("processes", bounds.processes_max);
  add("data-bytes", bounds.data_bytes_max);
}

// What only a tree with a root of its own has.
void add_own_root(Fields& fields, const LaunchOptions& options, const JailPlan& jail) {
  fields.add("root", 1);
  if (options.inside_id) fields.add("inside-id", *options.inside_id);
  if (jail.net != TreeNet::open) fields.add("network", 1);
  if (jail.net == TreeNet::proxy) fields.add("listener", kProxyPort);
  if (jail.has_call_filter) fields.add("filter", 1);
  if (jail.file_bytes_max > 0) {
    fields.add("file-bytes", static_cast<long long>(jail.file_bytes_max));
  }
  add_places(fields, jail);
}

}  // namespace

std::string order_text(const LaunchOptions& options, const ChildPlan& plan,
                       const TreeBounds& bounds) {
  Fields fields;
  fields.add("version", kOrderVersion);
  fields.add("grace-ms", options.kill_grace.count());
  const JailMeans means = plan.jail ? options.jail : JailMeans::none;
  if (plan.jail && means == JailMeans::own_root) {
    add_own_root(fields, options, *plan.jail);
  } else {
    if (options.in_namespace) fields.add("pid-namespace", 1);
    add_hidden(fields, options.hidden, plan);
    if (plan.jail && means == JailMeans::rules) {
      fields.add("rules", 1);
      add_places(fields, *plan.jail);
    }
  }
  add_bounds(fields, bounds);
  if (options.descriptors_soft) {
    fields.add("descriptors", static_cast<long long>(*options.descriptors_soft));
  }
  if (!plan.busy.path.empty()) {
    fields.add("busy", plan.busy.path);
    fields.add("busy-ms", plan.busy.wait_max.count());
  }
  fields.add("cwd", plan.working_dir);
  for (const std::string& argument : plan.argv) fields.add("arg", argument);
  return fields.take();
}

Descriptor make_order_file(const std::string& text) {
  Descriptor file(::memfd_create("clawdforge-order", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  file = move_out_of_the_way(std::move(file));
  if (!file.is_open()) return file;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file.number(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return {};
    done += static_cast<std::size_t>(written);
  }
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(file.number(), F_ADD_SEALS, kSeals) != 0) return {};
  return file;
}

}  // namespace clawdforge
