// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/base_client.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

// A process has one base client, so each case runs in its own process, with the given variables. Returns what `body`
// writes, or the message of the error that it throws.
std::string in_child(const std::vector<std::pair<std::string, std::string>>& variables,
                     const std::function<std::string()>& body) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("JAX_NUM_CPU_DEVICES");
    unsetenv("XLA_FLAGS");
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    std::string text;
    try {
      text = body();
    } catch (const InvalidArgument& error) {
      text = std::string("InvalidArgument: ") + error.what();
    } catch (const Unavailable& error) {
      text = std::string("Unavailable: ") + error.what();
    }
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "the child died";
}

std::string count_of_base() { return std::to_string(base_client()->device_count()); }

TEST(BaseClient, HasOneDevicePerCpuDomainWithoutVariables) {
  EXPECT_EQ(in_child({}, count_of_base), std::to_string(Machine::live()->cpu_domains().size()));
}

TEST(BaseClient, IsCreatedOnceFromTheLiveMachine) {
  EXPECT_EQ(in_child({{"JAX_NUM_CPU_DEVICES", "3"}},
                     [] {
                       const bool before = base_client_exists();
                       const auto base = base_client();
                       setenv("JAX_NUM_CPU_DEVICES", "5", 1);
                       const bool same = base_client() == base && base->device_count() == 3 && base_client_exists();
                       return std::string(!before && same && base->machine().is_live() ? "yes" : "no");
                     }),
            "yes");
}

TEST(BaseClient, TakesTheNumberOfDevicesFromVariableOrFlag) {
  const std::string flag = "--xla_force_host_platform_device_count";
  EXPECT_EQ(in_child({{"JAX_NUM_CPU_DEVICES", "6"}}, count_of_base), "6");
  EXPECT_EQ(in_child({{"XLA_FLAGS", flag + "=8"}}, count_of_base), "8");
  EXPECT_EQ(in_child({{"XLA_FLAGS", "--xla_dump_to='/a b' " + flag + "=4\t--xla_x " + flag + "=5"}}, count_of_base),
            "5");
  EXPECT_EQ(in_child({{"XLA_FLAGS", "\"" + flag + "=7\""}}, count_of_base), "7");
}

TEST(BaseClient, IgnoresUnknownFlags) {
  const std::string domains = std::to_string(Machine::live()->cpu_domains().size());
  EXPECT_EQ(in_child({{"XLA_FLAGS", "--xla_gpu_autotune_level=x --nonsense -7 ="}}, count_of_base), domains);
  EXPECT_EQ(in_child({{"XLA_FLAGS", ""}}, count_of_base), domains);
  EXPECT_EQ(in_child({{"XLA_FLAGS", "--xla_force_host_platform_device_counter=3"}}, count_of_base), domains);
}

TEST(BaseClient, PrefersSetterThenVariableThenFlag) {
  const std::vector<std::pair<std::string, std::string>> both = {
      {"JAX_NUM_CPU_DEVICES", "6"}, {"XLA_FLAGS", "--xla_force_host_platform_device_count=8"}};
  EXPECT_EQ(in_child(both, count_of_base), "6");
  EXPECT_EQ(in_child(both,
                     [] {
                       set_num_cpu_devices(3);
                       set_num_cpu_devices(2);
                       return count_of_base();
                     }),
            "2");
  EXPECT_EQ(in_child(both,
                     [] {
                       set_num_cpu_devices(3);
                       set_num_cpu_devices(std::nullopt);
                       return count_of_base();
                     }),
            "6");
}

TEST(BaseClient, NamesMalformedVariablesAndValues) {
  for (const std::string value : {"", "0", "-1", "eight", "8x", "1.5", "99999999999999999999", "16777217"}) {
    const std::string variable = in_child({{"JAX_NUM_CPU_DEVICES", value}}, count_of_base);
    EXPECT_NE(
        variable.find("InvalidArgument: devices: the environment variable JAX_NUM_CPU_DEVICES is \"" + value + "\""),
        std::string::npos)
        << variable;
    const std::string flags = "--a --xla_force_host_platform_device_count=" + value;
    const std::string flag = in_child({{"XLA_FLAGS", flags}}, count_of_base);
    EXPECT_NE(flag.find("InvalidArgument: devices: the environment variable XLA_FLAGS is \"" + flags + "\""),
              std::string::npos)
        << flag;
  }
  EXPECT_NE(in_child({{"XLA_FLAGS", "--xla_force_host_platform_device_count"}}, count_of_base).find("InvalidArgument"),
            std::string::npos);
}

TEST(BaseClient, AcceptsACorrectedVariable) {
  EXPECT_EQ(in_child({{"JAX_NUM_CPU_DEVICES", "x"}},
                     [] {
                       EXPECT_THROW(base_client(), InvalidArgument);
                       EXPECT_FALSE(base_client_exists());
                       setenv("JAX_NUM_CPU_DEVICES", "2", 1);
                       return count_of_base();
                     }),
            "2");
}

TEST(BaseClient, RefusesToChangeTheNumberOfExistingDevices) {
  const std::string message = in_child({}, [] {
    base_client();
    set_num_cpu_devices(4);
    return std::string("changed");
  });
  EXPECT_NE(message.find("Unavailable: jax_num_cpu_devices"), std::string::npos) << message;
  EXPECT_NE(message.find("simulate(4)"), std::string::npos) << message;
  const std::string zero = in_child({}, [] {
    set_num_cpu_devices(0);
    return std::string("set");
  });
  EXPECT_NE(zero.find("InvalidArgument: jax_num_cpu_devices: 0"), std::string::npos) << zero;
}

TEST(BaseClient, CanBeReplaced) {
  EXPECT_EQ(in_child({{"JAX_NUM_CPU_DEVICES", "2"}},
                     [] {
                       const auto first = Client::make(Machine::live(), {.num_devices = 5});
                       const auto second = Client::make(Machine::live(), {.num_devices = 7});
                       std::string log;
                       log += replace_base(first) ? "x" : "-";  // nothing before
                       log += count_of_base();
                       log += replace_base(nullptr) == first ? "f" : "x";
                       log += base_client_exists() ? "x" : "-";
                       log += count_of_base();  // the one of the environment
                       const auto base = base_client();
                       log += replace_base(second) == base ? "b" : "x";
                       log += count_of_base();
                       log += cpu_client() == base ? "b" : "x";
                       log += replace_base(nullptr) == second ? "s" : "x";
                       log += base_client() == base ? "b" : "x";
                       return log;
                     }),
            "-5f-2b7bsb");
}

TEST(BaseClient, IsReplacedOnceAtATime) {
  EXPECT_EQ(in_child({},
                     [] {
                       const auto world = Client::make(Machine::live(), {.num_devices = 5});
                       std::string log = base_is_replaced() ? "x" : "-";
                       replace_base(world);
                       log += base_is_replaced() ? "r" : "x";
                       try {
                         replace_base(Client::make(Machine::live(), {.num_devices = 7}));
                       } catch (const Unavailable&) {
                         log += "u";
                       }
                       log += count_of_base();
                       replace_base(nullptr);
                       return log + (base_is_replaced() ? "x" : "-");
                     }),
            "-ru5-");
}

TEST(BaseClient, KeepsItsDevicesInAForkedChild) {
  EXPECT_EQ(in_child({{"JAX_NUM_CPU_DEVICES", "3"}},
                     [] {
                       base_client();
                       return in_child({}, [] {
                         const BlockRef block = base_client()->device(DeviceId(2))->arena().allocate(100);
                         return count_of_base() + (block ? "+" : "-");
                       });
                     }),
            "3+");
}

}  // namespace
}  // namespace artifex_devices
