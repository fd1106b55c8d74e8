// The non-template parts of Beast and of Asio's TLS, compiled once.
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
