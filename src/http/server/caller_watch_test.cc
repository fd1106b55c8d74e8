// Callers who hang up, over plain sockets and over TLS.
#include "http/server/caller_watch.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <boost/asio/ssl.hpp>
#include <cstdio>

#include "http/server/server_fixture.h"

namespace clawdforge {
namespace asio = boost::asio;
namespace {

using PlainSocket = RunningServer::Socket;
using TlsSocket = asio::ssl::stream<PlainSocket>;

// A self-signed certificate, and its key, as files that end with the test.
class Certificate {
 public:
  Certificate() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> own(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(own.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(own.get()), 3600);
    X509_set_pubkey(own.get(), key.get());
    X509_sign(own.get(), key.get(), EVP_sha256());
    write(cert_, [&](FILE* file) { return PEM_write_X509(file, own.get()); });
    write(key_, [&](FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  ~Certificate() {
    ::unlink(cert_.c_str());
    ::unlink(key_.c_str());
  }
  const std::string& cert() const { return cert_; }
  const std::string& key() const { return key_; }

 private:
  template <class Print>
  static void write(std::string& path, Print print) {
    FILE* const file = ::fdopen(::mkstemp(path.data()), "w");
    EXPECT_EQ(print(file), 1);
    std::fclose(file);
  }

  std::string cert_ = ::testing::TempDir() + "certXXXXXX";
  std::string key_ = ::testing::TempDir() + "keyXXXXXX";
};

template <class Stream>
class CallerWatchTest : public ::testing::Test {
 protected:
  static constexpr bool kTls = std::is_same_v<Stream, TlsSocket>;

  ServerOptions options() {
    ServerOptions options;
    if (!kTls) return options;
    options.tls = load_tls(certificate_.cert(), certificate_.key()).value();
    return options;
  }

  // Answers when the test lets it, or when the caller has hung up.
  static Task<Response> wait(CallerWatchTest* test, Request* request) {
    ++test->begun_;
    EXPECT_GT(request->received.time_since_epoch().count(), 0);
    request->hang_up->listen([test] {
      ++test->departures_;
      test->let_go_.cancel();
    });
    test->let_go_.expires_at(Timer::time_point::max());
    co_await test->let_go_.async_wait(kAwait);
    request->hang_up->listen({});
    Response response;
    response.body = request->hang_up->has_happened() ? "departed;" : "waited;";
    co_return response;
  }
  static Task<Response> quick(Request* request) {
    EXPECT_EQ(request->hang_up, nullptr);
    Response response;
    response.body = "quick;";
    co_return response;
  }

  Admission admit(Request& request) {
    Admission admission;
    admission.watches_caller = request.path == "/wait";
    admission.handler = quick;
    if (admission.watches_caller) {
      admission.handler = [this](Request* watched) { return wait(this, watched); };
    }
    return admission;
  }

  Stream connect() {
    if constexpr (kTls) {
      TlsSocket stream(running_.connect(), tls_);
      run_to_end(running_.io(), shake_hands(&stream));
      return stream;
    } else {
      return running_.connect();
    }
  }
  static Task<int> shake_hands(TlsSocket* stream) {
    const auto [error] = co_await stream->async_handshake(asio::ssl::stream_base::client, kAwait);
    EXPECT_FALSE(error) << error.message();
    co_return 0;
  }

  void send(Stream& stream, const std::string& bytes) { asio::write(stream, asio::buffer(bytes)); }
  // A request that waits, and has begun to.
  Stream wait_for_answer() {
    Stream stream = connect();
    const int before = begun_;
    send(stream, kWait);
    running_.wait_until([&] { return begun_ > before; }, "the handler");
    return stream;
  }
  void wait_for_departure() {
    running_.wait_until([&] { return departures_ > 0; }, "a hang_up");
    running_.wait_until([&] { return running_.server().busy() == 0; }, "the exchange");
    EXPECT_NE(running_.metrics().find(R"(status="499"} 1)"), std::string::npos)
        << running_.metrics();
  }
  // Turns of the loop in which a departure would have shown itself.
  void let_pass() {
    for (int i = 0; i < 20; ++i) running_.io().run_one_for(std::chrono::milliseconds(2));
  }

  const std::string kWait = "GET /wait HTTP/1.1\r\nHost: t\r\n\r\n";
  const std::string kLast = "GET /quick HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

  Certificate certificate_;
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  int begun_ = 0;
  int departures_ = 0;
  RunningServer running_{options(), [this](Request& request) { return admit(request); }};
  Timer let_go_{running_.io().get_executor()};
};

using Streams = ::testing::Types<PlainSocket, TlsSocket>;
TYPED_TEST_SUITE(CallerWatchTest, Streams);

TYPED_TEST(CallerWatchTest, NoticesACallerWhoCloses) {
  {
    auto stream = this->wait_for_answer();
  }
  this->wait_for_departure();
}

TYPED_TEST(CallerWatchTest, NoticesACallerWhoResets) {
  {
    auto stream = this->wait_for_answer();
    stream.lowest_layer().set_option(asio::socket_base::linger(true, 0));
  }
  this->wait_for_departure();
}

TYPED_TEST(CallerWatchTest, StillAnswersACallerWhoOnlyEndsItsInput) {
  auto stream = this->wait_for_answer();
  if constexpr (TestFixture::kTls) {
    SSL_shutdown(stream.native_handle());  // close_notify, into Asio's own buffer
    asio::write(stream, asio::const_buffer());
  }
  stream.lowest_layer().shutdown(asio::socket_base::shutdown_send);
  const std::string answer = this->running_.read_all(stream);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("departed;")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  this->wait_for_departure();
}

TYPED_TEST(CallerWatchTest, GoesOnWithTheConnectionWhenTheCallerStayed) {
  auto stream = this->wait_for_answer();
  this->let_pass();
  this->let_go_.cancel();
  EXPECT_TRUE(this->running_.read_until(stream, "waited;").ends_with("waited;"));
  this->send(stream, this->kWait);
  this->running_.wait_until([&] { return this->begun_ == 2; }, "the second handler");
  this->let_go_.cancel();
  EXPECT_TRUE(this->running_.read_until(stream, "waited;").ends_with("waited;"));
  this->send(stream, this->kLast);
  EXPECT_TRUE(this->running_.read_all(stream).ends_with("quick;"));
  EXPECT_EQ(this->departures_, 0);
}

TYPED_TEST(CallerWatchTest, KeepsWhatComesEarlyForTheNextRequest) {
  auto stream = this->wait_for_answer();
  for (int i = 0; i < 50; ++i) this->send(stream, "GET /quick HTTP/1.1\r\nHost: t\r\n\r\n");
  this->send(stream, this->kLast);
  this->let_pass();
  EXPECT_EQ(this->departures_, 0);
  this->let_go_.cancel();
  const std::string answers = this->running_.read_all(stream);
  std::size_t count = 0;
  for (std::size_t at = answers.find("quick;"); at != answers.npos;
       at = answers.find("quick;", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 51u);
  EXPECT_LT(answers.find("waited;"), answers.find("quick;"));
}

TYPED_TEST(CallerWatchTest, NoticesAHangUpBehindAnEarlyRequest) {
  {
    auto stream = this->wait_for_answer();
    this->send(stream, std::string(kEarlyBytesMax - 1, 'x'));
  }
  this->wait_for_departure();
}

TYPED_TEST(CallerWatchTest, ReadsNoMoreThanItsBoundAhead) {
  auto stream = this->wait_for_answer();
  this->send(stream, this->kLast + std::string(kEarlyBytesMax, 'x'));
  stream.lowest_layer().shutdown(asio::socket_base::shutdown_send);
  this->let_pass();
  this->let_pass();
  EXPECT_EQ(this->departures_, 0) << "it has read on";
  this->let_go_.cancel();
  const std::string answers = this->running_.read_all(stream);
  EXPECT_LT(answers.find("waited;"), answers.find("quick;")) << answers;
}

TYPED_TEST(CallerWatchTest, EndsInOrderWhenTheServerStops) {
  auto stream = this->wait_for_answer();
  run_to_end(this->running_.io(), this->running_.stop());
  EXPECT_EQ(this->running_.server().connections(), 0u);
  EXPECT_EQ(this->departures_, 0);
}

}  // namespace
}  // namespace clawdforge
