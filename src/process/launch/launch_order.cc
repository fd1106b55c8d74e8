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
}

}  // namespace

std::string order_text(const LaunchOptions& options, const ChildPlan& plan) {
  Fields fields;
  fields.add("version", kOrderVersion);
  fields.add("grace-ms", options.kill_grace.count());
  const JailMeans means = plan.jail ? options.jail : JailMeans::none;
  if (plan.jail && means == JailMeans::own_root) {
    fields.add("root", 1);
    if (options.inside_id) fields.add("inside-id", *options.inside_id);
    add_places(fields, *plan.jail);
  } else {
    if (options.in_namespace) fields.add("pid-namespace", 1);
    add_hidden(fields, options.hidden, plan);
    if (plan.jail && means == JailMeans::rules) {
      fields.add("rules", 1);
      add_places(fields, *plan.jail);
    }
  }
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
