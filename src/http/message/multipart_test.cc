#include "http/message/multipart.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <vector>

namespace clawdforge {
namespace {

// Everything that was told, as one text; neighbouring bytes joined.
class Told : public MultipartSink {
 public:
  void begin_part(MultipartPart part) override {
    said_ +=
        "<" + part.name + "|" + part.filename.value_or("(none)") + "|" + part.content_type + ">";
  }
  void take(std::string_view bytes) override {
    EXPECT_FALSE(bytes.empty());
    said_ += bytes;
  }
  void end_part() override { said_ += "</>"; }

  std::string said_;
};

std::string told(const std::vector<std::string_view>& pieces, const std::string& boundary = "b") {
  Told sink;
  MultipartParser parser(boundary);
  for (const std::string_view piece : pieces) {
    if (auto fed = parser.feed(piece, sink); !fed) {
      EXPECT_EQ(fed.error().kind, Errc::malformed);
      EXPECT_EQ(fed.error().code, "bad_multipart");
      return sink.said_ + "!" + fed.error().message;
    }
  }
  if (auto finished = parser.finish(); !finished) {
    return sink.said_ + "!" + finished.error().message;
  }
  return sink.said_;
}

std::string part(std::string_view headers, std::string_view bytes) {
  return "--b\r\n" + std::string(headers) + "\r\n\r\n" + std::string(bytes) + "\r\n";
}

std::string file(std::string_view bytes, std::string_view more = R"(; filename="a.txt")") {
  return part("Content-Disposition: form-data; name=\"file\"" + std::string(more), bytes);
}

bool is_refused(const std::string& body) { return told({body}).find('!') != std::string::npos; }

TEST(Multipart, GivesThePartsAndTheirBytes) {
  const std::string body = part("Content-Disposition: form-data; name=\"ttl_secs\"", "60") +
                           part(
                               "content-disposition:form-data ; NAME=file;filename=\"a b.txt\"\r\n"
                               "Content-Type:  text/plain; charset=utf-8 \r\nX-Other: 1\r\n"
                               "Content-Transfer-Encoding: binary",
                               "one\r\ntwo") +
                           "--b--\r\n";
  EXPECT_EQ(told({body}),
            "<ttl_secs|(none)|>60</><file|a b.txt|text/plain; charset=utf-8>one\r\ntwo</>");
}

TEST(Multipart, KnowsEmptyPartsAndBodiesWithoutParts) {
  EXPECT_EQ(told({file("") + "--b--"}), "<file|a.txt|></>");
  EXPECT_EQ(told({"--b--\r\n"}), "");
}

TEST(Multipart, IgnoresPreambleEpilogueAndBlanksBehindABoundary) {
  EXPECT_EQ(told({"hello\r\n--bb\r\n"}).find('!'), 0u) << "a longer boundary is another one";
  EXPECT_EQ(told({"hello\n--b\n\r\n--b \t \r\nContent-Disposition: form-data; name=x\r\n\r\n1"
                  "\r\n--b-- and\r\n--b\r\n whatever"}),
            "<x|(none)|>1</>");
  EXPECT_EQ(told({"\r\n" + file("1") + "--b--"}), "<file|a.txt|>1</>");
}

TEST(Multipart, KeepsBytesThatOnlyLookLikeABoundary) {
  for (const std::string near :
       {"--b", "--b--", "\n--b\r\n", "\r--b\r\n", "\r\n-b", "\r\n- -b", "\r\n--a", "\r\n--",
        "\r\r\n-", "\r\n\r\n--\r\n", "\r", "\n", "\r\n", "-", "\r\r\r", "\r\n--B\r\n"}) {
    EXPECT_EQ(told({file(near) + "--b--"}), "<file|a.txt|>" + near + "</>");
    EXPECT_EQ(told({file("x" + near + near) + "--b--"}), "<file|a.txt|>x" + near + near + "</>");
  }
}

TEST(Multipart, RefusesWhatIsNotWholeOrNotStrict) {
  const std::string good = file("1") + "--b--";
  EXPECT_FALSE(is_refused(good));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(is_refused(good.substr(0, size))) << size;
  }
  std::string bare;
  for (const char c : good) {
    if (c != '\r') bare += c;
  }
  EXPECT_TRUE(is_refused(bare));
  EXPECT_NE(told({"--b\n"}).find("CRLF"), std::string::npos);
  EXPECT_TRUE(is_refused("--b\r\nContent-Disposition: form-data; name=x\n\n1\r\n--b--"));
  EXPECT_TRUE(is_refused(part("Content-Disposition: form-data; name=x\nX: y", "1") + "--b--"));
  EXPECT_TRUE(is_refused(part("Content-Disposition: form-data; name=x\rX: y", "1") + "--b--"));
  EXPECT_TRUE(is_refused(file("1\r\n--bx\r\n2") + "--b--"));
  EXPECT_TRUE(is_refused(file("1\r\n--b-\r\n2") + "--b--"));
  EXPECT_TRUE(is_refused(file("1\r\n--b\rx") + "--b--"));
  EXPECT_TRUE(is_refused("--b\r\n\r\n1\r\n--b--"));
}

TEST(Multipart, RefusesHeadersThatAreNotValid) {
  for (const std::string headers :
       {"X: y",
        "Content-Disposition: form-data",
        "Content-Disposition: attachment; name=x",
        "Content-Disposition: form-data; name=x; name=y",
        "Content-Disposition: form-data; name=x; Name=\"x\"",
        "Content-Disposition: form-data; name=x; filename=a; filename=b",
        "Content-Disposition: form-data; name=\"x",
        "Content-Disposition: form-data; name=\"x\\\"",
        "Content-Disposition: form-data; name=",
        "Content-Disposition: form-data; =x",
        "Content-Disposition: form-data; name",
        "Content-Disposition: form-data; name=x;",
        "Content-Disposition: form-data name=x",
        "Content-Disposition: form-data; name=\"x\"y",
        "Content-Disposition: form-data; name=x\r\n folded: 1",
        "Content-Disposition: form-data; name=x\r\nNo colon",
        "Content-Disposition: form-data; name=x\r\nSpaced : 1",
        ": x",
        "Content-Disposition: form-data; name=x\r\nContent-Disposition: form-data; name=x",
        "Content-Disposition: form-data; name=x\r\nContent-Type: a/b\r\nContent-Type: a/b",
        "Content-Disposition: form-data; name=x\r\nContent-Transfer-Encoding: base64"}) {
    EXPECT_TRUE(is_refused(part(headers, "1") + "--b--")) << headers;
  }
  using namespace std::string_literals;
  EXPECT_TRUE(is_refused(part("Content-Disposition: form-data; name=\"x\0\""s, "1") + "--b--"));
}

TEST(Multipart, ReadsFileNamesAsForeignText) {
  const auto filename = [](const std::string& parameter) {
    const std::string said = told({file("", "; filename=" + parameter) + "--b--"});
    return said.substr(6, said.rfind("|>") - 6);
  };
  EXPECT_EQ(filename(R"("a\"b\\c.txt")"), R"(a"b\c.txt)");
  EXPECT_EQ(filename(R"("C:\dir\new.txt")"), R"(C:\dir\new.txt)");
  EXPECT_EQ(filename(R"("a%22b%0d%0Ac%41.txt")"), "a\"b\r\nc%41.txt");
  EXPECT_EQ(filename(R"("a;b=c; name=d.txt")"), "a;b=c; name=d.txt");
  EXPECT_EQ(filename("\"\x01\x7f\t\xff.txt\""), "\x01\x7f\t\xff.txt");
  EXPECT_EQ(filename("plain.txt"), "plain.txt");
  EXPECT_EQ(filename(R"("a.txt"; filename*=UTF-8''b.exe)"), "a.txt");
  EXPECT_EQ(filename(R"("")"), "");
}

TEST(Multipart, HasLimits) {
  const std::string long_name = "Content-Disposition: form-data; name=x\r\nX: ";
  EXPECT_FALSE(
      is_refused(part(long_name + std::string(8 * 1024 - long_name.size(), 'y'), "") + "--b--"));
  EXPECT_TRUE(is_refused(part(long_name + std::string(8 * 1024 - long_name.size() + 1, 'y'), "") +
                         "--b--"));
  std::string headers = "Content-Disposition: form-data; name=x";
  for (int i = 1; i < 16; ++i) headers += "\r\nX: y";
  EXPECT_FALSE(is_refused(part(headers, "") + "--b--"));
  EXPECT_TRUE(is_refused(part(headers + "\r\nX: y", "") + "--b--"));
  std::string parts;
  for (int i = 0; i < 64; ++i) parts += file("");
  EXPECT_FALSE(is_refused(parts + "--b--"));
  EXPECT_TRUE(is_refused(parts + file("") + "--b--"));
  EXPECT_FALSE(is_refused(std::string(8000, 'p') + "\r\n" + file("") + "--b--"));
  EXPECT_TRUE(is_refused(std::string(9000, 'p') + "\r\n" + file("") + "--b--"));
  EXPECT_TRUE(is_refused("--b" + std::string(100, ' ') + "\r\n"));
}

TEST(Multipart, FindsTheBoundaryOfAContentType) {
  const auto boundary = [](std::string_view type) {
    const auto found = multipart_boundary(type);
    return found ? *found : "!" + std::string(found.error().code);
  };
  EXPECT_EQ(boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary("Multipart/Form-Data;charset=utf-8;BOUNDARY=\"a b:c\""), "a b:c");
  EXPECT_EQ(boundary("multipart/form-data; boundary=----=_Part/1:2?"), "----=_Part/1:2?");
  EXPECT_EQ(boundary("multipart/form-data; boundary=" + std::string(70, 'x')),
            std::string(70, 'x'));
  for (const std::string bad :
       {"multipart/form-data",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a \"", "multipart/form-data; boundary=\"a",
        "multipart/form-data; boundary=a; boundary=a", "multipart/form-data; boundary=a*b",
        "multipart/form-data; boundary=a\xff", "multipart/form-data boundary=a"}) {
    EXPECT_EQ(boundary(bad), "!bad_multipart") << bad;
  }
  EXPECT_EQ(boundary("multipart/form-data; boundary=" + std::string(71, 'x')), "!bad_multipart");
  for (const std::string other : {"", "application/json", "multipart/mixed; boundary=a",
                                  "multipart/form-dataX; boundary=a", "text/plain"}) {
    EXPECT_EQ(boundary(other), "!unsupported_content_type") << other;
  }
}

// Bytes that are mostly pieces of boundaries, so that the interesting places are many.
rc::Gen<std::string> tricky_text() {
  const auto pieces = rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "\r\n--b", "\r\n--", "--b--", "\r", "\n", "\r\n", "-", "b", "x", "\r\n-",
      std::string(1, '\0'), "--b\r\n", " ", "Content-Disposition: form-data; name=file\r\n\r\n"));
  return rc::gen::map(pieces, [](const std::vector<std::string>& texts) {
    std::string joined;
    for (const std::string& text : texts) joined += text;
    return joined;
  });
}

RC_GTEST_PROP(MultipartProperty, MeansTheSameHoweverItIsCut, ()) {
  const bool is_whole = *rc::gen::arbitrary<bool>();
  const std::string text = *tricky_text();
  const std::string body = is_whole ? file(text) + "--b--" : text;
  const std::string whole = told({body});
  std::vector<std::string_view> single;
  for (std::size_t i = 0; i < body.size(); ++i) single.emplace_back(body.data() + i, 1);
  RC_ASSERT(told(single) == whole);
  std::vector<std::string_view> pieces;
  for (std::string_view rest = body; !rest.empty();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, rest.size() + 1);
    pieces.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  RC_ASSERT(told(pieces) == whole);
}

RC_GTEST_PROP(MultipartProperty, GivesBackAnyBytesThatDoNotHoldTheBoundary, ()) {
  const std::string text = *tricky_text();
  // A boundary at the beginning of a line, which an honest caller avoids.
  RC_PRE((text + "\r\n").find("\r\n--b") == std::string::npos);
  RC_ASSERT(told({file(text) + "--b--"}) == "<file|a.txt|>" + text + "</>");
}

}  // namespace
}  // namespace clawdforge
