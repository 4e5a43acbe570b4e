// Reads kernel_table.txt: "op label priority host-arguments constraints...", "-" for none. See
// tools/make_kernel_table.py, which writes it.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels.h"
#include "tensorflow/core/framework/types.pb.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// "T=DT_FLOAT|DT_HALF", "k=i:-1", "is_max_k=b:1", "mode=s:fast". Types that this TensorFlow does not have are left
// out: the table may be of a newer one.
bool AddConstraint(const std::string& text, tf::KernelDef* kernel) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) return false;
  auto* constraint = kernel->add_constraint();
  constraint->set_name(text.substr(0, equals));
  auto* allowed = constraint->mutable_allowed_values()->mutable_list();
  for (const std::string& value : Split(text.substr(equals + 1), '|')) {
    tf::DataType type;
    if (tf::DataType_Parse(value, &type)) {
      allowed->add_type(type);
    } else if (value.rfind("i:", 0) == 0) {
      allowed->add_i(std::stoll(value.substr(2)));
    } else if (value.rfind("b:", 0) == 0) {
      allowed->add_b(value == "b:1");
    } else if (value.rfind("s:", 0) == 0) {
      allowed->add_s(value.substr(2));
    } else if (value.rfind("DT_", 0) != 0) {
      return false;
    }
  }
  return true;
}

// A constraint that allows nothing: none of the types it lists exists here.
bool IsForNothing(const tf::KernelDef& kernel) {
  for (const auto& constraint : kernel.constraint()) {
    const auto& allowed = constraint.allowed_values().list();
    if (allowed.type_size() + allowed.i_size() + allowed.b_size() + allowed.s_size() == 0) return true;
  }
  return false;
}

bool ReadLine(const std::string& line, tf::KernelDef* kernel) {
  std::istringstream fields(line);
  std::string op, label, host, constraint;
  int priority = 0;
  if (!(fields >> op >> label >> priority >> host)) return false;
  kernel->set_op(op);
  kernel->set_device_type("GPU");
  kernel->set_priority(priority);
  if (label != "-") kernel->set_label(label);
  if (host != "-") {
    for (const std::string& argument : Split(host, ',')) kernel->add_host_memory_arg(argument);
  }
  while (fields >> constraint) {
    if (!AddConstraint(constraint, kernel)) return false;
  }
  return true;
}

}  // namespace

absl::Status ReadKernelTable(const std::string& path, std::vector<tf::KernelDef>* kernels) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError("cannot read the kernel table " + path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    tf::KernelDef kernel;
    if (!ReadLine(line, &kernel)) return absl::InvalidArgumentError("bad line in the kernel table: " + line);
    if (!IsForNothing(kernel)) kernels->push_back(kernel);
  }
  return absl::OkStatus();
}

}  // namespace stoker
