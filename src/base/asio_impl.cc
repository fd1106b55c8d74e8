// Asio's non-template part, compiled once for the whole program.
#include <boost/asio/impl/src.hpp>
