// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {
namespace {

std::string good_xml() { return Machine::from_synthetic("numa:2 core:2 pu:2")->to_xml(); }

// The message of the refusal, or "(accepted)".
std::string xml_error(const std::string& xml) {
  try {
    Machine::from_xml_text(xml);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& xml, const std::string& why) {
  const std::string message = xml_error(xml);
  EXPECT_NE(message.find("from_xml"), std::string::npos) << message;
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

TEST(XmlText, RefusesTextThatIsNotXml) {
  expect_refused("", "empty");
  expect_refused("  \n ", "empty");
  expect_refused("hello", "does not begin with '<'");
  expect_refused(std::string("\x7f"
                             "ELF\0\0\0",
                             7),
                 "zero bytes");
  expect_refused("<!-- nothing -->", "no element <topology>");
  expect_refused("<html></html>", "<html>");
  expect_refused("<topology", "truncated");
  expect_refused("<topology><", "without an element");
  expect_refused("<topology a=b></topology>", "not quoted");
  expect_refused("<topology a></topology>", "malformed");
  expect_refused("<topology/><topology/>", "more than one root");
  expect_refused("</topology>", "end tag too many");
  expect_refused("<topology version=\"2.0\"></topology>", "no PU");
}

TEST(XmlText, RefusesEntitiesBeforeAParserSeesThem) {
  std::string bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology [\n<!ENTITY a \"aaaaaaaaaa\">\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += "<!ENTITY ";
    bomb += c;
    bomb += " \"";
    for (int i = 0; i < 10; ++i) bomb += std::string("&") + static_cast<char>(c - 1) + ";";
    bomb += "\">\n";
  }
  expect_refused(bomb + "]>\n<topology version=\"2.0\">&j;</topology>", "document type");
  expect_refused("<!DOCTYPE topology [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><topology>&x;</topology>",
                 "document type");
  expect_refused("<!DOCTYPE topology SYSTEM \"http://example.com/hwloc.dtd\"><topology/>", "document type");
  expect_refused("<topology><!ENTITY x \"y\"></topology>", "declaration");
}

TEST(XmlText, RefusesDeepNestingAndEndlessLists) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<topology>";
  expect_refused(deep, "nested more than 512 deep");
  std::string open = "<topology version=\"2.0\">";
  std::string many = open;
  for (int i = 0; i < 250'000; ++i) many += "<i/>";
  expect_refused(many + "</topology>", "more than 200000 elements");
}

TEST(XmlText, RefusesTruncatedFiles) {
  const std::string xml = good_xml();
  for (const size_t part : {size_t{10}, size_t{150}, xml.size() / 3, xml.size() / 2, xml.size() - 20}) {
    EXPECT_NE(xml_error(xml.substr(0, part)), "(accepted)") << part;
  }
}

TEST(XmlText, RefusesTheFormatThatHwloc2CannotRead) {
  expect_refused(replaced(good_xml(), "version=\"2.0\"", "version=\"3.0\""), "format 3");
}

TEST(XmlText, RefusesObjectsThatHwlocWouldCrashOn) {
  const std::string xml = good_xml();
  const std::string pu = "type=\"PU\" os_index=\"0\"";
  const std::string sets = "cpuset=\"0x00000001\" complete_cpuset=\"0x00000001\" ";
  expect_refused(replaced(xml, pu, "type=\"PU\""), "os_index");
  expect_refused(replaced(xml, pu, "type=\"PU\" os_index=\"4294967295\""), "os_index");
  expect_refused(replaced(xml, pu, "type=\"PU\" os_index=\"1\""), "not its index");
  expect_refused(replaced(xml, pu, "type=\"Nonsense\" os_index=\"0\""), "not an object type");
  expect_refused(replaced(xml, pu, "os_index=\"0\" type=\"PU\""), "begin with its type");
  expect_refused(replaced(xml, sets, "cpuset=\"0x00000001\" "), "lacks");
  expect_refused(replaced(xml, sets, "complete_cpuset=\"0x00000001\" "), "lacks");
  expect_refused(replaced(xml, sets, "cpuset=\"0xf...f\" complete_cpuset=\"0x00000001\" "), "not a finite set");
  expect_refused(replaced(xml, sets, "cpuset=\",0x1\" complete_cpuset=\"0x00000001\" "), "not a finite set");
  expect_refused(replaced(xml, sets, "cpuset=\"0x00000001\" complete_cpuset=\"0x00000100\" "), "not within");
  expect_refused(replaced(xml, "type=\"Machine\"", "type=\"OSDev\""), "has sets");
  expect_refused(replaced(xml, "type=\"Machine\"", "type=\"PU\""), "not its index");
}

TEST(XmlText, RefusesAttributesThatHwlocWouldReject) {
  const auto tag = [](const std::string& attributes) { return "<topology " + attributes + "></topology>"; };
  expect_refused(tag("5a=\"b\""), "malformed");
  expect_refused(tag("a =\"b\""), "malformed");
  expect_refused(tag("A=\"b\""), "malformed");
  expect_refused(tag("a= \"b\""), "not quoted");
  expect_refused(tag("a='b'"), "not quoted");
  expect_refused(tag("a=\"b>\""), "inside a value");
  expect_refused(tag("a=\"&#0;\""), "entity");
  expect_refused(tag("a=\"1\" b=\"2\" a=\"3\""), "has a twice");
  expect_refused(tag("a=\"1\"\r b=\"2\""), "carriage return");
  std::string many;
  for (int i = 0; i < 65; ++i) many += " " + std::string(static_cast<size_t>(i + 1), 'a') + "=\"\"";
  expect_refused(tag(many), "more than 64 attributes");
  // In format 1 hwloc puts a group between a node and a machine, without asking whether the machine has a nodeset.
  expect_refused(
      "<topology><object type=\"Machine\" cpuset=\"1\" complete_cpuset=\"ff\"><object type=\"Node\" os_index=\"0\" "
      "cpuset=\"1\" complete_cpuset=\"1\" nodeset=\"1\" complete_nodeset=\"1\"><object type=\"PU\" os_index=\"0\" "
      "cpuset=\"1\" complete_cpuset=\"1\"/></object></object></topology>",
      "Node 0 has a nodeset, but Machine  does not");
}

TEST(XmlText, NeverCrashesOnChangedBytes) {
  const std::string xml = good_xml();
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 300; ++i) {
    std::string changed = xml;
    for (int edit = 0; edit < 2; ++edit) changed[random() % changed.size()] = static_cast<char>(32 + random() % 95);
    accepted += xml_error(changed) == "(accepted)" ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 300);
}

class XmlPathTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string refusal(const std::string& path) {
    try {
      Machine::from_xml(path);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "(accepted)";
  }
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("artifex_xml_" + std::to_string(getpid()));
};

TEST_F(XmlPathTest, ReportsMissingFilesAsFileNotFound) {
  EXPECT_THROW(Machine::from_xml((folder_ / "missing.xml").string()), FileNotFound);
  EXPECT_THROW(Machine::from_xml((folder_ / "missing" / "m.xml").string()), FileNotFound);
  EXPECT_THROW(Machine::from_xml(""), FileNotFound);
}

TEST_F(XmlPathTest, ReadsOnlyRegularFiles) {
  EXPECT_NE(refusal(folder_.string()).find("a directory"), std::string::npos);
  EXPECT_NE(refusal("/dev/null").find("not a regular file"), std::string::npos);
  const std::string pipe = (folder_ / "pipe.xml").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(refusal(pipe).find("not a regular file"), std::string::npos);
  EXPECT_NE(refusal(std::string("a\0b.xml", 7)).find("zero byte"), std::string::npos);
}

TEST_F(XmlPathTest, RefusesFilesOver64MiBWithoutReading) {
  const std::string path = (folder_ / "large.xml").string();
  std::ofstream(path) << "<topology>";
  std::filesystem::resize_file(path, (uintmax_t{64} << 20) + 1);  // a hole
  EXPECT_NE(refusal(path).find("64 MiB"), std::string::npos);
}

TEST_F(XmlPathTest, NamesTheFileInMessages) {
  const std::string path = (folder_ / "junk.xml").string();
  std::ofstream(path) << "junk";
  EXPECT_NE(refusal(path).find(path), std::string::npos);
}

TEST_F(XmlPathTest, WritesNothingToStandardError) {
  const std::string xml = good_xml();
  testing::internal::CaptureStderr();
  (void)xml_error("junk");
  (void)xml_error(xml.substr(0, xml.size() / 2));
  (void)xml_error(replaced(xml, "<topology", "<topology&"));
  (void)xml_error(replaced(xml, "gp_index=\"1\"", "gp_index=\"&unknown;\""));
  (void)xml_error(replaced(xml, "version=\"2.0\"", "version=\"3.0\""));
  (void)xml_error(replaced(xml, "type=\"Core\"", "type=\"PU\""));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace artifex_devices
